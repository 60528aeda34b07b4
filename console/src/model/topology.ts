/** The network as a graph: routers, edge routers, brokers, clients by router and kind, and the connections between them. */

import { brokerProduct, clientKind, peerKind, type ClientKind } from "./peers";
import { mapOf, numberOf, rowsOf, textOf } from "./rows";
import { NO_SAMPLES, NO_TRAFFIC, addTraffic, connectionTraffic, turned, type LinkSamples, type Traffic } from "./traffic";
import type { Row, RouterTables, Snapshot } from "./types";

export type NodeKind = "router" | "edge" | "edges" | "broker" | "clients";

/** One connection, as the router named here reports it. */
export interface ConnectionRef {
  readonly router: string;
  readonly row: Row;
}

export interface TopologyNode {
  /** "router:A", "edge:E1", "edges:A", "broker:NAME", "clients:router:A/consumer"; stays between updates. */
  readonly id: string;
  readonly kind: NodeKind;
  /** The router's id, the broker's container name, or "" for groups. A text from a stranger. */
  readonly name: string;
  /** The router node that it is drawn beside; null for interior and standalone routers. */
  readonly owner: string | null;
  readonly clientKind: ClientKind | null;
  /** What a broker calls itself. */
  readonly product: string;
  /** The connections of clients and brokers to routers. */
  readonly connections: readonly ConnectionRef[];
  /** The nodes that a group of edge routers stands for. */
  readonly members: readonly string[];
  /** Why the router does not answer, wholly or in part; "" while it does. */
  readonly error: string;
  /** When it was first missed, in ms since 1970; null while it is there. */
  readonly goneSince: number | null;
}

export interface TopologyEdge {
  /** "SOURCE>TARGET", so that it stays between updates. */
  readonly id: string;
  /** The node that dialled. */
  readonly source: string;
  readonly target: string;
  readonly kind: "inter-router" | "edge" | "broker" | "client";
  /** Between routers: what a message pays; null where no router says. */
  readonly cost: number | null;
  readonly connections: readonly ConnectionRef[];
  /** Messages per second from source to target. */
  readonly forward: number;
  readonly backward: number;
  readonly load: number;
  readonly goneSince: number | null;
}

/** Which edge a router's connection belongs to, and whether messages out of the router go the edge's way. */
export interface Placed {
  readonly edge: string;
  readonly peer: string;
  readonly outIsForward: boolean;
}

export interface Topology {
  readonly nodes: ReadonlyMap<string, TopologyNode>;
  readonly edges: ReadonlyMap<string, TopologyEdge>;
  /** By router id and connection identity, joined by a line feed. */
  readonly placed: ReadonlyMap<string, Placed>;
}

export const EMPTY: Topology = { nodes: new Map(), edges: new Map(), placed: new Map() };

/** Return the key of `Topology.placed`. */
export const placedKey = (router: string, connection: string): string => `${router}\n${connection}`;

interface Growing {
  readonly kind: TopologyEdge["kind"];
  readonly source: string;
  readonly target: string;
  /** The connections and their traffic (from the source's view) as the source and as the target report them. */
  readonly ends: Record<"source" | "target", { refs: ConnectionRef[]; traffic: Traffic }>;
}

type Changeable<T> = { -readonly [K in keyof T]: T[K] };
type GrowingNode = Changeable<TopologyNode> & { connections: ConnectionRef[] };

const isEdgeRouter = (router: RouterTables): boolean =>
  router.address.startsWith("_edge/") || rowsOf(router, "router").some((row) => textOf(row, "mode") === "edge");

const nodeIds = (router: RouterTables | undefined): string[] =>
  rowsOf(router, "router.node").map((row) => textOf(row, "id"));

/** Return the ids of the interior and standalone routers that can be reached from the router the console is connected to. */
export function presentRouters(snapshot: Snapshot): ReadonlySet<string> {
  const home = snapshot.routers.find((router) => router.address === "");
  const roots = home === undefined ? [] : [home];
  if (home !== undefined && nodeIds(home).length === 0) {
    const uplinks = rowsOf(home, "connection").filter((row) => peerKind(row) === "uplink");
    const above = new Set(uplinks.map((row) => textOf(row, "container")));
    roots.push(...snapshot.routers.filter((router) => above.has(router.id)));
  }
  const present = new Set(roots.flatMap(nodeIds));
  for (const root of roots) if (!isEdgeRouter(root)) present.add(root.id);
  if (present.size === 0)
    for (const router of snapshot.routers) if (!isEdgeRouter(router)) present.add(router.id);
  present.delete("");
  return present;
}

function linkUse(router: RouterTables): ReadonlyMap<string, { in: boolean; out: boolean }> {
  const uses = new Map<string, { in: boolean; out: boolean }>();
  for (const link of rowsOf(router, "router.link")) {
    const connection = textOf(link, "connectionId");
    let use = uses.get(connection);
    if (use === undefined) uses.set(connection, (use = { in: false, out: false }));
    use[textOf(link, "linkDir") === "in" ? "in" : "out"] = true;
  }
  return uses;
}

/** Gathers nodes and edges router by router. */
class Builder {
  readonly nodes = new Map<string, GrowingNode>();
  readonly edges = new Map<string, Growing>();
  readonly placed = new Map<string, Placed>();

  constructor(readonly present: ReadonlySet<string>) {}

