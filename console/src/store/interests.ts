/** What the components on the page want to see, merged: one poll serves all of them. */

import type { Entity } from "../model/types";

/** A page that is out of sight asks so seldom, which is enough for its charts to go on. */
const HIDDEN_MS = 15_000;
/** A table is asked for at most once in so many ms for each of its rows, and no more seldom than once in LONGEST_MS. */
const ROW_MS = 1;
const LONGEST_MS = 60_000;
/** A router that takes long to answer has more to do than to be looked at: it is asked so many times its answer's time later. */
const ANSWER_TIMES = 20;
const LONGEST_FOR_BUSY_MS = 10_000;

export type Wanted = Readonly<Record<Entity, readonly string[] | "all">>;

export interface Interest {
  readonly wanted: Wanted;
  readonly everyMs: number;
  /** Ids of routers; undefined for all. */
  readonly routers?: readonly string[];
}

/** One table of one router, as often as the most demanding component wants it. */
export interface Order {
  readonly entity: Entity;
  readonly attributes: readonly string[] | "all";
  readonly everyMs: number;
}

/** Return what to poll from the router `id` for all of `interests`. */
export function ordersFor(interests: Iterable<Interest>, id: string): Order[] {
  const orders = new Map<Entity, Order>();
  for (const { wanted, everyMs, routers } of interests) {
    if (routers !== undefined && !routers.includes(id)) continue;
    for (const [entity, attributes] of Object.entries(wanted)) {
      const known = orders.get(entity);
      orders.set(entity, {
        entity,
        attributes: known === undefined ? attributes : union(known.attributes, attributes),
        everyMs: Math.min(everyMs, known?.everyMs ?? everyMs),
      });
    }
  }
  return [...orders.values()];
}

function union(one: readonly string[] | "all", other: readonly string[] | "all"): readonly string[] | "all" {
  return one === "all" || other === "all" ? "all" : [...new Set([...one, ...other])];
}

const isOutOfSight = (): boolean => document.visibilityState === "hidden";

/** The last answer with a table: its rows, and how long it took. */
export interface Effort {
  readonly rows: number;
  readonly tookMs: number;
}

/** Return how long to wait, in ms, between two requests for what is wanted each `everyMs`, where the last one was such an effort. */
export function paceOf(everyMs: number, last: Effort = { rows: 0, tookMs: 0 }, isHidden = isOutOfSight()): number {
  const forRows = Math.min(last.rows * ROW_MS, LONGEST_MS);
  // A multiple, so that the moments stay the same.
  const forBusy = Math.ceil(Math.min(last.tookMs * ANSWER_TIMES, LONGEST_FOR_BUSY_MS) / everyMs) * everyMs;
  return Math.max(everyMs, isHidden ? HIDDEN_MS : 0, forRows, forBusy);
}

/**
 * Return whether what was asked for at `last` is due at `now`, once each `paceMs`. The moments are multiples of the pace, so that
 * tables of different paces are asked for together, which costs a router little more than one of them.
 */
export const isDue = (last: number, now: number, paceMs: number): boolean => now >= Math.round(last / paceMs + 1) * paceMs;
