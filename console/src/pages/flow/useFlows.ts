import { useEffect, useRef, useState } from "react";

import { flowCounts, rates, totals, type Flow, type FlowCounts, type FlowMeasure } from "../../model/flow";
import { rowsOf, seenTables, type SeenTable } from "../../model/rows";
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
/** Histograms are long: from so many links on, they are fetched every so many milliseconds. */
const PACES = [
  { links: 3_000, everyMs: 10_000 },
  { links: 500, everyMs: 5_000 },
  { links: 0, everyMs: 1_000 },
] as const;

const paceFor = (snapshot: Snapshot): number => {
  const links = snapshot.routers.reduce((sum, router) => sum + rowsOf(router, "router.link").length, 0);
  return PACES.find((pace) => links >= pace.links)?.everyMs ?? 1_000;
};

export interface Flows {
  /** The largest first; null until there are two samples to compare. */
  readonly flows: readonly Flow[] | null;
  /** Ids of the routers that count what leaves the network. */
  readonly routers: readonly string[];
  /** How much lies between the first and the last sample of a rate, in ms. */
  readonly overMs: number;
  /** The routers that do not answer. */
  readonly silent: readonly string[];
}

const NOTHING: Flows = { flows: null, routers: [], overMs: 0, silent: [] };

/** Keeps the last samples, and tells a new one from a snapshot in which other tables arrived. */
class Recent {
  private seen: ReadonlyMap<string, SeenTable> = new Map();
  private readonly samples: FlowCounts[] = [];

  add(snapshot: Snapshot): void {
    const seen = seenTables(this.seen, snapshot, "router.link");
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

/** Return what flows between the routers now, or since their links were attached. */
export function useFlows(measure: FlowMeasure): Flows {
  const snapshot = useTables(WANTED, 10_000);
  useTables(WANTED, paceFor(snapshot));
  const recent = useRef(new Recent());
  const [flows, setFlows] = useState(NOTHING);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let latest: Snapshot | undefined;
    const look = (): void => {
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
      timer ??= setTimeout(look, REDRAW_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [measure]);
  return flows;
}
