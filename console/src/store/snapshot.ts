/** The tables of all routers as last received, and the one poller that keeps them fresh. */

import { useEffect } from "react";
import { create } from "zustand";

import { ManagementError } from "../amqp/errors";
import { queryTable } from "../amqp/management";
import type { Entity, RouterRef, RouterTables, Row, Snapshot } from "../model/types";
import { isDue, tableRequestsFor, pollIntervalMs, type AnswerCost, type Interest, type Wanted } from "./interests";
import { currentConnection } from "./current";

/** Interval at which the poller requests due tables; the page is redrawn at most as often. */
const TICK_MS = 100;
/** Status codes of lasting refusals: bad request, not allowed, unknown, not implemented. */
const REFUSALS: ReadonlySet<number> = new Set([400, 403, 404, 501]);
/** Time until a refused table is requested again: the router counts each refusal as a denial. */
const REFUSED_MS = 60_000;

/** One router and its tables, with the state of the requests. */
interface Polled {
  router: RouterRef;
  tables: Partial<Record<Entity, readonly Row[]>>;
  arrived: Partial<Record<Entity, number>>;
  whole: ReadonlySet<Entity>;
  errors: Map<Entity, string>;
  /** The workers that are missing in the tables. */
  missing: Map<Entity, string>;
  /** The tables that the router refused, and when they are requested again (performance.now()). */
  refused: Map<Entity, { reason: string; until: number }>;
  /** When each table was last requested (performance.now()), and which requests are under way. */
  requested: Map<Entity, { at: number; attributes: string }>;
  underWay: Set<Entity>;
  costs: Map<Entity, AnswerCost>;
  at: number;
  /** Why the router is no longer polled; absent while it is. */
  stoppedReason?: string;
}

const store = create<Snapshot>(() => ({ at: 0, routers: [] }));
const interests = new Map<number, Interest>();
const polled = new Map<string, Polled>();
const afterCommit = new Set<(snapshot: Snapshot) => void>();
let lastInterest = 0;
let changed = false;
let ticker: ReturnType<typeof setInterval> | undefined;

/** Poll these routers from now on. Other routers keep their last tables, with an error. */
export function pollRouters(routers: readonly RouterRef[]): void {
  for (const router of routers) {
    const known = polled.get(router.id);
    if (known === undefined) {
      polled.set(router.id, {
        router,
        tables: {},
        arrived: {},
        whole: new Set(),
        errors: new Map(),
        missing: new Map(),
        refused: new Map(),
        requested: new Map(),
        underWay: new Set(),
        costs: new Map(),
        at: 0,
      });
    } else {
      known.router = router;
      delete known.stoppedReason;
    }
  }
  const presentIds = new Set(routers.map((router) => router.id));
  for (const [id, entry] of polled) {
    if (!presentIds.has(id)) entry.stoppedReason = "left the network";
  }
  changed = true;
  ticker ??= setInterval(tick, TICK_MS);
}

/** Stop polling and delete all tables, as after a logout. */
export function forgetRouters(): void {
  clearInterval(ticker);
  ticker = undefined;
  polled.clear();
  store.setState({ at: 0, routers: [] });
}

/** Mark every router with the error `reason` until it answers again. */
export function markLost(reason: string): void {
  for (const entry of polled.values()) {
    entry.errors.set("", reason);
    entry.missing.clear();
    entry.requested.clear();
    entry.refused.clear();
  }
  changed = true;
}

function tick(): void {
  if (currentConnection() !== undefined) {
    for (const entry of polled.values()) if (entry.stoppedReason === undefined) requestDueTables(entry);
  }
  if (changed) commit();
}

function requestDueTables(entry: Polled): void {
  const now = performance.now();
  for (const { entity, attributes, everyMs } of tableRequestsFor(interests.values(), entry.router.id)) {
    const last = entry.requested.get(entity);
    const wanted = attributes === "all" ? "all" : attributes.join();
    // A component that wants other attributes gets them at once, whenever the last answer came.
    const isRefused = now < (entry.refused.get(entity)?.until ?? 0);
    const due = !isRefused && (last?.attributes !== wanted || isDue(last.at, now, pollIntervalMs(everyMs, entry.costs.get(entity))));
    if (due && !entry.underWay.has(entity)) {
      entry.requested.set(entity, { at: now, attributes: wanted });
      void fetchTable(entry, entity, attributes);
    }
  }
}

