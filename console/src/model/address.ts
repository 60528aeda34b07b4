/** One address over all routers: its producers and consumers, their credit, and the outcomes of deliveries. */
import { isInner, isTemporary, parseKey, type Key } from "./addresskey";
import { numberOf, sum, textOf } from "./numbers";
import type { Row, RouterTables, Snapshot } from "./types";

/** The counters of router.address that are summed over routers. */
const SUMMED_COUNTERS = [
  "subscriberCount", "inProcess", "containerCount", "deliveriesIngress", "deliveriesEgress", "deliveriesTransit",
  "deliveriesToContainer", "deliveriesFromContainer", "deliveriesRedirectedToFallback",
] as const;

/** The outcomes of deliveries, by the attribute of router.link that counts each. */
export const OUTCOMES = {
  acceptedCount: "accepted",
  rejectedCount: "rejected",
  releasedCount: "released",
  modifiedCount: "modified",
  presettledCount: "pre-settled",
  droppedPresettledCount: "dropped",
} as const;

/** The attribute of router.link that counts an outcome. */
export type Outcome = keyof typeof OUTCOMES;
/** Deliveries by outcome. */
export type Outcomes = Readonly<Record<Outcome, number>>;

/** An address, summed over all routers that list it. */
export interface AddressSum extends Key {
  readonly key: string;
  readonly distribution: string;
  /** The ids of the routers that list the address. */
  readonly routers: readonly string[];
  /** The counters, summed over these routers. */
  readonly counts: Readonly<Record<(typeof SUMMED_COUNTERS)[number], number>>;
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
  /** The role of the connection: "normal", "route-container", ... */
  readonly role: string;
  readonly credit: number | null;
  /** How long the link has had no credit, in s; 0 while it has some. */
  readonly noCreditSeconds: number;
  readonly undelivered: number;
  readonly unsettled: number;
  /** Deliveries that are unsettled for more than 10 s. */
  readonly stuck: number;
  readonly deliveries: number;
  /** Deliveries settled per second, as the router reports it. */
  readonly settleRate: number | null;
  readonly outcomes: Outcomes;
}

/** The address on one router. */
export interface AddressOnRouter {
  readonly router: string;
  /** The row of router.address; undefined if the router does not list the address. */
  readonly row: Row | undefined;
  /** Links from which clients receive. */
  readonly consumers: number;
  /** Links on which clients send. */
  readonly producers: number;
  readonly outcomes: Outcomes;
}

/** One address over all routers; the links with most waiting and unsettled deliveries come first. */
export interface AddressView {
  readonly consumers: readonly AddressLink[];
  readonly producers: readonly AddressLink[];
  readonly routers: readonly AddressOnRouter[];
}

/** The tables and attributes that addressesOf and addressView read. */
export const ADDRESS_TABLES: Readonly<Record<string, readonly string[] | "all">> = {
  "router.address": "all",
  "router.link": [
    "identity", "name", "linkName", "linkType", "linkDir", "owningAddr", "connectionId", "creditAvailable", "zeroCreditSeconds",
    "undeliveredCount", "unsettledCount", "deliveriesStuck", "deliveryCount", "settleRate", ...Object.keys(OUTCOMES),
  ],
  connection: ["identity", "host", "container", "user", "role"],
};

/** Return the addresses that clients use, summed over all routers and sorted by text; `inner` adds those of routers and replies. */
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
      SUMMED_COUNTERS.map((name) => [name, sum(rows.map((row) => numberOf(row[name]))) ?? 0]),
    ) as AddressSum["counts"],
  }));
  return all.sort((one, other) => compareCodeUnits(one.text, other.text) || compareCodeUnits(one.key, other.key));
}

/** Compare texts by code units, which is quick and does not depend on the viewer's language. */
function compareCodeUnits(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Return the key of a row of router.address: its attribute `key`, else its name. */
function keyOf(row: Row): string {
  return textOf(row["key"]) || textOf(row["name"]).replace(/^router\.address\//, "");
}

/** Return the links and rows of the address with this text, in all of its classes and phases. */
export function addressView(snapshot: Snapshot, text: string): AddressView {
  const parts = snapshot.routers.map((router) => addressOnRouter(router, text));
  return {
    consumers: parts.flatMap((part) => part.consumers).sort(busiest),
    producers: parts.flatMap((part) => part.producers).sort(busiest),
    routers: parts.map((part) => ({
      router: part.router,
      row: part.row,
      consumers: part.consumers.length,
      producers: part.producers.length,
      outcomes: sumOutcomes([...part.consumers, ...part.producers].map((link) => link.outcomes)),
    })),
  };
}

const load = (link: AddressLink): number => link.undelivered + link.unsettled;
const busiest = (one: AddressLink, other: AddressLink): number =>
  load(other) - load(one) || compareCodeUnits(one.router, other.router) || Number(one.link) - Number(other.link) || 0;

function addressOnRouter(router: RouterTables, text: string) {
  const connections = new Map((router.tables["connection"] ?? []).map((row) => [textOf(row["identity"]), row]));
  const links = (router.tables["router.link"] ?? []).filter(
    (link) => link["linkType"] === "endpoint" && parseKey(textOf(link["owningAddr"])).text === text,
  );
  const endpoints = links.map((link) => ({
    dir: link["linkDir"],
    endpoints: linkOf(router.id, link, connections.get(textOf(link["connectionId"]))),
  }));
  return {
    router: router.id,
    row: (router.tables["router.address"] ?? []).find((row) => parseKey(keyOf(row)).text === text),
    consumers: endpoints.filter(({ dir }) => dir === "out").map((each) => each.endpoints),
    producers: endpoints.filter(({ dir }) => dir === "in").map((each) => each.endpoints),
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

/** Return the sum of the outcomes of several links. */
export function sumOutcomes(each: readonly Outcomes[]): Outcomes {
  return Object.fromEntries(
    (Object.keys(OUTCOMES) as Outcome[]).map((name) => [name, each.reduce((all, one) => all + one[name], 0)]),
  ) as Outcomes;
}
