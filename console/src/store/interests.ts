/** The tables that the components on the page show, merged so that one request serves all of them. */

import type { Attributes } from "../model/attributes";
import type { Entity } from "../model/types";

/** Least time between two requests for a table while the browser hides the page; its charts go on with this interval. */
const HIDDEN_MS = 15_000;
/** The interval of a large table is at least this long for each row, up to MAX_INTERVAL_MS. */
const ROW_MS = 1;
const MAX_INTERVAL_MS = 60_000;
/** The interval for a busy router is at least its time to answer times ANSWER_TIMES, up to MAX_BUSY_INTERVAL_MS. */
const ANSWER_TIMES = 20;
const MAX_BUSY_INTERVAL_MS = 10_000;

/** The attributes to fetch of each table, or "all" of them. */
export type Wanted = { readonly [E in keyof Attributes]?: readonly Attributes[E][] | "all" };

/** The tables that one component shows. */
export interface Interest {
  readonly wanted: Wanted;
  /** The component's interval between two requests, in ms. */
  readonly everyMs: number;
  /** Ids of routers; undefined for all. */
  readonly routers?: readonly string[];
}

/** One table to request from one router, with the shortest interval that a component has for it. */
export interface TableRequest {
  readonly entity: Entity;
  readonly attributes: readonly string[] | "all";
  readonly everyMs: number;
}

/** Return the tables to request from the router `id` for all of `interests`. */
export function tableRequestsFor(interests: Iterable<Interest>, id: string): TableRequest[] {
  const requests = new Map<Entity, TableRequest>();
  for (const { wanted, everyMs, routers } of interests) {
    if (routers !== undefined && !routers.includes(id)) continue;
    for (const [entity, attributes] of Object.entries(wanted)) {
      const known = requests.get(entity);
      requests.set(entity, {
        entity,
        attributes: known === undefined ? attributes : union(known.attributes, attributes),
        everyMs: Math.min(everyMs, known?.everyMs ?? everyMs),
      });
    }
  }
  return [...requests.values()];
}

function union(one: readonly string[] | "all", other: readonly string[] | "all"): readonly string[] | "all" {
  return one === "all" || other === "all" ? "all" : [...new Set([...one, ...other])];
}

const isPageHidden = (): boolean => document.visibilityState === "hidden";

/** The size of the last answer with a table, and the time that the router took for it. */
export interface AnswerCost {
  readonly rows: number;
  readonly tookMs: number;
}

/** Return the interval between two requests for a table, in ms: `everyMs`, or longer after a costly answer or for a hidden page. */
export function pollIntervalMs(everyMs: number, last: AnswerCost = { rows: 0, tookMs: 0 }, isHidden = isPageHidden()): number {
  const forRows = Math.min(last.rows * ROW_MS, MAX_INTERVAL_MS);
  // A multiple of everyMs, so that tables of different intervals are requested at the same times.
  const forBusy = Math.ceil(Math.min(last.tookMs * ANSWER_TIMES, MAX_BUSY_INTERVAL_MS) / everyMs) * everyMs;
  return Math.max(everyMs, isHidden ? HIDDEN_MS : 0, forRows, forBusy);
}

/**
 * Return whether a table requested at `last` is due at `now` (all in ms). Due times are multiples of `intervalMs`, so that tables
 * of different intervals are requested together, which costs a router little more than one request.
 */
export const isDue = (last: number, now: number, intervalMs: number): boolean => now >= Math.round(last / intervalMs + 1) * intervalMs;
