/** How much goes over links and connections: rates from two snapshots, and how full the links are. */

import { numberOf, rowsOf, seenTables, textOf, type SeenTable } from "./rows";
import type { Row, RouterTables, Snapshot } from "./types";

/** Messages per second and fill of one connection, seen from the router that has the row. */
export interface Traffic {
  /** Messages per second from the peer into the router. */
  readonly in: number;
  /** Messages per second from the router to the peer. */
  readonly out: number;
  /** Undelivered and unsettled deliveries over capacity, of the fullest link; 0 where no link has a capacity. */
  readonly load: number;
}

export const NO_TRAFFIC: Traffic = { in: 0, out: 0, load: 0 };

/** How full a link is, in words; `from` is the least load of the band. */
export const LOAD_BANDS = [
  { name: "free", from: 0 },
  { name: "filling", from: 0.25 },
  { name: "full", from: 0.75 },
  { name: "congested", from: 1 },
] as const;

export type LoadBand = (typeof LOAD_BANDS)[number]["name"];

/** Return the band of a load. */
export function loadBand(load: number): LoadBand {
  let name: LoadBand = "free";
  for (const band of LOAD_BANDS) if (load >= band.from) name = band.name;
  return name;
}

/** One router's links as last fetched, and how much each moved since the fetch before. */
export interface LinkSample extends SeenTable {
  /** Messages per second by link identity. */
  readonly rates: ReadonlyMap<string, number>;
}

/** The samples by router. */
export type LinkSamples = ReadonlyMap<string, LinkSample>;

export const NO_SAMPLES: LinkSamples = new Map();

function ratesBetween(before: SeenTable | undefined, now: SeenTable): ReadonlyMap<string, number> {
  const seconds = before === undefined ? 0 : (now.at - before.at) / 1000;
  if (before === undefined || seconds <= 0)
    return new Map(now.rows.map((link) => [textOf(link, "identity"), numberOf(link, "settleRate")]));
  const counts = new Map(before.rows.map((link) => [textOf(link, "identity"), numberOf(link, "deliveryCount")]));
  return new Map(
    now.rows.map((link) => {
      const [identity, count] = [textOf(link, "identity"), numberOf(link, "deliveryCount")];
      const was = counts.get(identity) ?? 0;
      // A link that is new, or a router that began anew, counts from zero.
      return [identity, (was > count ? count : count - was) / seconds];
    }),
  );
}

/** Return the samples of the snapshot; what has not been fetched anew since `before` keeps its rates. */
export function sampleLinks(before: LinkSamples, snapshot: Snapshot): LinkSamples {
  const seen = seenTables(before, snapshot, "router.link");
  return new Map(
    [...seen].map(([router, table]) => {
      const known = before.get(router);
      return [router, known?.rows === table.rows ? known : { ...table, rates: ratesBetween(known, table) }];
    }),
  );
}

/** Return the load of one link: what waits and what is unsettled over what it may hold. */
export function linkLoad(link: Row): number {
  const capacity = numberOf(link, "capacity");
  return capacity > 0 ? (numberOf(link, "undeliveredCount") + numberOf(link, "unsettledCount")) / capacity : 0;
}

/** Return the traffic of each connection of a router, by connection identity; control links between routers are left out. */
export function connectionTraffic(router: RouterTables, samples: LinkSamples): ReadonlyMap<string, Traffic> {
  const rates = samples.get(router.id)?.rates;
  const sums = new Map<string, { in: number; out: number; load: number }>();
  for (const link of rowsOf(router, "router.link")) {
    if (textOf(link, "linkType") === "router-control") continue;
    const connection = textOf(link, "connectionId");
    let sum = sums.get(connection);
    if (sum === undefined) sums.set(connection, (sum = { in: 0, out: 0, load: 0 }));
    sum[textOf(link, "linkDir") === "in" ? "in" : "out"] += rates?.get(textOf(link, "identity")) ?? 0;
    sum.load = Math.max(sum.load, linkLoad(link));
  }
  return sums;
}

/** Return both added up; the load is that of the fuller one. */
export function addTraffic(one: Traffic, other: Traffic): Traffic {
  return { in: one.in + other.in, out: one.out + other.out, load: Math.max(one.load, other.load) };
}

/** Return the traffic as the peer sees it. */
export function turned(traffic: Traffic): Traffic {
  return { in: traffic.out, out: traffic.in, load: traffic.load };
}

/** Write a rate with a sensible number of digits: "0", "0.4", "25", "1.2k". */
export function rateText(perSecond: number): string {
  if (perSecond < 0.05) return "0";
  if (perSecond < 10) return String(Math.round(perSecond * 10) / 10);
  if (perSecond < 1000) return String(Math.round(perSecond));
  if (perSecond < 1e6) return `${String(Math.round(perSecond / 100) / 10)}k`;
  return `${String(Math.round(perSecond / 1e5) / 10)}M`;
}
