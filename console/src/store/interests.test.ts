import { expect, it } from "vitest";

import { isDue, ordersFor, paceOf } from "./interests";

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

it("asks for large tables and busy routers less often, and for all of them while the page is out of sight", () => {
  expect(paceOf(2_000, { rows: 500, tookMs: 10 }, false)).toBe(2_000);
  expect(paceOf(2_000, { rows: 10_000, tookMs: 10 }, false)).toBe(10_000);
  expect(paceOf(2_000, { rows: 1_000_000, tookMs: 10 }, false)).toBe(60_000);
  expect(paceOf(2_000, { rows: 1, tookMs: 300 }, false)).toBe(6_000);
  expect(paceOf(2_000, { rows: 1, tookMs: 4_900 }, false)).toBe(10_000);
  expect(paceOf(2_000, { rows: 0, tookMs: 0 }, true)).toBe(15_000);
});

it("asks for tables of different paces at the same moments", () => {
  const moments = (first: number, paceMs: number): number[] => {
    const asked = [first];
    for (let now = first; now < 13_000; now += 100) if (isDue(asked.at(-1) ?? 0, now, paceMs)) asked.push(now);
    return asked.slice(1);
  };
  expect(moments(700, 2_000)).toEqual([2_000, 4_000, 6_000, 8_000, 10_000, 12_000]);
  expect(moments(700, 4_000)).toEqual([4_000, 8_000, 12_000]);
  expect(moments(1_900, 2_000)[0]).toBe(4_000);
});
