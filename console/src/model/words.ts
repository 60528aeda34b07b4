/** Names and states of nodes and connections, for labels, lists and screen readers. */

import type { ClientKind } from "./peers";
import { shown } from "./text";
import { loadBand, rateText } from "./traffic";
import type { Topology, TopologyEdge, TopologyNode } from "./topology";

/** Characters of a name in the picture, at most. */
const LABEL_CHARACTERS = 24;
/** Characters of a name in a sentence or a list, at most. */
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

/** Return a number with its word, which takes an s in the plural: "1 router", "2 routers". */
export const plural = (count: number, word: string): string => `${String(count)} ${word}${count === 1 ? "" : "s"}`;

/** Return a peer's name for a label of the picture: cut, with invisible characters written out. */
export const labelText = (name: string): string => shown(name, LABEL_CHARACTERS);

/** Return a peer's name for a sentence: cut, with invisible characters written out; "(without a name)" if it is empty. */
export const nameText = (name: string): string => shown(name, NAME_CHARACTERS) || "(without a name)";

/** Return the number of connections of a group of clients, or of edge routers in a group; 1 for other nodes. */
export function countOf(node: TopologyNode): number {
  return node.kind === "clients" ? node.connections.length : node.kind === "edges" ? node.members.length : 1;
}

/** Return the label below the node in the picture. */
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

/** Return the node's name for a sentence or list: "router A", "3 consumers at router A". */
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

/** Return the node's state: "present", "gone", or the reason why it does not answer. */
export function nodeState(node: TopologyNode): string {
  if (node.goneSince !== null) return "gone";
  return node.error === "" ? "present" : `does not answer: ${nameText(node.error)}`;
}

/** Return the label of a line in the picture: messages per second, and the cost if it is not 1. */
export function edgeLabel(edge: TopologyEdge): string {
  const rate = edge.forward + edge.backward;
  const parts = rate >= 0.05 ? [`${rateText(rate)}/s`] : [];
  if (edge.cost !== null && edge.cost !== 1) parts.push(`cost ${String(edge.cost)}`);
  return parts.join(", ");
}

/** Return the names of a connection's nodes, the one that dialled first: "router A to router B". */
export function edgeName(topology: Topology, edge: TopologyEdge): string {
  const [source, target] = [edge.source, edge.target].map((id) => nodeName(topology, topology.nodes.get(id)));
  return `${source ?? ""} to ${target ?? ""}`;
}

/** Return the load as its band and percent: "filling, 30 %". */
export function loadText(load: number): string {
  return `${loadBand(load)}, ${String(Math.round(load * 100))} %`;
}
