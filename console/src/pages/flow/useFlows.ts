import { useEffect, useRef, useState } from "react";

import { flowCounts, rates, totals, type Flow, type FlowCounts, type FlowMeasure } from "../../model/flow";
import { tableOf, timedTables, type TimedTable } from "../../model/rows";
import type { Snapshot } from "../../model/types";
import { onSnapshot, useTables } from "../../store";

const WANTED = {
  "router.node": ["id", "index"],
  "router.link": ["identity", "connectionId", "linkName", "linkDir", "owningAddr", "peer", "ingressHistogram"],
  connection: ["identity", "role", "container"],
} as const;

/** A rate is the mean over this many samples. */
const SAMPLES = 5;
const REDRAW_MS = 1_000;
/** The interval by the number of links: the histograms of many links are large. */
const INTERVALS = [
  { links: 3_000, everyMs: 10_000 },
  { links: 500, everyMs: 5_000 },
  { links: 0, everyMs: 1_000 },
] as const;

const intervalMsFor = (snapshot: Snapshot): number => {
  const links = snapshot.routers.reduce((sum, router) => sum + tableOf(router, "router.link").length, 0);
  return INTERVALS.find((interval) => links >= interval.links)?.everyMs ?? 1_000;
};

/** The flows of the network, as last computed. */
export interface Flows {
  /** The largest first; null until there are two samples to compare. */
  readonly flows: readonly Flow[] | null;
  /** The ids of the interior routers, which count the messages that leave the network. */
  readonly routers: readonly string[];
  /** The time between the first and the last sample of a rate, in ms. */
  readonly overMs: number;
  /** The ids of the interior routers that do not answer. */
  readonly silent: readonly string[];
}

const NOTHING: Flows = { flows: null, routers: [], overMs: 0, silent: [] };

/** The last samples. A snapshot adds one only if a table of links has arrived anew. */
class RecentCounts {
  private seen: ReadonlyMap<string, TimedTable> = new Map();
  private readonly samples: FlowCounts[] = [];

  add(snapshot: Snapshot): void {
    const seen = timedTables(this.seen, snapshot, "router.link");
    const isNew = [...seen].some(([router, table]) => this.seen.get(router) !== table);
    this.seen = seen;
    if (isNew) this.samples.push(flowCounts(snapshot, seen));
    if (this.samples.length > SAMPLES + 1) this.samples.shift();
  }

  flows(measure: FlowMeasure): readonly Flow[] | null {
    const [first, last] = [this.samples[0], this.samples.at(-1)];
    if (first === undefined || last === undefined) return null;
    if (measure === "total") return totals(last);
    return first === last ? null : rates(first, last);
  }

  overMs(): number {
    const [first, last] = [this.samples[0], this.samples.at(-1)];
    const spans = [...(last?.at ?? [])].map(([router, at]) => at - (first?.at.get(router) ?? at));
    return Math.max(0, ...spans);
  }
}

/** Return the flows between the routers: the current rates, or the totals since the links were attached. */
export function useFlows(measure: FlowMeasure): Flows {
  const snapshot = useTables(WANTED, 10_000);
  useTables(WANTED, intervalMsFor(snapshot));
  const recent = useRef(new RecentCounts());
  const [flows, setFlows] = useState(NOTHING);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let latest: Snapshot | undefined;
    const update = (): void => {
      timer = undefined;
      if (latest === undefined) return;
      recent.current.add(latest);
      const interior = latest.routers.filter((router) => !router.address.startsWith("_edge/"));
      setFlows({
        flows: recent.current.flows(measure),
        routers: interior.map((router) => router.id),
        overMs: recent.current.overMs(),
        silent: interior.filter((router) => router.error !== undefined).map((router) => router.id),
      });
    };
    const stop = onSnapshot((next) => {
      latest = next;
      timer ??= setTimeout(update, REDRAW_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [measure]);
  return flows;
}
