/** Rates from counters that are looked at now and then: counters begin anew, and clocks jump. */
import { numberOf } from "./numbers";
import { arrivedAt } from "./rows";
import type { Entity, Row, RouterTables, Snapshot } from "./types";

/** Samples further apart than this, in ms, tell nothing of a rate: the page slept, or the clock was set. */
export const LONGEST_GAP_MS = 120_000;
/** Samples nearer to each other than this, in ms, would make a rate of noise. */
export const SHORTEST_GAP_MS = 200;

/** A counter as it was once. `at` is in ms since 1970. */
export interface Sample {
  readonly at: number;
  readonly value: number | null;
}

/**
 * Return the rate per second between two samples; null where none can be told.
 *
 * A counter that is lower than before began anew (its router restarted): what it lost is unknown, and so is the rate.
 * So it is where the clock went back, stood still, or went further than LONGEST_GAP_MS.
 */
export function rate(before: Sample, now: Sample): number | null {
  const gap = now.at - before.at;
  if (before.value === null || now.value === null || now.value < before.value) return null;
  if (gap < SHORTEST_GAP_MS || gap > LONGEST_GAP_MS) return null;
  return ((now.value - before.value) * 1000) / gap;
}

/** One table of one router, and when it came. */
export interface Look {
  readonly at: number;
  readonly rows: readonly Row[];
}

/** Two looks at one table of one router. */
export interface Looks {
  readonly before: Look | null;
  readonly now: Look;
}

/** The looks at one table, by the router's id. */
export type LooksByRouter = ReadonlyMap<string, Looks>;

/**
 * Take in a snapshot: a router whose table is a new one gets a new look, the others keep theirs, and those that are not
 * in the snapshot are forgotten. The same map is returned when nothing is new.
 */
export function look(known: LooksByRouter, snapshot: Snapshot, entity: Entity): LooksByRouter {
  const next = new Map<string, Looks>();
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

/** Return the rate of `attribute` for each row of a table, by the row's key; null where it is not known. */
export function ratesOf(looks: Looks | undefined, attribute: string, keyOf: (row: Row) => string): Map<string, number | null> {
  const found = new Map<string, number | null>();
  if (looks === undefined) return found;
  const { before, now } = looks;
  const earlier = new Map(before?.rows.map((row) => [keyOf(row), numberOf(row[attribute])]));
  for (const row of now.rows) {
    const key = keyOf(row);
    const value = earlier.get(key);
    const known = before !== null && value !== undefined;
    found.set(key, known ? rate({ at: before.at, value }, { at: now.at, value: numberOf(row[attribute]) }) : null);
  }
  return found;
}

/** Return the rate of `attribute` of a table with one row, such as "router". */
export function rateOf(looks: Looks | undefined, attribute: string): number | null {
  return ratesOf(looks, attribute, () => "").get("") ?? null;
}

/** Return the first row of a table with one row, such as "router". */
export function only(router: RouterTables, entity: Entity): Row | undefined {
  return router.tables[entity]?.[0];
}
