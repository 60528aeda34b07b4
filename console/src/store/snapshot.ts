/** The tables of all routers as last seen, and the one poller that keeps them fresh. */

import { useEffect } from "react";
import { create } from "zustand";

import { ManagementError } from "../amqp/errors";
import { query } from "../amqp/management";
import type { Entity, RouterRef, RouterTables, Row, Snapshot } from "../model/types";
import { isDue, ordersFor, paceOf, type Effort, type Interest, type Wanted } from "./interests";
import { link } from "./link";

/** How often the poller looks for what is due, and at most how often the page is drawn anew for it. */
const TICK_MS = 100;
/** Answers that another request a moment later would not change: not allowed, unknown, not implemented. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 404, 501]);
/** A table that was refused is asked for again after so long: each refusal is a denial in the router's counts. */
const REFUSED_MS = 60_000;

interface Polled {
  router: RouterRef;
  tables: Partial<Record<Entity, readonly Row[]>>;
  arrived: Partial<Record<Entity, number>>;
  errors: Map<Entity, string>;
  /** What the router refused to show, and when it is asked for again. */
  refused: Map<Entity, { why: string; until: number }>;
  /** When each table was last asked for, and which are under way. */
  asked: Map<Entity, { at: number; attributes: string }>;
  underWay: Set<Entity>;
  efforts: Map<Entity, Effort>;
  at: number;
  /** Why the router is no longer asked. */
  gone?: string;
}

const store = create<Snapshot>(() => ({ at: 0, routers: [] }));
const interests = new Map<number, Interest>();
const polled = new Map<string, Polled>();
const afterCommit = new Set<(snapshot: Snapshot) => void>();
let lastInterest = 0;
let changed = false;
let ticking: ReturnType<typeof setInterval> | undefined;

/** Poll these routers from now on; those that are not among them any longer stay as they were last seen, with an error. */
export function pollRouters(routers: readonly RouterRef[]): void {
  for (const router of routers) {
    const known = polled.get(router.id);
    if (known === undefined) {
      polled.set(router.id, {
        router,
        tables: {},
        arrived: {},
        errors: new Map(),
        refused: new Map(),
        asked: new Map(),
        underWay: new Set(),
        efforts: new Map(),
        at: 0,
      });
    } else {
      known.router = router;
      delete known.gone;
    }
  }
  const there = new Set(routers.map((router) => router.id));
  for (const [id, entry] of polled) {
    if (!there.has(id)) entry.gone = "left the network";
  }
  changed = true;
  ticking ??= setInterval(tick, TICK_MS);
}

/** Stop polling and forget everything, as after a logout. */
export function forgetRouters(): void {
  clearInterval(ticking);
  ticking = undefined;
  polled.clear();
  store.setState({ at: 0, routers: [] });
}

/** Note that nothing arrives at present: every router is shown with `why` until it answers again. */
export function markLost(why: string): void {
  for (const entry of polled.values()) {
    entry.errors.set("", why);
    entry.asked.clear();
    entry.refused.clear();
  }
  changed = true;
}

function tick(): void {
  if (link() !== undefined) {
    for (const entry of polled.values()) if (entry.gone === undefined) askDue(entry);
  }
  if (changed) commit();
}

function askDue(entry: Polled): void {
  const now = performance.now();
  for (const { entity, attributes, everyMs } of ordersFor(interests.values(), entry.router.id)) {
    const last = entry.asked.get(entity);
    const wanted = attributes === "all" ? "all" : attributes.join();
    // What is wanted anew is asked for at once, whenever the last answer came.
    const isRefused = now < (entry.refused.get(entity)?.until ?? 0);
    const due = !isRefused && (last?.attributes !== wanted || isDue(last.at, now, paceOf(everyMs, entry.efforts.get(entity))));
    if (due && !entry.underWay.has(entity)) {
      entry.asked.set(entity, { at: now, attributes: wanted });
      void fetchTable(entry, entity, attributes);
    }
  }
}

async function fetchTable(entry: Polled, entity: Entity, attributes: readonly string[] | "all"): Promise<void> {
  const connection = link();
  if (connection === undefined) return;
  entry.underWay.add(entity);
  try {
    const begun = performance.now();
    const rows = await query(connection, entry.router.address, entity, attributes);
    entry.efforts.set(entity, { rows: rows.length, tookMs: performance.now() - begun });
    entry.tables = { ...entry.tables, [entity]: rows };
    entry.at = Date.now();
    entry.arrived = { ...entry.arrived, [entity]: entry.at };
    entry.errors.delete(entity);
    entry.errors.delete("");
    entry.refused.delete(entity);
  } catch (error) {
    if (link() !== connection) return;
    const why = error instanceof Error ? error.message : String(error);
    if (error instanceof ManagementError && REFUSALS.has(error.status)) {
      entry.refused.set(entity, { why, until: performance.now() + REFUSED_MS });
      entry.errors.delete(entity);
    } else {
      entry.errors.set(entity, why);
    }
  } finally {
    entry.underWay.delete(entity);
    changed = true;
  }
}

function shown({ router, tables, arrived, at, errors, refused, gone }: Polled): RouterTables {
  const error = gone ?? errors.get("") ?? [...errors.values()][0];
  const told = { id: router.id, address: router.address, tables, arrived, at, ...(error === undefined ? {} : { error }) };
  return refused.size === 0 ? told : { ...told, refused: Object.fromEntries([...refused].map(([entity, { why }]) => [entity, why])) };
}

function commit(): void {
  changed = false;
  const snapshot = { at: Date.now(), routers: [...polled.values()].map(shown) };
  store.setState(snapshot);
  for (const listener of afterCommit) listener(snapshot);
}

/** Poll for `interest` until the returned function is called. */
export function addInterest(interest: Interest): () => void {
  lastInterest += 1;
  const id = lastInterest;
  interests.set(id, interest);
  return () => interests.delete(id);
}

/** Call `listener` with each new snapshot until the returned function is called. */
export function onSnapshot(listener: (snapshot: Snapshot) => void): () => void {
  afterCommit.add(listener);
  return () => afterCommit.delete(listener);
}

/** Return a table of a router as last seen; no rows if it has not been seen. */
export const lastTable = (routerId: string, entity: Entity): readonly Row[] => polled.get(routerId)?.tables[entity] ?? [];

/** Ask for this table of this router at the next tick, as after a change. */
export function refresh(routerId: string, entity: Entity): void {
  polled.get(routerId)?.asked.delete(entity);
  polled.get(routerId)?.refused.delete(entity);
}

/**
 * Keep these tables fresh while the component is mounted and return all tables as last seen. `wanted` maps an entity to the
 * attributes to fetch, or to "all"; every router is polled, or only those whose ids are in `routers`. What several components
 * want is fetched once.
 */
export function useTables(wanted: Wanted, everyMs: number, routers?: readonly string[]): Snapshot {
  // The text stands for the content, so that an object made anew at each rendering changes nothing.
  const key = JSON.stringify([wanted, everyMs, routers ?? null]);
  useEffect(() => {
    const [tables, every, only] = JSON.parse(key) as [Wanted, number, readonly string[] | null];
    return addInterest({ wanted: tables, everyMs: every, ...(only === null ? {} : { routers: only }) });
  }, [key]);
  return store();
}
