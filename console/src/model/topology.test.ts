import { describe, expect, it } from "vitest";

import { FIRST, LATER } from "./fixtures/network";
import { withGone, withoutGone } from "./gone";
import { groupEdges } from "./grouping";
import { bounds, placeNodes, pointOf } from "./layout";
import { buildTopology, presentRouters, type Topology } from "./topology";
import { NO_SAMPLES, loadBand, rateText, sampleLinks } from "./traffic";
import type { RouterTables, Snapshot } from "./types";


const SAMPLES = sampleLinks(sampleLinks(NO_SAMPLES, FIRST), LATER);

const without = (id: string, snapshot: Snapshot = LATER): Snapshot => ({
  ...snapshot,
  routers: snapshot.routers.map((router): RouterTables => {
    if (router.id === id) return { ...router, error: "no answer within 5 s" };
    const keep = <T extends Readonly<Record<string, unknown>>>(rows: readonly T[] | undefined, key: string): T[] =>
      (rows ?? []).filter((row) => row[key] !== id);
    const tables = {
      ...router.tables,
      "router.node": keep(router.tables["router.node"], "id"),
      connection: keep(router.tables["connection"], "container"),
    };
    return { ...router, tables };
  }),
});

describe("buildTopology of a live network", () => {
  const topology = buildTopology(LATER, SAMPLES);

  it("has every router, edge router, broker and group of clients", () => {
    expect([...topology.nodes.keys()].sort()).toEqual([
      "broker:broker1",
      "clients:edge:E1/consumer",
      "clients:edge:E1/producer",
      "clients:edge:E2/consumer",
      "clients:router:A/consumer",
      "clients:router:A/idle",
      "clients:router:A/producer",
      "clients:router:B/consumer",
      "clients:router:B/producer",
      "clients:router:C/consumer",
      "clients:router:C/producer",
      "edge:E1",
      "edge:E2",
      "router:A",
      "router:B",
      "router:C",
    ]);
    expect(topology.nodes.get("broker:broker1")).toMatchObject({ product: "Qpid C++ broker", owner: "router:A" });
    expect(topology.nodes.get("clients:router:C/consumer")?.connections).toHaveLength(3);
  });

  it("has one edge for each connection, from the router that dialled, with its cost", () => {
    const between = [...topology.edges.values()].filter((edge) => edge.kind === "inter-router");
    expect(between.map((edge) => [edge.id, edge.cost, edge.connections.length])).toEqual([
      ["router:B>router:A", 1, 1],
      ["router:C>router:B", 5, 1],
    ]);
    expect(topology.edges.get("edge:E1>router:B")).toMatchObject({ kind: "edge", cost: null });
  });

  it("counts messages per second in both directions", () => {
    // Twenty a second to queue.1 from A to B; about four a second of news and four of orders back.
    const edge = topology.edges.get("router:B>router:A");
    expect(edge?.backward).toBeGreaterThan(15);
    expect(edge?.backward).toBeLessThan(25);
    expect(edge?.forward).toBeGreaterThan(5);
    expect(edge?.forward).toBeLessThan(12);
  });

  it("leaves out a router that the others no longer list, although its last tables are present", () => {
    expect([...presentRouters(without("C"))].sort()).toEqual(["A", "B"]);
    expect(buildTopology(without("C")).nodes.has("router:C")).toBe(false);
  });

  it("takes the network from the uplink if the console is connected to an edge router", () => {
    const routers = LATER.routers.map((router) => ({
      ...router,
      address: router.id === "E1" ? "" : router.id === "A" ? "_topo/0/A/" : router.address,
    }));
    expect([...presentRouters({ at: LATER.at, routers })].sort()).toEqual(["A", "B", "C"]);
  });

  it("has a node for a standalone router", () => {
    const lone: RouterTables = { id: "lone", address: "", at: 1, tables: { "router.node": [] } };
    expect([...buildTopology({ at: 1, routers: [lone] }).nodes.keys()]).toEqual(["router:lone"]);
  });

  it("uses the path cost to a neighbour if a router reports no link costs", () => {
    const routers = LATER.routers.map((router) => ({
      ...router,
      tables: {
        ...router.tables,
        "router.node": (router.tables["router.node"] ?? []).map((row) => ({ ...row, linkCosts: null })),
      },
    }));
    const older = buildTopology({ at: LATER.at, routers });
    expect(older.edges.get("router:C>router:B")?.cost).toBe(5);
  });
});

describe("sampleLinks", () => {
  it("keeps the rates of a table until it arrives anew, although other tables arrive", () => {
    const routers = LATER.routers.map((router) => ({ ...router, at: router.at + 2000 }));
    const again = sampleLinks(SAMPLES, { at: LATER.at + 2000, routers });
    expect(again.get("A")).toBe(SAMPLES.get("A"));
  });

  it("uses the router's own settle rate until there are two tables", () => {
    expect(sampleLinks(NO_SAMPLES, LATER).get("A")?.rates.get("27")).toBeGreaterThan(15);
  });
});

