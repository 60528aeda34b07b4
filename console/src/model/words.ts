/** Names of nodes and connections of the topology in words, for labels, lists and screen readers. */

import type { ClientKind } from "./peers";
import { shown } from "./text";
import { loadBand, rateText } from "./traffic";
import type { Topology, TopologyEdge, TopologyNode } from "./topology";

/** A name in the picture has this many characters at most. */
const LABEL_CHARACTERS = 24;
/** A name in a sentence or a list has this many characters at most. */
const NAME_CHARACTERS = 120;

const CLIENTS: Readonly<Record<ClientKind, readonly [string, string]>> = {
  producer: ["producer", "producers"],
  consumer: ["consumer", "consumers"],
  both: ["client that sends and receives", "clients that send and receive"],
  idle: ["client without links", "clients without links"],
  console: ["console", "consoles"],
};

const SHORT_CLIENTS: Readonly<Record<ClientKind, readonly [string, string]>> = {
  ...CLIENTS,
  both: ["sends, receives", "send, receive"],
  idle: ["idle client", "idle clients"],
};

/** Return a stranger's name fit for a label in the picture. */
export const labelText = (name: string): string => shown(name, LABEL_CHARACTERS);

/** Return a stranger's name fit for a sentence. */
export const nameText = (name: string): string => shown(name, NAME_CHARACTERS) || "(without a name)";

/** Return how many connections or members the node stands for. */
export function countOf(node: TopologyNode): number {
  return node.kind === "clients" ? node.connections.length : node.kind === "edges" ? node.members.length : 1;
}

/** Return the line below the node in the picture. */
export function nodeLabel(node: TopologyNode): string {
  const count = countOf(node);
  switch (node.kind) {
    case "clients":
      return node.clientKind === null ? "" : SHORT_CLIENTS[node.clientKind][count === 1 ? 0 : 1];
    case "edges":
      return "edge routers";
    default:
      return labelText(node.name) || "(no name)";
  }
}

/** Return the node's name in a sentence or list: "router A", "3 consumers at router A". */
export function nodeName(topology: Topology, node: TopologyNode | undefined): string {
  if (node === undefined) return "(unknown)";
  const owner = node.owner === null ? undefined : topology.nodes.get(node.owner);
  const count = countOf(node);
  switch (node.kind) {
    case "router":
      return `router ${nameText(node.name)}`;
    case "edge":
      return `edge router ${nameText(node.name)}`;
    case "broker":
      return `broker ${nameText(node.name)}`;
    case "edges":
      return `${String(count)} edge routers at ${nodeName(topology, owner)}`;
    case "clients": {
      const kind = node.clientKind === null ? "clients" : CLIENTS[node.clientKind][count === 1 ? 0 : 1];
      return `${String(count)} ${kind} at ${nodeName(topology, owner)}`;
    }
  }
}

/** Return the node's state: "there", "gone" or why it does not answer. */
export function nodeState(node: TopologyNode): string {
  if (node.goneSince !== null) return "gone";
  return node.error === "" ? "there" : `does not answer: ${nameText(node.error)}`;
}

/** Return what a connection carries and costs, as a line in the picture. */
export function edgeLabel(edge: TopologyEdge): string {
  const rate = edge.forward + edge.backward;
  const parts = rate >= 0.05 ? [`${rateText(rate)}/s`] : [];
  if (edge.cost !== null && edge.cost !== 1) parts.push(`cost ${String(edge.cost)}`);
  return parts.join(", ");
}

/** Return the connection in a sentence: who dialled whom, what goes which way, how full it is. */
export function edgeName(topology: Topology, edge: TopologyEdge): string {
  const [source, target] = [edge.source, edge.target].map((id) => nodeName(topology, topology.nodes.get(id)));
  return `${source ?? ""} to ${target ?? ""}`;
}

/** Return the load in words and percent: "filling, 30 %". */
export function loadText(load: number): string {
  return `${loadBand(load)}, ${String(Math.round(load * 100))} %`;
}
