/** What the overview counts, told from the tables of all routers and the rates of their counters. */
import { addressesOf, type AddressSum } from "./address";
import { numberOf, sum, textOf } from "./numbers";
import { rateOf, ratesOf, type LooksByRouter } from "./rates";
import type { Row, Snapshot } from "./types";

/** Deliveries per second over all routers; null while they are not known. */
export interface Totals {
  readonly ingress: number | null;
  readonly egress: number | null;
  readonly transit: number | null;
  /** Deliveries that clients were sent or wait for, and that are not settled. */
  readonly inFlight: number | null;
  readonly connections: number | null;
  readonly addresses: number;
  readonly links: number | null;
}

const keyOf = (row: Row): string => textOf(row["identity"]) || textOf(row["key"]) || textOf(row["name"]);

/** Return the sums over all routers. A login that may not see routers, as a tenant's, gets the sums of its addresses. */
export function totalsOf(snapshot: Snapshot, routers: LooksByRouter, addresses: LooksByRouter): Totals {
  const rate = (attribute: string): number | null =>
    routers.size > 0
      ? sum([...routers.values()].map((looks) => rateOf(looks, attribute)))
      : sum([...addresses.values()].map((looks) => sum(ratesOf(looks, attribute, keyOf).values())));
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
    connections: connections.length === 0 ? null : connections.flat().filter(isClients).length,
    addresses: addressesOf(snapshot).length,
    links: links.length === 0 ? null : links.flat().filter((link) => link["linkType"] === "endpoint").length,
  };
}

const isToClient = (link: Row): boolean => link["linkType"] === "endpoint" && link["linkDir"] === "out";
const isClients = (row: Row): boolean => row["role"] !== "inter-router" && row["role"] !== "edge";

/** An address and how much goes through it. */
export interface ActiveAddress extends AddressSum {
  readonly ingress: number | null;
  readonly egress: number | null;
}

/** Return the addresses of clients through which most goes, the busiest first; at most `most`. */
export function activeAddresses(snapshot: Snapshot, looks: LooksByRouter, most: number): ActiveAddress[] {
  const byKey = (attribute: string): Map<string, number | null> => {
    const found = new Map<string, number | null>();
    for (const each of looks.values())
      for (const [key, rate] of ratesOf(each, attribute, (row) => textOf(row["key"]) || textOf(row["name"])))
        found.set(key, sum([found.get(key) ?? null, rate]));
    return found;
  };
  const ingress = byKey("deliveriesIngress");
  const egress = byKey("deliveriesEgress");
  return addressesOf(snapshot)
    .map((address) => ({ ...address, ingress: ingress.get(address.key) ?? null, egress: egress.get(address.key) ?? null }))
    .sort((one, other) => flow(other) - flow(one))
    .slice(0, most);
}

const flow = (address: ActiveAddress): number => (address.ingress ?? 0) + (address.egress ?? 0);

/** A connection whose deliveries take longer than a second. */
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
  readonly delayed: number;
  readonly stuck: number;
}

/** Return the connections with delayed deliveries, those that delay most first; at most `most`. */
export function delayedConnections(snapshot: Snapshot, looks: LooksByRouter, most: number): DelayedConnection[] {
  const found: DelayedConnection[] = [];
  for (const router of snapshot.routers) {
    const rates = [1, 10].map((seconds) => ratesOf(looks.get(router.id), `deliveriesDelayed${seconds}Sec`, keyOf));
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
  return found.sort((one, other) => weight(other) - weight(one)).slice(0, most);
}
