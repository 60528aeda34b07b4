/** Series of numbers over time, kept in memory while the page is open. */

import { create } from "zustand";
import { useShallow } from "zustand/react/shallow";

import { rate } from "../model/rates";
import { arrivedAt } from "../model/rows";
import type { Entity, History, Snapshot } from "../model/types";
import { addInterest, onSnapshot } from "./snapshot";

/** Samples that a series keeps, an hour at one a second; older ones fall out. */
export const MAX_SAMPLES = 3_600;
/** Series that are followed at once. */
export const MAX_SERIES = 64;
const SAMPLE_MS = 1_000;

/** One attribute of one entity, or its change per second. */
export interface SeriesKey {
  readonly router: string;
  readonly entity: Entity;
  readonly identity: string;
  readonly attribute: string;
  readonly rate: boolean;
}

interface Series {
  readonly times: number[];
  readonly values: (number | null)[];
}

const EMPTY: History = { times: [], values: [] };
const store = create<{ readonly series: Readonly<Record<string, History>> }>(() => ({ series: {} }));
const buffers = new Map<string, Series>();
const following = new Map<string, () => void>();

/** Return the text of a key, as useHistory takes it and an address can carry it. */
export const historyKey = (key: SeriesKey): string =>
  JSON.stringify([key.router, key.entity, key.identity, key.attribute, key.rate]);

/** Return the key in a text; undefined if it is the name of a series that a page records itself. */
export function parseKey(text: string): SeriesKey | undefined {
  try {
    const told: unknown = JSON.parse(text);
    if (!Array.isArray(told) || told.length !== 5) return undefined;
    const [router, entity, identity, attribute, rate] = told as unknown[];
    if (typeof router !== "string" || typeof entity !== "string" || typeof identity !== "string") return undefined;
    return typeof attribute === "string" ? { router, entity, identity, attribute, rate: rate === true } : undefined;
  } catch {
    return undefined;
  }
}

/** Add a sample to the series `key`; null for one that did not arrive. Samples that lie after it are forgotten. */
export function record(key: string, at: number, value: number | null): void {
  const buffer = buffers.get(key) ?? { times: [], values: [] };
  if (at === buffer.times.at(-1)) return;
  // The clock was set back: what lies in its future now would bend the line.
  while (at < (buffer.times.at(-1) ?? 0)) {
    buffer.times.pop();
    buffer.values.pop();
  }
  buffers.set(key, buffer);
  buffer.times.push(at);
  buffer.values.push(value);
  if (buffer.times.length > MAX_SAMPLES) {
    buffer.times.shift();
    buffer.values.shift();
  }
  store.setState(({ series }) => ({ series: { ...series, [key]: { times: [...buffer.times], values: [...buffer.values] } } }));
}

/** Begin to follow the attribute that `key` names (see historyKey), and go on until unfollow; false beyond MAX_SERIES. */
export function follow(key: string): boolean {
  const parsed = parseKey(key);
  if (parsed === undefined || following.has(key)) return following.has(key);
  if (following.size >= MAX_SERIES) return false;
  const drop = addInterest({
    wanted: { [parsed.entity]: ["identity", parsed.attribute] },
    everyMs: SAMPLE_MS,
    routers: [parsed.router],
  });
  const stop = onSnapshot(sampler(key, parsed));
  following.set(key, () => {
    drop();
    stop();
  });
  return true;
}

/** Stop following, and forget the series. */
export function unfollow(key: string): void {
  following.get(key)?.();
  following.delete(key);
  buffers.delete(key);
  store.setState(({ series }) => ({ series: Object.fromEntries(Object.entries(series).filter(([name]) => name !== key)) }));
}

/** The keys that are followed now. */
export const followed = (): string[] => [...following.keys()];

function sampler(key: string, { router, entity, identity, attribute, rate: isRate }: SeriesKey): (snapshot: Snapshot) => void {
  let seen: { rows: unknown; at: number; value: number | null } | undefined;
  return (snapshot) => {
    const tables = snapshot.routers.find((one) => one.id === router);
    const rows = tables?.tables[entity];
    // The snapshot is made anew for every table; only a new answer is a new sample.
    if (tables === undefined || rows === undefined || rows === seen?.rows) return;
    const row = rows.find((one) => one["identity"] === identity);
    const now = row?.[attribute];
    const value = typeof now === "bigint" ? Number(now) : typeof now === "number" ? now : null;
    const before = seen;
    const at = arrivedAt(tables, entity);
    seen = { rows, at, value };
    if (!isRate) record(key, at, value);
    else if (before !== undefined) record(key, at, rate(before, seen));
  };
}

/** The series `key`: one that record() fills, or one that follow() has begun. */
export function useHistory(key: string): History {
  return store(({ series }) => series[key] ?? EMPTY);
}

/** The series of all these keys, in their order; see useHistory. */
export function useHistories(keys: readonly string[]): readonly History[] {
  return store(useShallow(({ series }) => keys.map((key) => series[key] ?? EMPTY)));
}
