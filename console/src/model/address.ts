/** One address over all routers: who sends and receives, what they wait for, and what became of deliveries. */
import { isInner, isTemporary, parseKey, type Key } from "./addresskey";
import { numberOf, sum, textOf } from "./numbers";
import type { Row, RouterTables, Snapshot } from "./types";

/** The counters of a table that are added up over routers. */
const COUNTED = [
  "subscriberCount", "inProcess", "containerCount", "deliveriesIngress", "deliveriesEgress", "deliveriesTransit",
  "deliveriesToContainer", "deliveriesFromContainer", "deliveriesRedirectedToFallback",
] as const;

/** What became of a link's deliveries, by the attribute that counts it. */
export const OUTCOMES = {
  acceptedCount: "accepted",
  rejectedCount: "rejected",
  releasedCount: "released",
  modifiedCount: "modified",
  presettledCount: "pre-settled",
  droppedPresettledCount: "dropped",
} as const;

export type Outcome = keyof typeof OUTCOMES;
export type Outcomes = Readonly<Record<Outcome, number>>;

/** An address over all routers that know it. */
export interface AddressSum extends Key {
  readonly key: string;
  readonly distribution: string;
  /** The routers on which it is in use. */
  readonly routers: readonly string[];
  readonly counts: Readonly<Record<(typeof COUNTED)[number], number>>;
}

/** A client's or broker's link to or from the address. */
export interface AddressLink {
  readonly router: string;
  readonly link: string;
  readonly name: string;
  readonly connection: string;
  readonly container: string;
  readonly host: string;
  readonly user: string;
  readonly role: string;
  readonly credit: number | null;
  readonly noCreditSeconds: number;
  readonly undelivered: number;
  readonly unsettled: number;
  readonly stuck: number;
  readonly deliveries: number;
  readonly settleRate: number | null;
  readonly outcomes: Outcomes;
}

/** What one router has of the address. */
export interface AddressOnRouter {
  readonly router: string;
  /** The row of router.address; undefined where the router does not know the address. */
  readonly row: Row | undefined;
  readonly consumers: number;
  readonly producers: number;
  readonly outcomes: Outcomes;
}

/** Everything that the tables tell of one address. */
export interface AddressView {
  readonly consumers: readonly AddressLink[];
  readonly producers: readonly AddressLink[];
  readonly routers: readonly AddressOnRouter[];
}

/** The tables and attributes that views of addresses are told from. */
export const ADDRESS_TABLES: Readonly<Record<string, readonly string[] | "all">> = {
  "router.address": "all",
  "router.link": [
    "identity", "name", "linkName", "linkType", "linkDir", "owningAddr", "connectionId", "creditAvailable", "zeroCreditSeconds",
    "undeliveredCount", "unsettledCount", "deliveriesStuck", "deliveryCount", "settleRate", ...Object.keys(OUTCOMES),
  ],
  connection: ["identity", "host", "container", "user", "role"],
};

/** Return the addresses of clients in the order of their texts, each once over all routers; `inner` adds routers' own. */
export function addressesOf(snapshot: Snapshot, inner = false): AddressSum[] {
  const found = new Map<string, { distribution: string; routers: string[]; rows: Row[] }>();
  for (const router of snapshot.routers) {
    for (const row of router.tables["router.address"] ?? []) {
      const key = keyOf(row);
      if (key === "" || (!inner && (isInner(key) || isTemporary(key)))) continue;
      const known = found.get(key) ?? { distribution: textOf(row["distribution"]), routers: [], rows: [] };
      known.routers.push(router.id);
      known.rows.push(row);
      found.set(key, known);
    }
  }
  const all = [...found].map(([key, { distribution, routers, rows }]) => ({
    key,
    ...parseKey(key),
    distribution,
    routers,
    counts: Object.fromEntries(
      COUNTED.map((name) => [name, sum(rows.map((row) => numberOf(row[name]))) ?? 0]),
    ) as AddressSum["counts"],
  }));
  return all.sort((one, other) => compare(one.text, other.text) || compare(one.key, other.key));
}

/** Compare texts by their code units, which is quick and the same everywhere. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Return the key of a row of router.address: its attribute `key`, else what its name says. */
function keyOf(row: Row): string {
  return textOf(row["key"]) || textOf(row["name"]).replace(/^router\.address\//, "");
}

/** Return what the tables tell of the address with this text, in all its classes and phases. */
export function viewOf(snapshot: Snapshot, text: string): AddressView {
  const parts = snapshot.routers.map((router) => onRouter(router, text));
  return {
    consumers: parts.flatMap((part) => part.consumers).sort(busiest),
    producers: parts.flatMap((part) => part.producers).sort(busiest),
    routers: parts.map((part) => ({
      router: part.router,
      row: part.row,
      consumers: part.consumers.length,
      producers: part.producers.length,
      outcomes: added([...part.consumers, ...part.producers].map((link) => link.outcomes)),
    })),
  };
}

const load = (link: AddressLink): number => link.undelivered + link.unsettled;
const busiest = (one: AddressLink, other: AddressLink): number =>
  load(other) - load(one) || compare(one.router, other.router) || Number(one.link) - Number(other.link) || 0;

function onRouter(router: RouterTables, text: string) {
  const connections = new Map((router.tables["connection"] ?? []).map((row) => [textOf(row["identity"]), row]));
  const links = (router.tables["router.link"] ?? []).filter(
    (link) => link["linkType"] === "endpoint" && parseKey(textOf(link["owningAddr"])).text === text,
  );
  const told = links.map((link) => ({
    dir: link["linkDir"],
    told: linkOf(router.id, link, connections.get(textOf(link["connectionId"]))),
  }));
  return {
    router: router.id,
    row: (router.tables["router.address"] ?? []).find((row) => parseKey(keyOf(row)).text === text),
    consumers: told.filter(({ dir }) => dir === "out").map((each) => each.told),
    producers: told.filter(({ dir }) => dir === "in").map((each) => each.told),
  };
}

function linkOf(router: string, link: Row, connection: Row | undefined): AddressLink {
  const number = (name: string): number => numberOf(link[name]) ?? 0;
  return {
    router,
    link: textOf(link["identity"]),
    name: textOf(link["linkName"]) || textOf(link["name"]),
    connection: textOf(link["connectionId"]),
    container: textOf(connection?.["container"]),
    host: textOf(connection?.["host"]),
    user: textOf(connection?.["user"]),
    role: textOf(connection?.["role"]),
    credit: numberOf(link["creditAvailable"]),
    noCreditSeconds: number("zeroCreditSeconds"),
    undelivered: number("undeliveredCount"),
    unsettled: number("unsettledCount"),
    stuck: number("deliveriesStuck"),
    deliveries: number("deliveryCount"),
    settleRate: numberOf(link["settleRate"]),
    outcomes: outcomesOf(link),
  };
}

function outcomesOf(row: Row): Outcomes {
  return Object.fromEntries(Object.keys(OUTCOMES).map((name) => [name, numberOf(row[name]) ?? 0])) as Outcomes;
}

/** Add outcomes up. */
export function added(each: readonly Outcomes[]): Outcomes {
  return Object.fromEntries(
    (Object.keys(OUTCOMES) as Outcome[]).map((name) => [name, each.reduce((all, one) => all + one[name], 0)]),
  ) as Outcomes;
}
