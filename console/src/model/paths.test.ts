import { describe, expect, it } from "vitest";

import { LATER } from "./fixtures/network";
import { addressOfKey, isUserKey } from "./addresskey";
import { knownAddresses, nextHopPath, pathCost, traceAddress } from "./paths";
import { groupEdges } from "./grouping";
import { buildTopology } from "./topology";
import type { RouterTables } from "./types";

const TOPOLOGY = buildTopology(LATER);

describe("keys", () => {
  it("are parsed into addresses", () => {
    expect(["M0queue.1", "M1two", "Ltemp.x", "RB", "", "Corders"].map(addressOfKey)).toEqual([
      "queue.1",
      "two",
      "temp.x",
      "B",
      "",
      "orders",
    ]);
  });

  it("distinguish addresses of users from inner ones", () => {
    expect(["M0queue.1", "Ltemp.x", "M0$management", "RB", ""].map(isUserKey)).toEqual([true, false, false, false, false]);
  });
});

describe("nextHopPath", () => {
  it("follows the next hop of each router on the path", () => {
    expect(nextHopPath(LATER, "A", "C")).toEqual(["A", "B", "C"]);
    expect(nextHopPath(LATER, "C", "A")).toEqual(["C", "B", "A"]);
    expect(nextHopPath(LATER, "A", "A")).toEqual(["A"]);
    expect(pathCost(LATER, "A", "C")).toBe(6);
  });

  it("is empty without a route, and in a loop of next hops", () => {
    expect(nextHopPath(LATER, "A", "nowhere")).toEqual([]);
    const point = (id: string, to: string): RouterTables => ({
      id,
      address: "",
      at: 1,
      tables: { "router.node": [{ id: "C", nextHop: to }] },
    });
    expect(nextHopPath({ at: 1, routers: [point("A", "B"), point("B", "A")] }, "A", "C")).toEqual([]);
  });
});

describe("traceAddress", () => {
  it("finds producers, consumers and the routers between them", () => {
    const view = traceAddress(TOPOLOGY, LATER, "queue.1");
    expect([...view.producers].sort()).toEqual(["clients:router:A/producer", "clients:router:B/producer"]);
    expect([...view.consumers].sort()).toEqual(["clients:edge:E1/consumer", "clients:router:C/consumer"]);
    expect([...view.routers].sort()).toEqual(["router:A", "router:B", "router:C"]);
    // B dialled A: messages from A to B go against the arrow.
    expect(view.ways.get("router:B>router:A")).toEqual({ forward: false, backward: true });
    expect(view.ways.get("edge:E1>router:B")).toEqual({ forward: false, backward: true });
    expect([view.producerLinks, view.consumerLinks]).toEqual([2, 3]);
  });

  it("reports a collapsed group of edge routers as the consumer", () => {
    const view = traceAddress(groupEdges(TOPOLOGY, new Set()), LATER, "queue.1");
    expect([...view.consumers].sort()).toEqual(["clients:router:C/consumer", "edges:router:B"]);
  });

  it("follows a routed link to the broker", () => {
    const view = traceAddress(TOPOLOGY, LATER, "orders.eu");
    expect([...view.producers]).toEqual(["clients:router:C/producer"]);
    expect([...view.consumers]).toEqual(["broker:broker1"]);
    expect(view.ways.get("router:C>router:B")).toEqual({ forward: true, backward: false });
  });

  it("marks only the path to the nearest router for the distribution closest", () => {
    const routers = LATER.routers.map((router) => ({
      ...router,
      tables: {
        ...router.tables,
        "router.address": (router.tables["router.address"] ?? []).map((row) => ({ ...row, distribution: "closest" })),
      },
    }));
    const view = traceAddress(TOPOLOGY, { at: LATER.at, routers }, "queue.1");
    expect(view.ways.has("router:C>router:B")).toBe(false);
    expect(view.ways.has("router:B>router:A")).toBe(true);
  });

  it("is empty for an address that no link has", () => {
    const view = traceAddress(TOPOLOGY, LATER, "unheard");
    expect([view.producers.size, view.consumers.size, view.ways.size]).toEqual([0, 0, 0]);
  });
});

describe("knownAddresses", () => {
  it("lists the addresses of users up to the limit", () => {
    expect(knownAddresses(LATER, 10)).toEqual(["<script>alert(1)</script>\"\u202e'&x", "news.today", "orders.eu", "queue.1"]);
    expect(knownAddresses(LATER, 1)).toHaveLength(1);
  });
});
