/** The figures of the Overview page, from the tables of all routers and the rates of their counters. */
import { addressesOf, type AddressSum } from "./address";
import { numberOf, sum, textOf } from "./numbers";
import { rateOf, ratesOf, type TablePairs } from "./rates";
import type { Row, Snapshot } from "./types";

/** Figures over all routers; null while they are unknown. */
export interface Totals {
  /** Deliveries per second from clients. */
  readonly ingress: number | null;
  /** Deliveries per second to clients. */
  readonly egress: number | null;
  /** Deliveries per second from router to router. */
  readonly transit: number | null;
  /** Deliveries for clients that wait to be sent or are unsettled. */
  readonly inFlight: number | null;
  /** Connections of clients and brokers. */
  readonly connections: number | null;
  readonly addresses: number;
  readonly links: number | null;
}

const keyOf = (row: Row): string => textOf(row["identity"]) || textOf(row["key"]) || textOf(row["name"]);

/** Return the sums over all routers. For a login that may not see routers, as a tenant's, the rates are summed over its addresses. */
export function totalsOf(snapshot: Snapshot, routers: TablePairs, addresses: TablePairs): Totals {
  const rate = (attribute: string): number | null =>
    routers.size > 0
      ? sum([...routers.values()].map((pair) => rateOf(pair, attribute)))
      : sum([...addresses.values()].map((pair) => sum(ratesOf(pair, attribute, keyOf).values())));
  const rows = (entity: string): readonly (readonly Row[])[] =>
    snapshot.routers.flatMap((router) => router.tables[entity] ?? []).length === 0 &&
    snapshot.routers.every((router) => router.tables[entity] === undefined)
      ? []
      : snapshot.routers.map((router) => router.tables[entity] ?? []);
  const links = rows("router.link");
  const connections = rows("connection");
  return {
    ingress: rate("deliveriesIngress"),
    egress: rate("deliveriesEgress"),
    transit: rate("deliveriesTransit"),
    inFlight: sum(
      links.flat().filter(isToClient).flatMap((link) => [numberOf(link["undeliveredCount"]), numberOf(link["unsettledCount"])]),
    ) ?? (links.length > 0 ? 0 : null),
    connections: connections.length === 0 ? null : connections.flat().filter(isClientConnection).length,
    addresses: addressesOf(snapshot).length,
    links: links.length === 0 ? null : links.flat().filter((link) => link["linkType"] === "endpoint").length,
  };
}

const isToClient = (link: Row): boolean => link["linkType"] === "endpoint" && link["linkDir"] === "out";
const isClientConnection = (row: Row): boolean => row["role"] !== "inter-router" && row["role"] !== "edge";

/** An address with its deliveries per second; null while they are unknown. */
export interface ActiveAddress extends AddressSum {
  readonly ingress: number | null;
  readonly egress: number | null;
}

/** Return the addresses of clients with the most deliveries per second, the busiest first; at most `limit`. */
export function activeAddresses(snapshot: Snapshot, pair: TablePairs, limit: number): ActiveAddress[] {
  const byKey = (attribute: string): Map<string, number | null> => {
    const found = new Map<string, number | null>();
    for (const each of pair.values())
      for (const [key, rate] of ratesOf(each, attribute, (row) => textOf(row["key"]) || textOf(row["name"])))
        found.set(key, sum([found.get(key) ?? null, rate]));
    return found;
  };
  const ingress = byKey("deliveriesIngress");
  const egress = byKey("deliveriesEgress");
  return addressesOf(snapshot)
    .map((address) => ({ ...address, ingress: ingress.get(address.key) ?? null, egress: egress.get(address.key) ?? null }))
    .sort((one, other) => throughput(other) - throughput(one))
    .slice(0, limit);
}

const throughput = (address: ActiveAddress): number => (address.ingress ?? 0) + (address.egress ?? 0);

/** A connection with deliveries that took longer than one second to settle. */
export interface DelayedConnection {
  readonly key: string;
  readonly router: string;
  readonly id: string;
  readonly container: string;
  readonly host: string;
  readonly user: string;
  readonly role: string;
  /** Delayed deliveries per second. */
  readonly rate: number | null;
  /** Delayed deliveries since the links were attached. */
  readonly delayed: number;
  /** Deliveries that are unsettled for more than 10 s. */
  readonly stuck: number;
}

/** Return the connections with delayed or stuck deliveries, those with the highest rate first; at most `limit`. */
export function delayedConnections(snapshot: Snapshot, pair: TablePairs, limit: number): DelayedConnection[] {
  const found: DelayedConnection[] = [];
  for (const router of snapshot.routers) {
    const rates = [1, 10].map((seconds) => ratesOf(pair.get(router.id), `deliveriesDelayed${seconds}Sec`, keyOf));
    const byConnection = new Map<string, Row[]>();
    for (const link of router.tables["router.link"] ?? []) {
      const id = textOf(link["connectionId"]);
      if (link["linkType"] !== "endpoint" || id === "") continue;
      byConnection.set(id, [...(byConnection.get(id) ?? []), link]);
    }
    for (const connection of router.tables["connection"] ?? []) {
      const id = textOf(connection["identity"]);
      const links = byConnection.get(id) ?? [];
      const add = (names: readonly string[]): number =>
        sum(links.flatMap((link) => names.map((name) => numberOf(link[name])))) ?? 0;
      const delayed = add(["deliveriesDelayed1Sec", "deliveriesDelayed10Sec"]);
      const stuck = add(["deliveriesStuck"]);
      if (delayed + stuck === 0) continue;
      found.push({
        key: `${router.id} ${id}`,
        router: router.id,
        id,
        container: textOf(connection["container"]),
        host: textOf(connection["host"]),
        user: textOf(connection["user"]),
        role: textOf(connection["role"]),
        rate: sum(links.flatMap((link) => rates.map((each) => each.get(keyOf(link)) ?? null))),
        delayed,
        stuck,
      });
    }
  }
  const weight = (each: DelayedConnection): number => (each.rate ?? 0) * 1e6 + each.stuck * 1e3 + each.delayed;
  return found.sort((one, other) => weight(other) - weight(one)).slice(0, limit);
}
