/** What the picture highlights: an address's producers, consumers and paths, or the path between two routers. */

import { nextHopPath, pathCost, traceAddress, type AddressTrace, type Directions } from "./paths";
import { nameText, plural } from "./words";
import type { Topology } from "./topology";
import type { Snapshot } from "./types";

/** Why a node is highlighted; "way": it is on the path. */
export type HighlightRole = "producer" | "consumer" | "both" | "way";

/** The highlighted part of the picture. */
export interface Highlight {
  /** By node id. */
  readonly nodes: ReadonlyMap<string, HighlightRole>;
  /** By edge id, the directions in which messages go. */
  readonly edges: ReadonlyMap<string, Directions>;
  /** A sentence with the same facts, for the status line. */
  readonly text: string;
}

/** Return the roles of the nodes that send to, receive from or pass on an address. */
function roles(view: AddressTrace): ReadonlyMap<string, HighlightRole> {
  const nodes = new Map<string, HighlightRole>([...view.routers].map((id) => [id, "way"]));
  for (const id of view.producers) nodes.set(id, "producer");
  for (const id of view.consumers) nodes.set(id, view.producers.has(id) ? "both" : "consumer");
  return nodes;
}

/** Return the producers, consumers and paths of an address. */
export function highlightAddress(topology: Topology, snapshot: Snapshot, address: string): Highlight {
  const view = traceAddress(topology, snapshot, address);
  const nodes = new Map(roles(view));
  // Edge routers between their clients and the network.
  for (const id of view.ways.keys()) {
    const edge = topology.edges.get(id);
    for (const end of [edge?.source, edge?.target]) if (end !== undefined && !nodes.has(end)) nodes.set(end, "way");
  }
  const [senders, receivers] = [plural(view.producerLinks, "producer"), plural(view.consumerLinks, "consumer")];
  const routers = plural(view.routers.size, "router");
  const name = nameText(address);
  const text =
    view.ways.size === 0
      ? `No link has the address ${name}.`
      : `${name}: ${senders}, ${receivers}, through ${routers}.`;
  return { nodes, edges: view.ways, text };
}

/** Return the path from one router to another, by their ids. */
export function highlightPath(topology: Topology, snapshot: Snapshot, from: string, to: string): Highlight {
  const hops = nextHopPath(snapshot, from, to);
  const edges = new Map<string, Directions>();
  hops.slice(1).forEach((hop, index) => {
    const [one, other] = [`router:${hops[index] ?? ""}`, `router:${hop}`];
    if (topology.edges.has(`${one}>${other}`)) edges.set(`${one}>${other}`, { forward: true, backward: false });
    else edges.set(`${other}>${one}`, { forward: false, backward: true });
  });
  const cost = pathCost(snapshot, from, to);
  const way = hops.map(nameText).join(" → ");
  const text =
    hops.length === 0
      ? `${nameText(from)} has no route to ${nameText(to)}.`
      : hops.length === 1
        ? `${nameText(from)} is the start of the path; choose another router to see the path to it.`
        : `${way}${cost === null ? "" : `, cost ${String(cost)}`}`;
  return { nodes: new Map(hops.map((hop) => [`router:${hop}`, "way"])), edges, text };
}
