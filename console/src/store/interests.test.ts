import { expect, it } from "vitest";

import { ordersFor, paceOf } from "./interests";

it("merges attributes and takes the shortest time", () => {
  const orders = ordersFor(
    [
      { wanted: { connection: ["role"], router: "all" }, everyMs: 5_000 },
      { wanted: { connection: ["role", "host"] }, everyMs: 1_000 },
      { wanted: { router: ["id"] }, everyMs: 7_000 },
    ],
    "A",
  );
  expect(orders).toEqual([
    { entity: "connection", attributes: ["role", "host"], everyMs: 1_000 },
    { entity: "router", attributes: "all", everyMs: 5_000 },
  ]);
});

it("leaves out what is wanted of other routers", () => {
  const interests = [{ wanted: { log: "all" as const }, everyMs: 1_000, routers: ["B"] }];
  expect(ordersFor(interests, "A")).toEqual([]);
  expect(ordersFor(interests, "B")).toHaveLength(1);
});

it("asks for large tables less often, and for all of them while the page is out of sight", () => {
  expect(paceOf(2_000, 500, false)).toBe(2_000);
  expect(paceOf(2_000, 10_000, false)).toBe(10_000);
  expect(paceOf(2_000, 1_000_000, false)).toBe(60_000);
  expect(paceOf(2_000, 0, true)).toBe(15_000);
});
