import { expect, it } from "vitest";

import { textOf } from "./numbers";
import { LONGEST_GAP_MS, look, rate, ratesOf } from "./rates";
import { seenTables } from "./rows";
import type { Row, Snapshot } from "./types";

it("tells the rate between two samples", () => {
  expect(rate({ at: 1_000, value: 10 }, { at: 3_000, value: 20 })).toBe(5);
});

it.each([
  ["a counter that began anew", { at: 0, value: 10 }, { at: 1_000, value: 3 }],
  ["a clock that went back", { at: 5_000, value: 1 }, { at: 1_000, value: 2 }],
  ["a clock that stood still", { at: 5_000, value: 1 }, { at: 5_000, value: 2 }],
  ["a clock that jumped ahead", { at: 0, value: 1 }, { at: LONGEST_GAP_MS + 1, value: 2 }],
  ["a value that is missing", { at: 0, value: null }, { at: 1_000, value: 2 }],
])("tells no rate after %s", (_why, before, now) => {
  expect(rate(before, now)).toBeNull();
});

const snapshotOf = (at: number, rows: readonly Row[]): Snapshot => ({
  at,
  routers: [{ id: "A", address: "", at, tables: { "router.address": rows } }],
});

it("takes a table that did not change for the look it was, and follows its rows by their keys", () => {
  const first = [{ key: "M0a", n: 10n }, { key: "M0b", n: 5 }];
  const one = look(new Map(), snapshotOf(1_000, first), "router.address");
  expect(look(one, snapshotOf(2_000, first), "router.address")).toBe(one);
  const two = look(one, snapshotOf(3_000, [{ key: "M0b", n: 9 }, { key: "M0c", n: 1 }, { key: "M0a", n: 10 }]), "router.address");
  const rates = ratesOf(two.get("A"), "n", (row) => textOf(row["key"]));
  expect([...rates]).toEqual([["M0b", 2], ["M0c", null], ["M0a", 0]]);
  expect(look(two, { at: 4_000, routers: [] }, "router.address").size).toBe(0);
});

it("counts the time from when the table itself arrived, not another table of the router", () => {
  const told = (at: number, arrived: number, n: number): Snapshot => ({
    at,
    routers: [{ id: "A", address: "", at, arrived: { "router.address": arrived }, tables: { "router.address": [{ key: "M0a", n }] } }],
  });
  const before = look(new Map(), told(6_000, 1_000, 0), "router.address");
  const now = look(before, told(6_100, 6_100, 510), "router.address");
  expect(ratesOf(now.get("A"), "n", (row) => textOf(row["key"])).get("M0a")).toBe(100);
  const seen = seenTables(new Map(), told(6_000, 1_000, 0), "router.address");
  expect(seen.get("A")?.at).toBe(1_000);
});
