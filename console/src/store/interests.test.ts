import { expect, it } from "vitest";

import { isDue, tableRequestsFor, pollIntervalMs } from "./interests";

it("merges attributes and takes the shortest interval", () => {
  const requests = tableRequestsFor(
    [
      { wanted: { connection: ["role"], router: "all" }, everyMs: 5_000 },
      { wanted: { connection: ["role", "host"] }, everyMs: 1_000 },
      { wanted: { router: ["id"] }, everyMs: 7_000 },
    ],
    "A",
  );
  expect(requests).toEqual([
    { entity: "connection", attributes: ["role", "host"], everyMs: 1_000 },
    { entity: "router", attributes: "all", everyMs: 5_000 },
  ]);
});

it("leaves out tables that components want of other routers", () => {
  const interests = [{ wanted: { log: "all" as const }, everyMs: 1_000, routers: ["B"] }];
  expect(tableRequestsFor(interests, "A")).toEqual([]);
  expect(tableRequestsFor(interests, "B")).toHaveLength(1);
});

it("lengthens the interval for large tables, busy routers and hidden pages", () => {
  expect(pollIntervalMs(2_000, { rows: 500, tookMs: 10 }, false)).toBe(2_000);
  expect(pollIntervalMs(2_000, { rows: 10_000, tookMs: 10 }, false)).toBe(10_000);
  expect(pollIntervalMs(2_000, { rows: 1_000_000, tookMs: 10 }, false)).toBe(60_000);
  expect(pollIntervalMs(2_000, { rows: 1, tookMs: 300 }, false)).toBe(6_000);
  expect(pollIntervalMs(2_000, { rows: 1, tookMs: 4_900 }, false)).toBe(10_000);
  expect(pollIntervalMs(2_000, { rows: 0, tookMs: 0 }, true)).toBe(15_000);
});

it("requests tables of different intervals at the same times", () => {
  const requestTimes = (first: number, intervalMs: number): number[] => {
    const requested = [first];
    for (let now = first; now < 13_000; now += 100) if (isDue(requested.at(-1) ?? 0, now, intervalMs)) requested.push(now);
    return requested.slice(1);
  };
  expect(requestTimes(700, 2_000)).toEqual([2_000, 4_000, 6_000, 8_000, 10_000, 12_000]);
  expect(requestTimes(700, 4_000)).toEqual([4_000, 8_000, 12_000]);
  expect(requestTimes(1_900, 2_000)[0]).toBe(4_000);
});
