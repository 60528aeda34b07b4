/** Ways through the network: next hops, and where messages to one address enter, pass and leave. */

import { addressOfKey, isUserKey } from "./keys";
import { numberOf, routersById, rowsOf, textOf, textsOf } from "./rows";
import { placedKey, type Topology } from "./topology";
import type { Row, RouterTables, Snapshot } from "./types";

/** Return the router ids from `from` to `to`, both included, by the next hops that the routers report; [] without a way. */
export function nextHopPath(snapshot: Snapshot, from: string, to: string): readonly string[] {
  const routers = routersById(snapshot);
  const path = [from];
  const seen = new Set(path);
  for (let at = from; at !== to; ) {
    const row = rowsOf(routers.get(at), "router.node").find((node) => textOf(node, "id") === to);
    if (row === undefined) return [];
    const next = textOf(row, "nextHop");
    // A neighbour's row has no next hop: it is one itself.
    at = next === "" || next === "(self)" ? to : next;
    if (seen.has(at)) return [];
    seen.add(at);
    path.push(at);
  }
  return path;
}

/** Return what the way to `to` costs as `from` reports it, or null. */
export function pathCost(snapshot: Snapshot, from: string, to: string): number | null {
  const row = rowsOf(routersById(snapshot).get(from), "router.node").find((node) => textOf(node, "id") === to);
  const cost = row === undefined ? NaN : numberOf(row, "cost", NaN);
  return Number.isNaN(cost) ? null : cost;
}

export interface Way {
  readonly forward: boolean;
  readonly backward: boolean;
}

/** What of the picture belongs to an address. */
export interface AddressView {
  /** Node ids of those who send to it and of those who receive from it. */
  readonly producers: ReadonlySet<string>;
  readonly consumers: ReadonlySet<string>;
  /** Routers that its messages may pass, the first and the last included. */
  readonly routers: ReadonlySet<string>;
  /** By edge id, the directions in which its messages go. */
  readonly ways: ReadonlyMap<string, Way>;
  readonly producerLinks: number;
  readonly consumerLinks: number;
}

/** Return every address that a link of a user has, sorted, at most `most` of them. */
export function knownAddresses(snapshot: Snapshot, most: number): readonly string[] {
  const found = new Set<string>();
  for (const router of snapshot.routers)
    for (const link of rowsOf(router, "router.link")) {
      const key = textOf(link, "owningAddr");
      if (isUserKey(key)) found.add(addressOfKey(key));
    }
  return [...found].sort().slice(0, most);
}

/** Grows an AddressView. */
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

  go(edge: string, forward: boolean): void {
    const way = this.ways.get(edge) ?? { forward: false, backward: false };
    way[forward ? "forward" : "backward"] = true;
    this.ways.set(edge, way);
  }

  link(router: string, link: Row): void {
    const placed = this.topology.placed.get(placedKey(router, textOf(link, "connectionId")));
    const edge = placed === undefined ? undefined : this.topology.edges.get(placed.edge);
    if (placed === undefined || edge === undefined) return;
    const out = textOf(link, "linkDir") === "out";
    this.go(edge.id, out === placed.outIsForward);
    // A routed link has an end on each router that it passes; messages enter and leave elsewhere.
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

  /** Return whether the edge router answers for its own clients. */
  private hasClients(edgeNode: string): boolean {
    for (const node of this.topology.nodes.values()) if (node.owner === edgeNode) return true;
    return false;
  }

  /** Mark the hops of a path and what it passes. */
  path(hops: readonly string[]): void {
    for (const hop of hops) this.routers.add(`router:${hop}`);
    hops.slice(1).forEach((to, index) => {
      const [one, other] = [`router:${hops[index] ?? ""}`, `router:${to}`];
      if (this.topology.edges.has(`${one}>${other}`)) this.go(`${one}>${other}`, true);
      else if (this.topology.edges.has(`${other}>${one}`)) this.go(`${other}>${one}`, false);
    });
  }
}

/** Where consumers are that this router knows of and that may not answer the console themselves. */
function remoteConsumers(router: RouterTables, address: string): readonly string[] {
  return rowsOf(router, "router.address")
    .filter((row) => addressOfKey(textOf(row, "key")) === address)
    .flatMap((row) => textsOf(row, "remoteHostRouters"));
}

const isClosest = (router: RouterTables | undefined, address: string): boolean =>
  rowsOf(router, "router.address").some(
    (row) => addressOfKey(textOf(row, "key")) === address && textOf(row, "distribution") === "closest",
  );

/** Return the exits that a message entering at `entry` may go to. */
function exitsFor(snapshot: Snapshot, entry: string, exits: readonly string[], address: string): readonly string[] {
  if (!isClosest(routersById(snapshot).get(entry), address)) return exits;
  const costs = exits.map((exit) => (exit === entry ? 0 : (pathCost(snapshot, entry, exit) ?? Infinity)));
  const least = Math.min(...costs);
  return exits.filter((_, index) => costs[index] === least);
}

/** Return who sends to and receives from the address, and which way its messages go between the routers. */
export function viewAddress(topology: Topology, snapshot: Snapshot, address: string): AddressView {
  const marker = new Marker(topology);
  for (const router of snapshot.routers) {
    for (const link of rowsOf(router, "router.link"))
      if (textOf(link, "linkType") !== "router-control" && addressOfKey(textOf(link, "owningAddr")) === address)
        marker.link(router.id, link);
    for (const exit of remoteConsumers(router, address)) marker.exits.add(exit);
  }
  const exits = [...marker.exits];
  for (const id of [...marker.entries, ...exits]) if (topology.nodes.has(`router:${id}`)) marker.routers.add(`router:${id}`);
  for (const entry of marker.entries)
    for (const exit of exitsFor(snapshot, entry, exits, address))
      if (exit !== entry) marker.path(nextHopPath(snapshot, entry, exit));
  const { producers, consumers, routers, ways, producerLinks, consumerLinks } = marker;
  return { producers, consumers, routers, ways, producerLinks, consumerLinks };
}
