/** Message flow: deliveries by the router at which they enter the network, the address, and the router at which they leave. */

import { addressOfKey, isUserKey } from "./addresskey";
import { routersById, tableOf, textAt, type TimedTable } from "./rows";
import type { Row, RouterTables, Snapshot } from "./types";

/** The messages that clients of one router send to clients of another router by one address. */
export interface Flow {
  /** The id of the router at which the messages enter. */
  readonly from: string;
  /** The address, or INTERNAL. */
  readonly address: string;
  /** The id of the router at which the messages leave. */
  readonly to: string;
  /** Messages per second, or messages since the links were attached. */
  readonly value: number;
}

/** Whether a flow's value is messages per second or messages in all. */
export type FlowMeasure = "rate" | "total";

/** The deliveries that the routers of one snapshot counted. */
export interface FlowCounts {
  /** When each router's table arrived, in ms since 1970, by router id. */
  readonly at: ReadonlyMap<string, number>;
  /** The deliveries of each outgoing link by origin; the key is "FROM\nLINK\nTO". */
  readonly cells: ReadonlyMap<string, Flow>;
}

/** Routers on the path of a routed link, at most: as many as a histogram has places. */
const MAX_HOPS = 128;
/** Stands for addresses of replies and management, and for links without an address. */
export const INTERNAL = "";

/** Follows routed links from router to router, back to the router at which their messages enter. */
class RoutedLinks {
  private readonly routers: ReadonlyMap<string, RouterTables>;
  private readonly links = new Map<string, Row>();
  private readonly byName = new Map<string, Row>();
  private readonly trunks = new Map<string, string>();

  constructor(snapshot: Snapshot) {
    this.routers = routersById(snapshot);
    for (const router of snapshot.routers) {
      for (const row of tableOf(router, "connection"))
        if (textAt(row, "role") === "inter-router")
          this.trunks.set(`${router.id}\n${textAt(row, "identity")}`, textAt(row, "container"));
      for (const link of tableOf(router, "router.link")) {
        this.links.set(`${router.id}\n${textAt(link, "identity")}`, link);
        const towards = this.trunk(router.id, link);
        if (towards !== undefined && textAt(link, "peer") !== "")
          this.byName.set([router.id, towards, textAt(link, "linkDir"), textAt(link, "linkName")].join("\n"), link);
      }
    }
  }

  /** Return the id of the router at the other end of the link's connection; undefined if the peer is no router. */
  trunk(router: string, link: Row): string | undefined {
    return this.trunks.get(`${router}\n${textAt(link, "connectionId")}`);
  }

  /** Return the id of the router at which messages of the outgoing link enter; undefined if the link is no routed link. */
  origin(router: string, link: Row): string | undefined {
    let [at, out] = [router, link];
    for (let hops = 0; hops < MAX_HOPS; hops += 1) {
      const incoming = this.links.get(`${at}\n${textAt(out, "peer")}`);
      if (incoming === undefined) return hops === 0 ? undefined : at;
      const behind = this.trunk(at, incoming);
      if (behind === undefined || !this.routers.has(behind)) return behind ?? at;
      const sent = this.byName.get([behind, at, "out", textAt(incoming, "linkName")].join("\n"));
      if (sent === undefined) return behind;
      [at, out] = [behind, sent];
    }
    return at;
  }
}

function histogram(link: Row): readonly number[] | undefined {
  const value = link["ingressHistogram"];
  if (!Array.isArray(value)) return undefined;
  return value.map((count) => (typeof count === "number" || typeof count === "bigint" ? Number(count) : 0));
}

/** Return the ids of routers by their index in this router's histograms. Each router numbers the others differently. */
function idsByIndex(router: RouterTables): ReadonlyMap<number, string> {
  const ids = new Map<number, string>([[0, router.id]]);
  for (const row of tableOf(router, "router.node")) {
    const index = row["index"];
    const id = textAt(row, "id");
    if ((typeof index === "number" || typeof index === "bigint") && id !== "") ids.set(Number(index), id);
  }
  return ids;
}

/**
 * Return the deliveries that left the network at each interior router since their links were attached. `seen` holds the tables
 * of links with their times of arrival, by router id.
 */
export function flowCounts(snapshot: Snapshot, seen: ReadonlyMap<string, TimedTable>): FlowCounts {
  const at = new Map<string, number>();
  const cells = new Map<string, Flow>();
  const routed = new RoutedLinks(snapshot);
  for (const router of snapshot.routers) {
    const table = seen.get(router.id);
    if (router.address.startsWith("_edge/") || table === undefined) continue;
    at.set(router.id, table.at);
    const ids = idsByIndex(router);
    for (const link of tableOf(router, "router.link")) {
      if (textAt(link, "linkDir") !== "out" || routed.trunk(router.id, link) !== undefined) continue;
      const counts = histogram(link);
      if (counts === undefined) continue;
      const key = textAt(link, "owningAddr");
      const address = isUserKey(key) ? addressOfKey(key) : INTERNAL;
      const origin = routed.origin(router.id, link);
      const identity = textAt(link, "identity");
      counts.forEach((value, index) => {
        const from = origin ?? ids.get(index);
        if (value > 0 && from !== undefined)
          cells.set(`${from}\n${identity}\n${router.id}`, { from, address, to: router.id, value });
      });
    }
  }
  return { at, cells };
}

const joined = (flows: Iterable<Flow>): readonly Flow[] => {
  const sums = new Map<string, Flow>();
  for (const flow of flows) {
    const key = [flow.from, flow.address, flow.to].join("\n");
    sums.set(key, { ...flow, value: flow.value + (sums.get(key)?.value ?? 0) });
  }
  return [...sums.values()].sort((one, other) => other.value - one.value);
};

/** Return the flows in messages since the links were attached, the largest first. */
export function totals(now: FlowCounts): readonly Flow[] {
  return joined(now.cells.values());
}

/** Return the flows in messages per second since `before`, the largest first. A new link, or one of a restarted router, counts from 0. */
export function rates(before: FlowCounts, now: FlowCounts): readonly Flow[] {
  const perSecond: Flow[] = [];
  for (const [key, cell] of now.cells) {
    const [startMs, endMs] = [before.at.get(cell.to), now.at.get(cell.to)];
    if (startMs === undefined || endMs === undefined || endMs <= startMs) continue;
    const was = before.cells.get(key)?.value ?? 0;
    const count = was > cell.value ? cell.value : cell.value - was;
    if (count > 0) perSecond.push({ ...cell, value: (count * 1000) / (endMs - startMs) });
  }
  return joined(perSecond);
}

/** The user's choice of flows. */
export interface FlowFilter {
  /** Only flows by these addresses; null for all. */
  readonly addresses: ReadonlySet<string> | null;
  /** Only flows that enter or leave at these routers; null for all. */
  readonly routers: ReadonlySet<string> | null;
  /** Include replies, management and links without an address. */
  readonly withInternal: boolean;
}

/** Return the flows that match the filter. */
export function filterFlows(flows: readonly Flow[], filter: FlowFilter): readonly Flow[] {
  return flows.filter(
    (flow) =>
      (filter.withInternal || flow.address !== INTERNAL) &&
      (filter.addresses === null || filter.addresses.has(flow.address)) &&
      (filter.routers === null || filter.routers.has(flow.from) || filter.routers.has(flow.to)),
  );
}
