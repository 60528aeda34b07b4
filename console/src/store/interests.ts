/** What the components on the page want to see, merged: one poll serves all of them. */

import type { Entity } from "../model/types";

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
