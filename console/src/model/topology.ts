/** The network as a graph: routers, edge routers, brokers, clients by router and kind, and the connections between them. */

import { brokerProduct, clientKind, peerKind, type ClientKind } from "./peers";
import { mapAt, numberAt, tableOf, textAt } from "./rows";
import { NO_SAMPLES, NO_TRAFFIC, addTraffic, connectionTraffic, turned, type LinkSamples, type Traffic } from "./traffic";
import type { Row, RouterTables, Snapshot } from "./types";

/** The kind of a node; "edges" is a group of edge routers, "clients" a group of clients. */
export type NodeKind = "router" | "edge" | "edges" | "broker" | "clients";

/** One connection, as a router reports it. */
export interface ConnectionRef {
  /** The id of the router. */
  readonly router: string;
  readonly row: Row;
}

/** A node of the picture. */
export interface TopologyNode {
  /** "router:A", "edge:E1", "edges:router:A", "broker:NAME", "clients:router:A/consumer"; the same at each update. */
  readonly id: string;
  readonly kind: NodeKind;
  /** The router's id, the broker's container id, or "" for groups. The peer chose it. */
  readonly name: string;
  /** The id of the node that this one is drawn beside; null for interior and standalone routers. */
  readonly owner: string | null;
  /** Null for all nodes but groups of clients. */
  readonly clientKind: ClientKind | null;
  /** The product of a broker; "" if it is unknown. */
  readonly product: string;
  /** The connections of clients and brokers to routers. */
  readonly connections: readonly ConnectionRef[];
  /** The ids of the edge routers in a group. */
  readonly members: readonly string[];
  /** Why the router does not answer, wholly or in part; "" while it does. */
  readonly error: string;
  /** When the console first missed the node, in ms since 1970; null while it is there. */
  readonly goneSince: number | null;
}

/** A line of the picture: the connections between two nodes. */
export interface TopologyEdge {
  /** "SOURCE>TARGET"; the same at each update. */
  readonly id: string;
  /** The id of the node that dialled. */
  readonly source: string;
  readonly target: string;
  readonly kind: "inter-router" | "edge" | "broker" | "client";
  /** The cost of the connection between two routers; null if no router reports it. */
  readonly cost: number | null;
  readonly connections: readonly ConnectionRef[];
  /** Messages per second from source to target. */
  readonly forward: number;
  /** Messages per second from target to source. */
  readonly backward: number;
  /** See Traffic. */
  readonly load: number;
  /** See TopologyNode. */
  readonly goneSince: number | null;
}

/** The edge that one connection of a router belongs to. */
export interface ConnectionEdge {
  /** The id of the edge. */
  readonly edge: string;
  /** The id of the node at the other end. */
  readonly peer: string;
  /** Whether messages out of the router go from the edge's source to its target. */
  readonly outIsForward: boolean;
}

/** The network as a graph. */
export interface Topology {
  /** By node id. */
  readonly nodes: ReadonlyMap<string, TopologyNode>;
  /** By edge id. */
  readonly edges: ReadonlyMap<string, TopologyEdge>;
  /** By connectionKey(). */
  readonly edgeByConnection: ReadonlyMap<string, ConnectionEdge>;
}

/** A topology without nodes. */
export const EMPTY: Topology = { nodes: new Map(), edges: new Map(), edgeByConnection: new Map() };

/** Return the key of a router's connection in `Topology.edgeByConnection`. */
export const connectionKey = (router: string, connection: string): string => `${router}\n${connection}`;

/** An edge while the tables are read. */
interface EdgeBuilder {
  readonly kind: TopologyEdge["kind"];
  readonly source: string;
  readonly target: string;
  /** The connections and their traffic (from the source's view) as the source and as the target report them. */
  readonly ends: Record<"source" | "target", { refs: ConnectionRef[]; traffic: Traffic }>;
}

type Changeable<T> = { -readonly [K in keyof T]: T[K] };
type NodeBuilder = Changeable<TopologyNode> & { connections: ConnectionRef[] };

const isEdgeRouter = (router: RouterTables): boolean =>
  router.address.startsWith("_edge/") || tableOf(router, "router").some((row) => textAt(row, "mode") === "edge");

const nodeIds = (router: RouterTables | undefined): string[] =>
  tableOf(router, "router.node").map((row) => textAt(row, "id"));