/** Return the attributes to request: the rows of some tables have also the number of their worker, if the router has several. */
function withWorker(router: RouterRef, entity: Entity, attributes: readonly string[] | "all"): readonly string[] | "all" {
  const hasWorker = router.workers !== undefined && (entity === "connection" || entity === "router.link");
  return hasWorker && attributes !== "all" ? [...attributes, "worker"] : attributes;
}

async function fetchTable(entry: Polled, entity: Entity, attributes: readonly string[] | "all"): Promise<void> {
  const connection = currentConnection();
  if (connection === undefined) return;
  entry.underWay.add(entity);
  try {
    const begun = performance.now();
    const { rows, missing } = await queryTable(connection, entry.router.address, entity, withWorker(entry.router, entity, attributes));
    entry.costs.set(entity, { rows: rows.length, tookMs: performance.now() - begun });
    entry.tables = { ...entry.tables, [entity]: rows };
    entry.at = Date.now();
    entry.arrived = { ...entry.arrived, [entity]: entry.at };
    const others = [...entry.whole].filter((one) => one !== entity);
    entry.whole = new Set(attributes === "all" ? [...others, entity] : others);
    if (missing === "") entry.missing.delete(entity);
    else entry.missing.set(entity, missing);
    entry.errors.delete(entity);
    entry.errors.delete("");
    entry.refused.delete(entity);
  } catch (error) {
    if (currentConnection() !== connection) return;
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof ManagementError && REFUSALS.has(error.status)) {
      entry.refused.set(entity, { reason, until: performance.now() + REFUSED_MS });
      entry.errors.delete(entity);
    } else {
      entry.errors.set(entity, reason);
    }
  } finally {
    entry.underWay.delete(entity);
    changed = true;
  }
}

function routerTables({ router, tables, arrived, whole, at, errors, missing, refused, stoppedReason }: Polled): RouterTables {
  const error = stoppedReason ?? errors.get("") ?? [...errors.values()][0];
  const [lacking] = missing.values();
  const result = {
    id: router.id,
    address: router.address,
    tables,
    arrived,
    whole,
    at,
    ...(error === undefined ? {} : { error }),
    ...(stoppedReason !== undefined || errors.has("") || errors.has("router") ? { isSilent: true } : {}),
    ...(lacking === undefined ? {} : { missing: lacking }),
  };
  return refused.size === 0 ? result : { ...result, refused: Object.fromEntries([...refused].map(([entity, { reason }]) => [entity, reason])) };
}

function commit(): void {
  changed = false;
  const snapshot = { at: Date.now(), routers: [...polled.values()].map(routerTables) };
  store.setState(snapshot);
  for (const listener of afterCommit) listener(snapshot);
}

/** Poll the tables of `interest` until the returned function is called. */
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

/** Return the last received table of a router; no rows if there is none. */
export const lastTable = (routerId: string, entity: Entity): readonly Row[] => polled.get(routerId)?.tables[entity] ?? [];

/** Request this table of this router at the next tick, as after a change. */
export function refresh(routerId: string, entity: Entity): void {
  polled.get(routerId)?.requested.delete(entity);
  polled.get(routerId)?.refused.delete(entity);
}

/**
 * Keep these tables fresh while the component is mounted, and return all tables as last received. `everyMs` is the interval in
 * ms. `routers` are the ids of the routers to poll, by default all. Requests of several components are merged.
 */
export function useTables(wanted: Wanted, everyMs: number, routers?: readonly string[]): Snapshot {
  // Compare by content: components may pass a new object at each rendering.
  const key = JSON.stringify([wanted, everyMs, routers ?? null]);
  useEffect(() => {
    const [tables, every, only] = JSON.parse(key) as [Wanted, number, readonly string[] | null];
    return addInterest({ wanted: tables, everyMs: every, ...(only === null ? {} : { routers: only }) });
  }, [key]);
  return store();
}
