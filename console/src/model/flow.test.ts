import { describe, expect, it } from "vitest";

import { FIRST, LATER } from "./fixtures/network";
import { filterFlows, flowCounts, rates, totals, type Flow, type FlowCounts } from "./flow";
import { MAX_SHOWN, chordShape, sankeyShape } from "./flowshapes";
import { timedTables } from "./rows";
import type { RouterTables, Snapshot } from "./types";

const counts = (snapshot: Snapshot): FlowCounts =>
  flowCounts(snapshot, timedTables(new Map(), snapshot, "router.link"));
const EVERYTHING = { addresses: null, routers: null, withInternal: true };
const USERS = { ...EVERYTHING, withInternal: false };

const find = (flows: readonly Flow[], from: string, address: string, to: string): number =>
  flows.find((flow) => flow.from === from && flow.address === address && flow.to === to)?.value ?? 0;

describe("flows of a live network", () => {
  const perSecond = rates(counts(FIRST), counts(LATER));

  it("have the router at which messages enter, the address and the router at which they leave", () => {
    // Twenty a second come in at A and ten at B; the consumer behind B takes all of them.
    expect(find(perSecond, "A", "queue.1", "B")).toBeGreaterThan(15);
    expect(find(perSecond, "B", "queue.1", "B")).toBeGreaterThan(6);
    expect(find(perSecond, "B", "news.today", "A")).toBeGreaterThan(2);
    expect(find(perSecond, "B", "news.today", "C")).toBeGreaterThan(2);
  });

  it("follow routed links to the router of the sender, and count them once", () => {
    const orders = perSecond.filter((flow) => flow.address === "orders.eu");
    expect(orders.map((flow) => [flow.from, flow.to])).toEqual([["C", "A"]]);
    expect(orders[0]?.value).toBeGreaterThan(2);
  });

  it("count totals since the links were attached", () => {
    expect(find(totals(counts(LATER)), "A", "queue.1", "B")).toBeGreaterThan(1000);
  });

  it("are filtered by address and router", () => {
    const only = filterFlows(perSecond, { ...USERS, addresses: new Set(["queue.1"]) });
    expect(new Set(only.map((flow) => flow.address))).toEqual(new Set(["queue.1"]));
    const ends = filterFlows(perSecond, { ...USERS, routers: new Set(["C"]) });
    expect(ends.every((flow) => flow.from === "C" || flow.to === "C")).toBe(true);
    expect(ends.length).toBeGreaterThan(1);
    const before = filterFlows(totals(counts(LATER)), EVERYTHING).length;
    expect(filterFlows(totals(counts(LATER)), USERS).length).toBeLessThan(before);
  });
});

const counter = (id: string, at: number, histogram: number[], index: number): RouterTables => ({
  id,
  address: "",
  at,
  tables: {
    "router.node": [{ id: "far", index }],
    "router.link": [
      { identity: "7", connectionId: "1", linkDir: "out", owningAddr: "M0a", ingressHistogram: histogram },
    ],
  },
});

describe("rates", () => {
  it("map each router's histogram indexes by its own table of nodes", () => {
    const [one, two] = [counter("near", 1000, [0, 0, 0, 10], 3), counter("near", 3000, [0, 0, 0, 30], 3)];
    const found = rates(counts({ at: 1000, routers: [one] }), counts({ at: 3000, routers: [two] }));
    expect(found).toEqual([{ from: "far", address: "a", to: "near", value: 10 }]);
  });

  it("count from zero after a router restarted", () => {
    const [one, two] = [counter("near", 1000, [500], 3), counter("near", 2000, [4], 3)];
    const found = rates(counts({ at: 1000, routers: [one] }), counts({ at: 2000, routers: [two] }));
    expect(found).toEqual([{ from: "near", address: "a", to: "near", value: 4 }]);
  });

  it("are empty for a router that has answered only once", () => {
    const one = counts({ at: 1000, routers: [counter("near", 1000, [500], 3)] });
    expect(rates(one, one)).toEqual([]);
  });
});

describe("shapes", () => {
  const flows: Flow[] = [
    { from: "A", address: "x", to: "B", value: 3 },
    { from: "A", address: "y", to: "B", value: 2 },
    { from: "B", address: "x", to: "B", value: 1 },
  ];

  it("of chords between routers", () => {
    const { ends, matrix } = chordShape(flows, "router");
    expect(ends.map((end) => end.name)).toEqual(["A", "B"]);
    expect(matrix).toEqual([
      [0, 5],
      [0, 1],
    ]);
  });

  it("of chords by way of addresses", () => {
    const { ends, matrix } = chordShape(flows, "address");
    expect(ends.map((end) => end.name)).toEqual(["A", "B", "x", "y"]);
    expect(matrix).toEqual([
      [0, 0, 3, 2],
      [0, 0, 1, 0],
      [0, 4, 0, 0],
      [0, 2, 0, 0],
    ]);
  });

  it("of a Sankey with and without addresses", () => {
    expect(sankeyShape(flows, "router").links).toEqual([
      { source: "0/0", target: "1/0", value: 5 },
      { source: "0/1", target: "1/0", value: 1 },
    ]);
    expect(sankeyShape(flows, "address").nodes.map((node) => [node.column, node.name])).toEqual([
      [0, "A"],
      [0, "B"],
      [1, "x"],
      [1, "y"],
      [2, "B"],
    ]);
  });

  it("merge the smallest ends if there are more than MAX_SHOWN", () => {
    const many = Array.from({ length: MAX_SHOWN + 20 }, (_, index) => ({
      from: "A",
      address: `a${String(index)}`,
      to: "B",
      value: index + 1,
    }));
    const { nodes, links } = sankeyShape(many, "address");
    expect(nodes.filter((node) => node.kind === "others")).toHaveLength(1);
    const sum = (list: readonly { value: number }[]): number => list.reduce((total, { value }) => total + value, 0);
    expect(sum(links)).toBe(2 * sum(many));
  });
});