describe("withGone", () => {
  const whole = buildTopology(FIRST);

  it("keeps a missing router and its connections, marked with the time at which they were first missed", () => {
    const gone = withGone(whole, buildTopology(without("C")), 1000);
    expect(gone.nodes.get("router:C")?.goneSince).toBe(1000);
    expect(gone.edges.get("router:C>router:B")?.goneSince).toBe(1000);
    expect(gone.nodes.has("clients:router:C/consumer")).toBe(false);
    const still = withGone(gone, buildTopology(without("C")), 2000);
    expect(still.nodes.get("router:C")?.goneSince).toBe(1000);
    expect([...withoutGone(still).nodes.keys()]).not.toContain("router:C");
  });

  it("removes the mark when the router is back", () => {
    const gone = withGone(whole, buildTopology(without("C")), 1000);
    const back = withGone(gone, buildTopology(LATER), 2000);
    expect(back.nodes.get("router:C")?.goneSince).toBeNull();
    expect(back.edges.get("router:C>router:B")?.goneSince).toBeNull();
  });

  it("does not mark brokers behind a missing router as gone", () => {
    const gone = withGone(whole, buildTopology(without("broker1")), 1000);
    expect(gone.nodes.get("broker:broker1")?.goneSince).toBe(1000);
    const withoutOwner = withGone(whole, { nodes: new Map(), edges: new Map(), edgeByConnection: new Map() }, 1000);
    expect(withoutOwner.nodes.has("broker:broker1")).toBe(false);
  });
});

describe("groupEdges", () => {
  const topology = buildTopology(LATER, SAMPLES);

  it("folds the edge routers of one router and adds up their traffic", () => {
    const grouped = groupEdges(topology, new Set());
    expect(grouped.nodes.get("edges:router:B")?.members).toEqual(["edge:E1", "edge:E2"]);
    expect(grouped.nodes.has("clients:edge:E1/consumer")).toBe(false);
    const line = grouped.edges.get("edges:router:B>router:B");
    const apart = ["edge:E1>router:B", "edge:E2>router:B"].map((id) => topology.edges.get(id)?.backward ?? 0);
    expect(line?.connections).toHaveLength(2);
    expect(line?.backward).toBeCloseTo((apart[0] ?? 0) + (apart[1] ?? 0));
  });

  it("leaves an expanded group as it is", () => {
    expect(groupEdges(topology, new Set(["edges:router:B"]))).toBe(topology);
  });
});

describe("placeNodes", () => {
  const topology = buildTopology(LATER);
  const places = placeNodes(topology, new Map());

  it("gives every node a place without overlap", () => {
    const points = [...topology.nodes.keys()].map((id) => pointOf(topology, places, id));
    for (const [index, one] of points.entries())
      for (const other of points.slice(index + 1)) expect(Math.hypot(one.x - other.x, one.y - other.y)).toBeGreaterThan(25);
    const box = bounds(topology, places);
    expect(points.every((point) => point.x > box.x && point.x < box.x + box.width)).toBe(true);
  });

  it("keeps the places of nodes when other nodes appear and disappear", () => {
    const fewer = buildTopology(without("C"));
    const before = placeNodes(fewer, new Map());
    const after = placeNodes(topology, before);
    for (const id of fewer.nodes.keys()) expect(after.get(id)).toEqual(before.get(id));
    expect(after.has("router:C")).toBe(true);
  });

  it("places a hundred routers with ten groups each", () => {
    const nodes = new Map(topology.nodes);
    const edges = new Map(topology.edges);
    const pattern = topology.nodes.get("router:A");
    const line = topology.edges.get("router:B>router:A");
    if (pattern === undefined || line === undefined) throw new Error("the fixture has no router A");
    for (let index = 0; index < 100; index += 1) {
      const id = `router:n${String(index)}`;
      nodes.set(id, { ...pattern, id });
      const target = `router:n${String(Math.floor(index / 2))}`;
      edges.set(`${id}>${target}`, { ...line, id: `${id}>${target}`, source: id, target });
      for (let group = 0; group < 10; group += 1)
        nodes.set(`${id}/${String(group)}`, { ...pattern, id: `${id}/${String(group)}`, kind: "clients", owner: id });
    }
    const large: Topology = { nodes, edges, edgeByConnection: new Map() };
    expect(placeNodes(large, new Map()).size).toBe(nodes.size);
  });
});

describe("words", () => {
  it("names the band of a link's load", () => {
    expect([0, 0.3, 0.8, 1.5].map(loadBand)).toEqual(["free", "filling", "full", "congested"]);
  });

  it("formats rates as short text", () => {
    expect([0, 0.04, 0.42, 25.4, 1234, 5.67e6].map(rateText)).toEqual(["0", "0", "0.4", "25", "1.2k", "5.7M"]);
  });
});