  node(id: string, kind: NodeKind, name: string, owner: string | null): GrowingNode {
    let node = this.nodes.get(id);
    if (node === undefined) {
      const empty = { clientKind: null, product: "", connections: [], members: [], error: "", goneSince: null };
      this.nodes.set(id, (node = { id, kind, name, owner, ...empty }));
    }
    return node;
  }

  /** Add a connection that the router `self` reports. */
  connect(ref: ConnectionRef, kind: Growing["kind"], self: string, peer: string, traffic: Traffic): void {
    const dialled = textOf(ref.row, "dir") === "out";
    const [source, target] = dialled ? [self, peer] : [peer, self];
    const id = `${source}>${target}`;
    let edge = this.edges.get(id);
    if (edge === undefined) {
      const ends = { source: { refs: [], traffic: NO_TRAFFIC }, target: { refs: [], traffic: NO_TRAFFIC } };
      this.edges.set(id, (edge = { kind, source, target, ends }));
    }
    const end = edge.ends[dialled ? "source" : "target"];
    end.refs.push(ref);
    end.traffic = addTraffic(end.traffic, dialled ? traffic : turned(traffic));
    this.placed.set(placedKey(ref.router, textOf(ref.row, "identity")), { edge: id, peer, outIsForward: dialled });
  }

  addRouter(router: RouterTables, self: string, samples: LinkSamples): void {
    const traffic = connectionTraffic(router, samples);
    const uses = linkUse(router);
    for (const row of rowsOf(router, "connection")) {
      const ref = { router: router.id, row };
      const identity = textOf(row, "identity");
      const container = textOf(row, "container");
      const amount = traffic.get(identity) ?? NO_TRAFFIC;
      switch (peerKind(row)) {
        case "router":
        case "uplink":
          if (this.present.has(container))
            this.connect(ref, self.startsWith("edge:") ? "edge" : "inter-router", self, `router:${container}`, amount);
          break;
        case "edge":
          this.node(`edge:${container}`, "edge", container, self);
          this.connect(ref, "edge", self, `edge:${container}`, amount);
          break;
        case "broker": {
          const broker = this.node(`broker:${container}`, "broker", container, self);
          broker.product ||= brokerProduct(row);
          broker.connections.push(ref);
          this.connect(ref, "broker", self, broker.id, amount);
          break;
        }
        case "client": {
          const use = uses.get(identity);
          const kind = clientKind(row, use?.in ?? false, use?.out ?? false);
          const group = this.node(`clients:${self}/${kind}`, "clients", "", self);
          group.clientKind = kind;
          group.connections.push(ref);
          this.connect(ref, "client", self, group.id, amount);
        }
      }
    }
  }
}

function costsBetween(snapshot: Snapshot): ReadonlyMap<string, number> {
  const costs = new Map<string, number>();
  for (const router of snapshot.routers)
    for (const row of rowsOf(router, "router.node")) {
      const id = textOf(row, "id");
      for (const [neighbour, cost] of Object.entries(mapOf(row, "linkCosts")))
        if (typeof cost === "number" || typeof cost === "bigint") costs.set(`${id}>${neighbour}`, Number(cost));
      // A router of the older kind says only what the way to its neighbour costs.
      if (textOf(row, "nextHop") === "" && id !== router.id && !costs.has(`${router.id}>${id}`))
        costs.set(`${router.id}>${id}`, numberOf(row, "cost", 1));
    }
  return costs;
}

function finished(edge: Growing, costs: ReadonlyMap<string, number>): TopologyEdge {
  const { source, target, kind } = edge;
  const end = edge.ends.source.refs.length >= edge.ends.target.refs.length ? edge.ends.source : edge.ends.target;
  const measured = end.traffic === NO_TRAFFIC ? addTraffic(edge.ends.source.traffic, edge.ends.target.traffic) : end.traffic;
  const [one, other] = [source.replace("router:", ""), target.replace("router:", "")];
  const there = costs.get(`${one}>${other}`) ?? costs.get(`${other}>${one}`) ?? null;
  const back = costs.get(`${other}>${one}`) ?? there;
  return {
    id: `${source}>${target}`,
    source,
    target,
    kind,
    cost: kind !== "inter-router" || there === null || back === null ? null : Math.max(there, back),
    connections: end.refs,
    forward: measured.out,
    backward: measured.in,
    load: measured.load,
    goneSince: null,
  };
}

/** Return the graph of everything that the routers of the snapshot report; rates are those of the samples. */
export function buildTopology(snapshot: Snapshot, samples: LinkSamples = NO_SAMPLES): Topology {
  const builder = new Builder(presentRouters(snapshot));
  const answers = new Map(snapshot.routers.map((router) => [router.id, router]));
  for (const id of builder.present) builder.node(`router:${id}`, "router", id, null).error = answers.get(id)?.error ?? "";
  for (const id of builder.present) {
    const router = answers.get(id);
    if (router !== undefined) builder.addRouter(router, `router:${id}`, samples);
  }
  // An edge router is there while a router above reports its connection, or while the console is connected to it.
  for (const router of snapshot.routers) {
    const id = `edge:${router.id}`;
    if (!isEdgeRouter(router) || !(builder.nodes.has(id) || router.address === "")) continue;
    builder.node(id, "edge", router.id, null).error = router.error ?? "";
    builder.addRouter(router, id, samples);
  }
  const costs = costsBetween(snapshot);
  const edges = [...builder.edges.values()].map((edge) => finished(edge, costs));
  return { nodes: builder.nodes, edges: new Map(edges.map((edge) => [edge.id, edge])), placed: builder.placed };
}
