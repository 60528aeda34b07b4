/** The traffic of links and connections: rates from two snapshots, and the load of links. */

import { numberAt, tableOf, timedTables, textAt, type TimedTable } from "./rows";
import type { Row, RouterTables, Snapshot } from "./types";

/** The traffic of one connection, from the view of the router that reports it. */
export interface Traffic {
  /** Messages per second from the peer into the router. */
  readonly in: number;
  /** Messages per second from the router to the peer. */
  readonly out: number;
  /** Undelivered and unsettled deliveries divided by the capacity, of the fullest link; 0 if no link has a capacity. */
  readonly load: number;
}

/** The traffic of an idle connection. */
export const NO_TRAFFIC: Traffic = { in: 0, out: 0, load: 0 };

/** The bands of load, with the lowest load of each. */
export const LOAD_BANDS = [
  { name: "free", from: 0 },
  { name: "filling", from: 0.25 },
  { name: "full", from: 0.75 },
  { name: "congested", from: 1 },
] as const;

/** The name of a band of load. */
export type LoadBand = (typeof LOAD_BANDS)[number]["name"];

/** Return the name of the band that a load is in. */
export function loadBand(load: number): LoadBand {
  let name: LoadBand = "free";
  for (const band of LOAD_BANDS) if (load >= band.from) name = band.name;
  return name;
}

/** The links of one router as last fetched, with their rates since the fetch before. */
export interface LinkSample extends TimedTable {
  /** Messages per second by link identity. */
  readonly rates: ReadonlyMap<string, number>;
}

/** The samples of all routers, by router id. */
export type LinkSamples = ReadonlyMap<string, LinkSample>;

/** The samples before the first fetch. */
export const NO_SAMPLES: LinkSamples = new Map();

function ratesBetween(before: TimedTable | undefined, now: TimedTable): ReadonlyMap<string, number> {
  const seconds = before === undefined ? 0 : (now.at - before.at) / 1000;
  if (before === undefined || seconds <= 0)
    return new Map(now.rows.map((link) => [textAt(link, "identity"), numberAt(link, "settleRate")]));
  const counts = new Map(before.rows.map((link) => [textAt(link, "identity"), numberAt(link, "deliveryCount")]));
  return new Map(
    now.rows.map((link) => {
      const [identity, count] = [textAt(link, "identity"), numberAt(link, "deliveryCount")];
      const was = counts.get(identity) ?? 0;
      // A new link, or one of a restarted router, counts from 0.
      return [identity, (was > count ? count : count - was) / seconds];
    }),
  );
}

/** Return the samples after a snapshot; a router whose table is still the one in `before` keeps its rates. */
export function sampleLinks(before: LinkSamples, snapshot: Snapshot): LinkSamples {
  const seen = timedTables(before, snapshot, "router.link");
  return new Map(
    [...seen].map(([router, table]) => {
      const known = before.get(router);
      return [router, known?.rows === table.rows ? known : { ...table, rates: ratesBetween(known, table) }];
    }),
  );
}

/** Return the load of one link: undelivered and unsettled deliveries divided by its capacity; 0 without a capacity. */
export function linkLoad(link: Row): number {
  const capacity = numberAt(link, "capacity");
  return capacity > 0 ? (numberAt(link, "undeliveredCount") + numberAt(link, "unsettledCount")) / capacity : 0;
}

/** Return the traffic of each connection of a router, by connection identity; control links between routers are left out. */
export function connectionTraffic(router: RouterTables, samples: LinkSamples): ReadonlyMap<string, Traffic> {
  const rates = samples.get(router.id)?.rates;
  const sums = new Map<string, { in: number; out: number; load: number }>();
  for (const link of tableOf(router, "router.link")) {
    if (textAt(link, "linkType") === "router-control") continue;
    const connection = textAt(link, "connectionId");
    let sum = sums.get(connection);
    if (sum === undefined) sums.set(connection, (sum = { in: 0, out: 0, load: 0 }));
    sum[textAt(link, "linkDir") === "in" ? "in" : "out"] += rates?.get(textAt(link, "identity")) ?? 0;
    sum.load = Math.max(sum.load, linkLoad(link));
  }
  return sums;
}

/** Return the sum of both rates, and the higher load. */
export function addTraffic(one: Traffic, other: Traffic): Traffic {
  return { in: one.in + other.in, out: one.out + other.out, load: Math.max(one.load, other.load) };
}

/** Return the traffic from the view of the peer: in and out are exchanged. */
export function turned(traffic: Traffic): Traffic {
  return { in: traffic.out, out: traffic.in, load: traffic.load };
}

/** Return a rate as short text for the picture: "0", "0.4", "25", "1.2k". */
export function rateText(perSecond: number): string {
  if (perSecond < 0.05) return "0";
  if (perSecond < 10) return String(Math.round(perSecond * 10) / 10);
  if (perSecond < 1000) return String(Math.round(perSecond));
  if (perSecond < 1e6) return `${String(Math.round(perSecond / 100) / 10)}k`;
  return `${String(Math.round(perSecond / 1e5) / 10)}M`;
}
