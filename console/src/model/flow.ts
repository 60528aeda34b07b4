/** Who sends how much to whom: deliveries by the router where they came in, the address, and the router where they left. */

import { addressOfKey, isUserKey } from "./keys";
import { routersById, rowsOf, textOf, type SeenTable } from "./rows";
import type { Row, RouterTables, Snapshot } from "./types";

/** What goes from one router's clients over one address to another router's clients. */
export interface Flow {
  readonly from: string;
  readonly address: string;
  readonly to: string;
  /** Messages per second, or messages since the links were attached. */
  readonly value: number;
}

export type FlowMeasure = "rate" | "total";

/** Deliveries of one snapshot by "FROM\nLINK\nTO", with what the key stands for. */
export interface FlowCounts {
  /** Milliseconds since 1970, by the router that counted. */
  readonly at: ReadonlyMap<string, number>;
  readonly cells: ReadonlyMap<string, Flow>;
}

/** Routed links pass at most as many routers as a histogram tells apart. */
const MOST_HOPS = 128;
/** Stands for addresses that are no user's: replies, management, and links without an address. */
export const INTERNAL = "";

/** Follows routed links from router to router, to where their messages come in. */
class RoutedLinks {
  private readonly routers: ReadonlyMap<string, RouterTables>;
  private readonly links = new Map<string, Row>();
  private readonly byName = new Map<string, Row>();
  private readonly trunks = new Map<string, string>();

  constructor(snapshot: Snapshot) {
    this.routers = routersById(snapshot);
    for (const router of snapshot.routers) {
      for (const row of rowsOf(router, "connection"))
        if (textOf(row, "role") === "inter-router")
          this.trunks.set(`${router.id}\n${textOf(row, "identity")}`, textOf(row, "container"));
      for (const link of rowsOf(router, "router.link")) {
        this.links.set(`${router.id}\n${textOf(link, "identity")}`, link);
        const towards = this.trunk(router.id, link);
        if (towards !== undefined && textOf(link, "peer") !== "")
          this.byName.set([router.id, towards, textOf(link, "linkDir"), textOf(link, "linkName")].join("\n"), link);
      }
    }
  }

  /** Return the router at the other end of the link's connection, or undefined when that is no router. */
  trunk(router: string, link: Row): string | undefined {
    return this.trunks.get(`${router}\n${textOf(link, "connectionId")}`);
  }

  /** Return the router at which messages of the outgoing link come in, if it is a routed link. */
  origin(router: string, link: Row): string | undefined {
    let [at, out] = [router, link];
    for (let hops = 0; hops < MOST_HOPS; hops += 1) {
      const incoming = this.links.get(`${at}\n${textOf(out, "peer")}`);
      if (incoming === undefined) return hops === 0 ? undefined : at;
      const behind = this.trunk(at, incoming);
      if (behind === undefined || !this.routers.has(behind)) return behind ?? at;
      const sent = this.byName.get([behind, at, "out", textOf(incoming, "linkName")].join("\n"));
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

/** Return the ids of routers by their place in this router's histograms. Each router numbers the others in its own way. */
function idsByIndex(router: RouterTables): ReadonlyMap<number, string> {
  const ids = new Map<number, string>([[0, router.id]]);
  for (const row of rowsOf(router, "router.node")) {
    const index = row["index"];
    const id = textOf(row, "id");
    if ((typeof index === "number" || typeof index === "bigint") && id !== "") ids.set(Number(index), id);
  }
  return ids;
}

/**
 * Return the deliveries that left the network at each interior router, by where they came in, as counted so far. `seen` has
 * the moments at which the tables of links were fetched.
 */
export function flowCounts(snapshot: Snapshot, seen: ReadonlyMap<string, SeenTable>): FlowCounts {
  const at = new Map<string, number>();
  const cells = new Map<string, Flow>();
  const routed = new RoutedLinks(snapshot);
  for (const router of snapshot.routers) {
    const table = seen.get(router.id);
    if (router.address.startsWith("_edge/") || table === undefined) continue;
    at.set(router.id, table.at);
    const ids = idsByIndex(router);
    for (const link of rowsOf(router, "router.link")) {
      if (textOf(link, "linkDir") !== "out" || routed.trunk(router.id, link) !== undefined) continue;
      const counts = histogram(link);
      if (counts === undefined) continue;
      const key = textOf(link, "owningAddr");
      const address = isUserKey(key) ? addressOfKey(key) : INTERNAL;
      const origin = routed.origin(router.id, link);
      const identity = textOf(link, "identity");
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

/** Return the messages counted so far, the largest first. */
export function totals(now: FlowCounts): readonly Flow[] {
  return joined(now.cells.values());
}

/** Return messages per second since `before`, the largest first. A link that is new, or began anew, counts from zero. */
export function rates(before: FlowCounts, now: FlowCounts): readonly Flow[] {
  const perSecond: Flow[] = [];
  for (const [key, cell] of now.cells) {
    const [then, current] = [before.at.get(cell.to), now.at.get(cell.to)];
    if (then === undefined || current === undefined || current <= then) continue;
    const was = before.cells.get(key)?.value ?? 0;
    const count = was > cell.value ? cell.value : cell.value - was;
    if (count > 0) perSecond.push({ ...cell, value: (count * 1000) / (current - then) });
  }
  return joined(perSecond);
}

export interface FlowFilter {
  /** Only these addresses; null for all. */
  readonly addresses: ReadonlySet<string> | null;
  /** Only what begins or ends at these routers; null for all. */
  readonly routers: ReadonlySet<string> | null;
  /** Replies, management and links without an address too. */
  readonly withInternal: boolean;
}

/** Return the flows that the filter lets through. */
export function filterFlows(flows: readonly Flow[], filter: FlowFilter): readonly Flow[] {
  return flows.filter(
    (flow) =>
      (filter.withInternal || flow.address !== INTERNAL) &&
      (filter.addresses === null || filter.addresses.has(flow.address)) &&
      (filter.routers === null || filter.routers.has(flow.from) || filter.routers.has(flow.to)),
  );
}
