/** Rates from the samples of counters. A counter begins anew when its router restarts, and a clock may jump. */
import { numberOf } from "./numbers";
import { arrivedAt, tableOf, type TimedTable } from "./rows";
import type { Entity, Row, RouterTables, Snapshot } from "./types";

/** Samples further apart than this, in ms, give no rate: the browser suspended the page, or the clock was set. */
export const MAX_GAP_MS = 120_000;
/** Samples nearer to each other than this, in ms, give no rate: it would be noise. */
export const MIN_GAP_MS = 200;

/** The value of a counter at one time. */
export interface Sample {
  /** In ms since 1970. */
  readonly at: number;
  /** Null if the router did not report the counter. */
  readonly value: number | null;
}

/**
 * Return the rate per second between two samples; null if it is unknown.
 *
 * The rate is unknown if the counter is lower than before (its router restarted), and if the clock went back, stood still
 * or went further than MAX_GAP_MS.
 */
export function rate(before: Sample, now: Sample): number | null {
  const gap = now.at - before.at;
  if (before.value === null || now.value === null || now.value < before.value) return null;
  if (gap < MIN_GAP_MS || gap > MAX_GAP_MS) return null;
  return ((now.value - before.value) * 1000) / gap;
}

/** The last two tables of one type that a router answered with. */
export interface TablePair {
  /** Null until the router has answered twice. */
  readonly before: TimedTable | null;
  readonly now: TimedTable;
}

/** The last two tables of one type, by router id. */
export type TablePairs = ReadonlyMap<string, TablePair>;

/**
 * Return the pairs after a snapshot: the table of a router that answered anew moves to `before`, other routers keep their
 * pair, and routers that are not in the snapshot have none. Return `known` itself when no table is new.
 */
export function updatePairs(known: TablePairs, snapshot: Snapshot, entity: Entity): TablePairs {
  const next = new Map<string, TablePair>();
  let changed = false;
  for (const router of snapshot.routers) {
    const rows = router.tables[entity];
    const last = known.get(router.id);
    if (rows === undefined) continue;
    if (last?.now.rows === rows) {
      next.set(router.id, last);
    } else {
      next.set(router.id, { before: last?.now ?? null, now: { at: arrivedAt(router, entity), rows } });
      changed = true;
    }
  }
  return changed || next.size !== known.size ? next : known;
}

/** Return the rate per second of `attribute` for each row of a table, by the row's key; null if it is unknown. */
export function ratesOf(pair: TablePair | undefined, attribute: string, keyOf: (row: Row) => string): Map<string, number | null> {
  const found = new Map<string, number | null>();
  if (pair === undefined) return found;
  const { before, now } = pair;
  const earlier = new Map(before?.rows.map((row) => [keyOf(row), numberOf(row[attribute])]));
  for (const row of now.rows) {
    const key = keyOf(row);
    const value = earlier.get(key);
    const known = before !== null && value !== undefined;
    found.set(key, known ? rate({ at: before.at, value }, { at: now.at, value: numberOf(row[attribute]) }) : null);
  }
  return found;
}

/** Return the rate per second of `attribute` of a table with one row, such as "router"; null if it is unknown. */
export function rateOf(pair: TablePair | undefined, attribute: string): number | null {
  return ratesOf(pair, attribute, () => "").get("") ?? null;
}

/** Return the first row of a table with one row, such as "router". */
export function singleRow(router: RouterTables, entity: Entity): Row | undefined {
  return tableOf(router, entity)[0];
}
