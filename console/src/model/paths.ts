/** Paths through the network: next hops, and the routers at which messages to one address enter, pass and leave. */

import { addressOfKey, isUserKey } from "./addresskey";
import { numberAt, routersById, tableOf, textAt, textsAt } from "./rows";
import { connectionKey, type Topology } from "./topology";
import type { Row, RouterTables, Snapshot } from "./types";

/** Return the router ids from `from` to `to`, both included, by the next hops that the routers report; [] if there is no path. */
export function nextHopPath(snapshot: Snapshot, from: string, to: string): readonly string[] {
  const routers = routersById(snapshot);
  const path = [from];
  const seen = new Set(path);
  for (let at = from; at !== to; ) {
    const row = tableOf(routers.get(at), "router.node").find((node) => textAt(node, "id") === to);
    if (row === undefined) return [];
    const next = textAt(row, "nextHop");
    // The row of a neighbour has no next hop: the neighbour itself is the next hop.
    at = next === "" || next === "(self)" ? to : next;
    if (seen.has(at)) return [];
    seen.add(at);
    path.push(at);
  }
  return path;
}

/** Return the cost of the path from `from` to `to`, as `from` reports it; null if it does not. */
export function pathCost(snapshot: Snapshot, from: string, to: string): number | null {
  const row = tableOf(routersById(snapshot).get(from), "router.node").find((node) => textAt(node, "id") === to);
  const cost = row === undefined ? NaN : numberAt(row, "cost", NaN);
  return Number.isNaN(cost) ? null : cost;
}

/** The directions of an edge in which messages go; forward is from its source to its target. */
export interface Directions {
  readonly forward: boolean;
  readonly backward: boolean;
}

/** The nodes and edges that messages to one address use. */
export interface AddressTrace {
  /** The ids of the nodes that send to the address. */
  readonly producers: ReadonlySet<string>;
  /** The ids of the nodes that receive from the address. */
  readonly consumers: ReadonlySet<string>;
  /** The node ids of the routers that messages may pass, the first and the last included. */
  readonly routers: ReadonlySet<string>;
  /** The directions in which messages go, by edge id. */
  readonly ways: ReadonlyMap<string, Directions>;
  readonly producerLinks: number;
  readonly consumerLinks: number;
}

/** Return the addresses of clients' links, sorted; at most `limit`. */
export function knownAddresses(snapshot: Snapshot, limit: number): readonly string[] {
  const found = new Set<string>();
  for (const router of snapshot.routers)
    for (const markLink of tableOf(router, "router.link")) {
      const key = textAt(markLink, "owningAddr");
      if (isUserKey(key)) found.add(addressOfKey(key));
    }
  return [...found].sort().slice(0, limit);
}

/** Collects an AddressTrace. */
class Marker {
  readonly producers = new Set<string>();
  readonly consumers = new Set<string>();
  readonly routers = new Set<string>();
  readonly ways = new Map<string, { forward: boolean; backward: boolean }>();
  /** Interior routers at which messages enter and leave. */
  readonly entries = new Set<string>();
  readonly exits = new Set<string>();
  producerLinks = 0;
  consumerLinks = 0;

  constructor(readonly topology: Topology) {}

  markEdge(edge: string, forward: boolean): void {
    const way = this.ways.get(edge) ?? { forward: false, backward: false };
    way[forward ? "forward" : "backward"] = true;
    this.ways.set(edge, way);
  }

  markLink(router: string, markLink: Row): void {
    const placed = this.topology.edgeByConnection.get(connectionKey(router, textAt(markLink, "connectionId")));
    const edge = placed === undefined ? undefined : this.topology.edges.get(placed.edge);
    if (placed === undefined || edge === undefined) return;
    const out = textAt(markLink, "linkDir") === "out";
    this.markEdge(edge.id, out === placed.outIsForward);
    // A routed link has an end on each router of its path; messages do not enter or leave at the inner ones.
    if (edge.kind === "inter-router") return;
    const self = this.topology.nodes.get(`router:${router}`);
    if (self !== undefined) (out ? this.exits : this.entries).add(router);
    if (edge.kind === "edge" && !placed.peer.startsWith("edges:")) {
      if (this.hasClients(placed.peer)) return;
    }
    if (placed.peer.startsWith("router:")) return;
    (out ? this.consumers : this.producers).add(placed.peer);
    if (out) this.consumerLinks += 1;
    else this.producerLinks += 1;
  }

  /** Return whether the picture shows clients of the edge router itself. */
  private hasClients(edgeNode: string): boolean {
    for (const node of this.topology.nodes.values()) if (node.owner === edgeNode) return true;
    return false;
  }

  /** Mark the routers of a path and the edges between them. */
  markPath(hops: readonly string[]): void {
    for (const hop of hops) this.routers.add(`router:${hop}`);
    hops.slice(1).forEach((to, index) => {
      const [one, other] = [`router:${hops[index] ?? ""}`, `router:${to}`];
      if (this.topology.edges.has(`${one}>${other}`)) this.markEdge(`${one}>${other}`, true);
      else if (this.topology.edges.has(`${other}>${one}`)) this.markEdge(`${other}>${one}`, false);
    });
  }
}

/** Return the ids of the routers with consumers of the address, as this router reports them. */
function remoteConsumers(router: RouterTables, address: string): readonly string[] {
  return tableOf(router, "router.address")
    .filter((row) => addressOfKey(textAt(row, "key")) === address)
    .flatMap((row) => textsAt(row, "remoteHostRouters"));
}

const isClosest = (router: RouterTables | undefined, address: string): boolean =>
  tableOf(router, "router.address").some(
    (row) => addressOfKey(textAt(row, "key")) === address && textAt(row, "distribution") === "closest",
  );

/** Return those of the `exits` that a message entering at `entry` may leave at. */
function exitsFor(snapshot: Snapshot, entry: string, exits: readonly string[], address: string): readonly string[] {
  if (!isClosest(routersById(snapshot).get(entry), address)) return exits;
  const costs = exits.map((exit) => (exit === entry ? 0 : (pathCost(snapshot, entry, exit) ?? Infinity)));
  const lowest = Math.min(...costs);
  return exits.filter((_, index) => costs[index] === lowest);
}

/** Return the producers and consumers of an address, and the paths of its messages between the routers. */
export function traceAddress(topology: Topology, snapshot: Snapshot, address: string): AddressTrace {
  const marker = new Marker(topology);
  for (const router of snapshot.routers) {
    for (const markLink of tableOf(router, "router.link"))
      if (textAt(markLink, "linkType") !== "router-control" && addressOfKey(textAt(markLink, "owningAddr")) === address)
        marker.markLink(router.id, markLink);
    for (const exit of remoteConsumers(router, address)) marker.exits.add(exit);
  }
  const exits = [...marker.exits];
  for (const id of [...marker.entries, ...exits]) if (topology.nodes.has(`router:${id}`)) marker.routers.add(`router:${id}`);
  for (const entry of marker.entries)
    for (const exit of exitsFor(snapshot, entry, exits, address))
      if (exit !== entry) marker.markPath(nextHopPath(snapshot, entry, exit));
  const { producers, consumers, routers, ways, producerLinks, consumerLinks } = marker;
  return { producers, consumers, routers, ways, producerLinks, consumerLinks };
}
