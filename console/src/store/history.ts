/** Series of numbers over time, kept in memory until the browser closes or reloads the console. */

import { create } from "zustand";
import { useShallow } from "zustand/react/shallow";

import { rate } from "../model/rates";
import { arrivedAt } from "../model/rows";
import type { Entity, History, Snapshot } from "../model/types";
import { addInterest, onSnapshot } from "./snapshot";

/** Samples of a series at most: one hour at one sample each second. */
export const MAX_SAMPLES = 3_600;
/** Series that are recorded at once, at most. */
export const MAX_SERIES = 64;
const SAMPLE_MS = 1_000;

/** One attribute of one entity, or its change per second. */
export interface SeriesKey {
  readonly router: string;
  readonly entity: Entity;
  readonly identity: string;
  readonly attribute: string;
  /** Whether the series holds the change per second instead of the value. */
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

/** Return the key as text, for useHistory and URLs. */
export const historyKey = (key: SeriesKey): string =>
  JSON.stringify([key.router, key.entity, key.identity, key.attribute, key.rate]);

/** Return the key that a text of historyKey stands for; undefined if it is the name of a series that a page records. */
export function parseSeriesKey(text: string): SeriesKey | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (!Array.isArray(parsed) || parsed.length !== 5) return undefined;
    const [router, entity, identity, attribute, rate] = parsed as unknown[];
    if (typeof router !== "string" || typeof entity !== "string" || typeof identity !== "string") return undefined;
    return typeof attribute === "string" ? { router, entity, identity, attribute, rate: rate === true } : undefined;
  } catch {
    return undefined;
  }
}

/** Add a sample to the series `key`: `at` is in ms since 1970, a null value is a missing sample. Later samples are removed. */
export function record(key: string, at: number, value: number | null): void {
  const buffer = buffers.get(key) ?? { times: [], values: [] };
  if (at === buffer.times.at(-1)) return;
  // The clock was set back: samples from its future would bend the line backwards.
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

/** Record the attribute that `key` (of historyKey) names until unfollow(); return false if MAX_SERIES are recorded already. */
export function follow(key: string): boolean {
  const parsed = parseSeriesKey(key);
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

/** Stop recording the series, and delete it. */
export function unfollow(key: string): void {
  following.get(key)?.();
  following.delete(key);
  buffers.delete(key);
  store.setState(({ series }) => ({ series: Object.fromEntries(Object.entries(series).filter(([name]) => name !== key)) }));
}

/** Return the keys of the series that are recorded now. */
export const followed = (): string[] => [...following.keys()];

function sampler(key: string, { router, entity, identity, attribute, rate: isRate }: SeriesKey): (snapshot: Snapshot) => void {
  let last: { rows: unknown; at: number; value: number | null } | undefined;
  return (snapshot) => {
    const tables = snapshot.routers.find((one) => one.id === router);
    const rows = tables?.tables[entity];
    // Each arriving table makes a snapshot; a sample is new only if this table is.
    if (tables === undefined || rows === undefined || rows === last?.rows) return;
    const row = rows.find((one) => one["identity"] === identity);
    const now = row?.[attribute];
    const value = typeof now === "bigint" ? Number(now) : typeof now === "number" ? now : null;
    const previous = last;
    const at = arrivedAt(tables, entity);
    last = { rows, at, value };
    if (!isRate) record(key, at, value);
    else if (previous !== undefined) record(key, at, rate(previous, last));
  };
}

/** Return the series `key`, which record() or follow() fills; an empty one if there is none. */
export function useHistory(key: string): History {
  return store(({ series }) => series[key] ?? EMPTY);
}

/** Return the series of these keys in their order; see useHistory. */
export function useHistories(keys: readonly string[]): readonly History[] {
  return store(useShallow(({ series }) => keys.map((key) => series[key] ?? EMPTY)));
}
