/** What the picture brings out: an address's producers, consumers and ways, or the path between two routers. */

import { nextHopPath, pathCost, viewAddress, type AddressView, type Way } from "./paths";
import { nameText } from "./words";
import type { Topology } from "./topology";
import type { Snapshot } from "./types";

export type LitRole = "producer" | "consumer" | "both" | "way";

export interface Lit {
  readonly nodes: ReadonlyMap<string, LitRole>;
  readonly edges: ReadonlyMap<string, Way>;
  /** The same in a sentence. */
  readonly text: string;
}

const plural = (count: number, word: string): string => `${String(count)} ${word}${count === 1 ? "" : "s"}`;

/** Return the roles of the nodes that have to do with an address. */
function roles(view: AddressView): ReadonlyMap<string, LitRole> {
  const nodes = new Map<string, LitRole>([...view.routers].map((id) => [id, "way"]));
  for (const id of view.producers) nodes.set(id, "producer");
  for (const id of view.consumers) nodes.set(id, view.producers.has(id) ? "both" : "consumer");
  return nodes;
}

/** Return what belongs to an address. */
export function litByAddress(topology: Topology, snapshot: Snapshot, address: string): Lit {
  const view = viewAddress(topology, snapshot, address);
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
      : `${name}: ${senders}, ${receivers}, by way of ${routers}.`;
  return { nodes, edges: view.ways, text };
}

/** Return the path from one router to another, by their ids. */
export function litByPath(topology: Topology, snapshot: Snapshot, from: string, to: string): Lit {
  const hops = nextHopPath(snapshot, from, to);
  const edges = new Map<string, Way>();
  hops.slice(1).forEach((hop, index) => {
    const [one, other] = [`router:${hops[index] ?? ""}`, `router:${hop}`];
    if (topology.edges.has(`${one}>${other}`)) edges.set(`${one}>${other}`, { forward: true, backward: false });
    else edges.set(`${other}>${one}`, { forward: false, backward: true });
  });
  const cost = pathCost(snapshot, from, to);
  const way = hops.map(nameText).join(" → ");
  const text =
    hops.length === 0
      ? `${nameText(from)} knows no way to ${nameText(to)}.`
      : hops.length === 1
        ? `${nameText(from)} is where paths begin; choose another router to see the way to it.`
        : `${way}${cost === null ? "" : `, cost ${String(cost)}`}`;
  return { nodes: new Map(hops.map((hop) => [`router:${hop}`, "way"])), edges, text };
}