/** Return the ids of the interior and standalone routers that the connected router reaches. */
export function presentRouters(snapshot: Snapshot): ReadonlySet<string> {
  const home = snapshot.routers.find((router) => router.address === "");
  const roots = home === undefined ? [] : [home];
  if (home !== undefined && nodeIds(home).length === 0) {
    const uplinks = tableOf(home, "connection").filter((row) => peerKind(row) === "uplink");
    const above = new Set(uplinks.map((row) => textAt(row, "container")));
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
  for (const link of tableOf(router, "router.link")) {
    const connection = textAt(link, "connectionId");
    let use = uses.get(connection);
    if (use === undefined) uses.set(connection, (use = { in: false, out: false }));
    use[textAt(link, "linkDir") === "in" ? "in" : "out"] = true;
  }
  return uses;
}

/** Collects nodes and edges, router by router. */
class Builder {
  readonly nodes = new Map<string, NodeBuilder>();
  readonly edges = new Map<string, EdgeBuilder>();
  readonly edgeByConnection = new Map<string, ConnectionEdge>();

  constructor(readonly present: ReadonlySet<string>) {}

  node(id: string, kind: NodeKind, name: string, owner: string | null): NodeBuilder {
    let node = this.nodes.get(id);
    if (node === undefined) {
      const empty = { clientKind: null, product: "", connections: [], members: [], error: "", goneSince: null };
      this.nodes.set(id, (node = { id, kind, name, owner, ...empty }));
    }
    return node;
  }

  /** Add a connection that the router with the node id `self` reports. */
  connect(ref: ConnectionRef, kind: EdgeBuilder["kind"], self: string, peer: string, traffic: Traffic): void {
    const dialled = textAt(ref.row, "dir") === "out";
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
    this.edgeByConnection.set(connectionKey(ref.router, textAt(ref.row, "identity")), { edge: id, peer, outIsForward: dialled });
  }

  addRouter(router: RouterTables, self: string, samples: LinkSamples): void {
    const traffic = connectionTraffic(router, samples);
    const uses = linkUse(router);
    for (const row of tableOf(router, "connection")) {
      const ref = { router: router.id, row };
      const identity = textAt(row, "identity");
      const container = textAt(row, "container");
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
    for (const row of tableOf(router, "router.node")) {
      const id = textAt(row, "id");
      for (const [neighbour, cost] of Object.entries(mapAt(row, "linkCosts")))
        if (typeof cost === "number" || typeof cost === "bigint") costs.set(`${id}>${neighbour}`, Number(cost));
      // Qpid Dispatch reports only the cost of the path to its neighbour.
      if (textAt(row, "nextHop") === "" && id !== router.id && !costs.has(`${router.id}>${id}`))
        costs.set(`${router.id}>${id}`, numberAt(row, "cost", 1));
    }
  return costs;
}

function finishEdge(edge: EdgeBuilder, costs: ReadonlyMap<string, number>): TopologyEdge {
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

/** Return the graph of the network that the routers of the snapshot report, with the rates of `samples`. */
export function buildTopology(snapshot: Snapshot, samples: LinkSamples = NO_SAMPLES): Topology {
  const builder = new Builder(presentRouters(snapshot));
  const answers = new Map(snapshot.routers.map((router) => [router.id, router]));
  for (const id of builder.present) builder.node(`router:${id}`, "router", id, null).error = answers.get(id)?.error ?? "";
  for (const id of builder.present) {
    const router = answers.get(id);
    if (router !== undefined) builder.addRouter(router, `router:${id}`, samples);
  }
  // An edge router is present while an interior router reports its connection, or while the console is connected to it.
  for (const router of snapshot.routers) {
    const id = `edge:${router.id}`;
    if (!isEdgeRouter(router) || !(builder.nodes.has(id) || router.address === "")) continue;
    builder.node(id, "edge", router.id, null).error = router.error ?? "";
    builder.addRouter(router, id, samples);
  }
  const costs = costsBetween(snapshot);
  const edges = [...builder.edges.values()].map((edge) => finishEdge(edge, costs));
  return { nodes: builder.nodes, edges: new Map(edges.map((edge) => [edge.id, edge])), edgeByConnection: builder.edgeByConnection };
}
