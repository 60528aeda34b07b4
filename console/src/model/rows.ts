/** Attributes of rows read with a default: a router may leave out, refuse or misspell any of them. */

import type { Row, RouterTables, Snapshot, Value } from "./types";

/** Return the attribute as text, or "" where it is absent or no text. */
export function textOf(row: Row, key: string): string {
  const value = row[key];
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "bigint" ? String(value) : "";
}

/** Return the attribute as a number, or `missing` where it is absent or no number. */
export function numberOf(row: Row, key: string, missing = 0): number {
  const value = row[key];
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" && Number.isFinite(value) ? value : missing;
}

/** Return the map entries of the attribute, or an empty map. */
export function mapOf(row: Row, key: string): Readonly<Record<string, Value>> {
  const value = row[key];
  if (value === null || value === undefined || typeof value !== "object") return {};
  if (Array.isArray(value) || value instanceof Uint8Array) return {};
  return value as Readonly<Record<string, Value>>;
}

/** Return the texts of a list attribute; other elements are left out. */
export function textsOf(row: Row, key: string): readonly string[] {
  const value = row[key];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

/** Return the rows of one table, or none. */
export function rowsOf(router: RouterTables | undefined, entity: string): readonly Row[] {
  return router?.tables[entity] ?? [];
}

/** Return when a table of a router arrived, in ms since 1970: tables are asked for at different paces. */
export const arrivedAt = (router: RouterTables, entity: string): number => router.arrived?.[entity] ?? router.at;

/** Return the routers' tables by router id. */
export function routersById(snapshot: Snapshot): ReadonlyMap<string, RouterTables> {
  return new Map(snapshot.routers.map((router) => [router.id, router]));
}

/** One table of one router, with the moment (ms since 1970) at which it was first seen. */
export interface SeenTable {
  readonly rows: readonly Row[];
  readonly at: number;
}

/** Return each router's table with its moment; a table that has not been fetched anew since `before` keeps its own. */
export function seenTables(
  before: ReadonlyMap<string, SeenTable>,
  snapshot: Snapshot,
  entity: string,
): ReadonlyMap<string, SeenTable> {
  const seen = new Map<string, SeenTable>();
  for (const router of snapshot.routers) {
    const rows = router.tables[entity];
    if (rows === undefined) continue;
    const known = before.get(router.id);
    seen.set(router.id, known?.rows === rows ? known : { rows, at: arrivedAt(router, entity) });
  }
  return seen;
}
