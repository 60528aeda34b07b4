import { expect, it } from "vitest";

import { textOf } from "./numbers";
import { MAX_GAP_MS, updatePairs, rate, ratesOf } from "./rates";
import { timedTables } from "./rows";
import type { Row, Snapshot } from "./types";

it("computes the rate between two samples", () => {
  expect(rate({ at: 1_000, value: 10 }, { at: 3_000, value: 20 })).toBe(5);
});

it.each([
  ["a counter that began anew", { at: 0, value: 10 }, { at: 1_000, value: 3 }],
  ["a clock that went back", { at: 5_000, value: 1 }, { at: 1_000, value: 2 }],
  ["a clock that stood still", { at: 5_000, value: 1 }, { at: 5_000, value: 2 }],
  ["a clock that jumped ahead", { at: 0, value: 1 }, { at: MAX_GAP_MS + 1, value: 2 }],
  ["a value that is missing", { at: 0, value: null }, { at: 1_000, value: 2 }],
])("computes no rate after %s", (_why, before, now) => {
  expect(rate(before, now)).toBeNull();
});

const snapshotOf = (at: number, rows: readonly Row[]): Snapshot => ({
  at,
  routers: [{ id: "A", address: "", at, tables: { "router.address": rows } }],
});

it("keeps the pair of an unchanged table, and matches rows by key", () => {
  const first = [{ key: "M0a", n: 10n }, { key: "M0b", n: 5 }];
  const one = updatePairs(new Map(), snapshotOf(1_000, first), "router.address");
  expect(updatePairs(one, snapshotOf(2_000, first), "router.address")).toBe(one);
  const two = updatePairs(one, snapshotOf(3_000, [{ key: "M0b", n: 9 }, { key: "M0c", n: 1 }, { key: "M0a", n: 10 }]), "router.address");
  const rates = ratesOf(two.get("A"), "n", (row) => textOf(row["key"]));
  expect([...rates]).toEqual([["M0b", 2], ["M0c", null], ["M0a", 0]]);
  expect(updatePairs(two, { at: 4_000, routers: [] }, "router.address").size).toBe(0);
});

it("uses the arrival time of the table itself, not of another table of the router", () => {
  const snapshotWith = (at: number, arrived: number, n: number): Snapshot => ({
    at,
    routers: [{ id: "A", address: "", at, arrived: { "router.address": arrived }, tables: { "router.address": [{ key: "M0a", n }] } }],
  });
  const before = updatePairs(new Map(), snapshotWith(6_000, 1_000, 0), "router.address");
  const now = updatePairs(before, snapshotWith(6_100, 6_100, 510), "router.address");
  expect(ratesOf(now.get("A"), "n", (row) => textOf(row["key"])).get("M0a")).toBe(100);
  const seen = timedTables(new Map(), snapshotWith(6_000, 1_000, 0), "router.address");
  expect(seen.get("A")?.at).toBe(1_000);
});
