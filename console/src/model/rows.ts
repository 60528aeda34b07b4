/** Tables, rows and attributes read with a default: a router may leave out or refuse any attribute, or send another type. */

import { numberOf } from "./numbers";
import type { Row, RouterTables, Snapshot, Value } from "./types";

/** Return whether a value is a map: no list, no binary, not null. */
export function isMap(value: Value | undefined): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

/** Return the attribute as text; "" where it is absent, a boolean, a map, a list or a binary. */
export function textAt(row: Row, key: string): string {
  const value = row[key];
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "bigint" ? String(value) : "";
}

/** Return the attribute as a number; `missing` where it is absent or no finite number. */
export function numberAt(row: Row, key: string, missing = 0): number {
  return numberOf(row[key]) ?? missing;
}

/** Return the attribute as a map; an empty one where it is absent or no map. */
export function mapAt(row: Row, key: string): Row {
  const value = row[key];
  return isMap(value) ? value : {};
}

/** Return the texts of a list attribute without its other elements; none where the attribute is no list. */
export function textsAt(row: Row, key: string): readonly string[] {
  const value = row[key];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

/** Return the rows of one table; none where the router does not report it. */
export function tableOf(router: RouterTables | undefined, entity: string): readonly Row[] {
  return router?.tables[entity] ?? [];
}

/** Return whether a table is there with all attributes, and not only with those that some page wants. */
export const isWhole = (router: RouterTables, entity: string): boolean => router.whole?.has(entity) === true;

/** Return the rows of a table that is there with all attributes; no rows otherwise. */
export const wholeTableOf = (router: RouterTables, entity: string): readonly Row[] => (isWhole(router, entity) ? tableOf(router, entity) : []);

/** Return when a table of a router arrived, in ms since 1970. Tables are requested at different intervals. */
export const arrivedAt = (router: RouterTables, entity: string): number => router.arrived?.[entity] ?? router.at;

/** Return the tables of each router, by router id. */
export function routersById(snapshot: Snapshot): ReadonlyMap<string, RouterTables> {
  return new Map(snapshot.routers.map((router) => [router.id, router]));
}

/** One table of one router. */
export interface TimedTable {
  readonly rows: readonly Row[];
  /** When the table arrived, in ms since 1970. */
  readonly at: number;
}

/** Return each router's table with its time of arrival, by router id; a table that is still the one in `before` keeps its entry. */
export function timedTables(
  before: ReadonlyMap<string, TimedTable>,
  snapshot: Snapshot,
  entity: string,
): ReadonlyMap<string, TimedTable> {
  const timed = new Map<string, TimedTable>();
  for (const router of snapshot.routers) {
    const rows = router.tables[entity];
    if (rows === undefined) continue;
    const known = before.get(router.id);
    timed.set(router.id, known?.rows === rows ? known : { rows, at: arrivedAt(router, entity) });
  }
  return timed;
}
