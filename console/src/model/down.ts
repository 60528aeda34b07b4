/** What the configuration connects to other containers and is down: connectors, uplinks, auto links, link routes. */
import { numberOf, textOf } from "./numbers";
import { mapAt, tableOf } from "./rows";
import type { Row, RouterTables, Snapshot } from "./types";

/** One part that is down. Qpid Dispatch does not report since when, nor attempts. */
export interface DownPart {
  readonly key: string;
  readonly kind: "Connector" | "Uplink" | "Auto link" | "Link route";
  /** The configured name, or else what it is for. */
  readonly name: string;
  readonly router: string;
  readonly state: string;
  /** In ms since 1970; null if the router does not report it. */
  readonly since: number | null;
  readonly attempts: number | null;
  readonly reason: string;
  /** The type and the identity of the entity with the details; the identity is "" for the table. */
  readonly entity: string;
  readonly identity: string;
}

/** The tables that this needs, with the attributes of a router's row. */
export const DOWN_TABLES = {
  connector: ["identity", "name", "role", "host", "port", "connectionStatus", "connectionMsg", "connectionAttempts", "downSince"],
  "router.config.autoLink": ["identity", "name", "address", "addr", "direction", "dir", "operStatus", "lastError", "attempts", "downSince"],
  "router.config.linkRoute": ["identity", "name", "prefix", "pattern", "direction", "dir", "operStatus", "downSince"],
} as const;

/** The attributes of `router` that this needs. */
export const DOWN_OF_ROUTER = ["uplinkFault", "uplinkDownSince"] as const;

/** The states of a connector without a connection, and of an auto link or a link route without a link or a broker. */
const CONNECTOR_DOWN: ReadonlySet<string> = new Set(["INITIALIZING", "CONNECTING", "FAILED"]);
const ROUTE_DOWN: ReadonlySet<string> = new Set(["inactive", "attaching", "failed"]);

const directionOf = (row: Row): string => textOf(row["direction"]) || textOf(row["dir"]);

function partOf(router: RouterTables, entity: string, row: Row, part: Pick<DownPart, "kind" | "name" | "state" | "reason">, attempts: string): DownPart {
  const identity = textOf(row["identity"]);
  return {
    key: `${router.id} ${entity} ${identity || part.name}`,
    router: router.id,
    since: numberOf(row["downSince"]),
    attempts: numberOf(row[attempts]),
    entity,
    identity,
    ...part,
  };
}

function downConnectors(router: RouterTables): DownPart[] {
  return tableOf(router, "connector")
    .filter((row) => CONNECTOR_DOWN.has(textOf(row["connectionStatus"])))
    .map((row) => {
      const state = textOf(row["connectionStatus"]).toLowerCase();
      const target = `${textOf(row["host"])}:${textOf(row["port"])}`;
      const name = textOf(row["name"]) || target;
      const reason = textOf(row["connectionMsg"]) || `no connection to ${target} yet`;
      return partOf(router, "connector", row, { kind: "Connector", name, state, reason }, "connectionAttempts");
    });
}

function downUplinks(router: RouterTables): DownPart[] {
  const entity = "router";
  return tableOf(router, entity)
    .filter((row) => textOf(row["uplinkFault"]) !== "")
    .map((row) => ({
      key: `${router.id} uplink`,
      kind: "Uplink",
      name: router.id,
      router: router.id,
      state: "unusable",
      since: numberOf(row["uplinkDownSince"]),
      attempts: null,
      reason: textOf(row["uplinkFault"]),
      entity,
      identity: textOf(row["identity"]),
    }));
}

function downRoutes(router: RouterTables, kind: "Auto link" | "Link route", entity: string): DownPart[] {
  return tableOf(router, entity)
    .filter((row) => ROUTE_DOWN.has(textOf(row["operStatus"])))
    .map((row) => {
      const address = textOf(row["address"]) || textOf(row["addr"]) || textOf(row["prefix"]) || textOf(row["pattern"]);
      const name = textOf(row["name"]) || `${address} (${directionOf(row)})`;
      const state = textOf(row["operStatus"]);
      const reason = textOf(row["lastError"]) || (state === "inactive" ? "no broker of it is connected" : "");
      return partOf(router, entity, row, { kind, name, state, reason }, "attempts");
    });
}

/** Return what is down on all routers: connectors and uplinks first, because they take the others down. */
export function downParts(snapshot: Snapshot): DownPart[] {
  const of = (rule: (router: RouterTables) => DownPart[]): DownPart[] => snapshot.routers.flatMap(rule);
  return [
    ...of(downConnectors),
    ...of(downUplinks),
    ...of((router) => downRoutes(router, "Auto link", "router.config.autoLink")),
    ...of((router) => downRoutes(router, "Link route", "router.config.linkRoute")),
  ];
}

/** Those whom a router refuses. */
export interface Refused {
  readonly router: string;
  readonly denied: number | null;
  readonly locked: number | null;
  readonly turnedAway: number | null;
  /** Connections refused before their open, by reason: "2 sasl, 1 tls". */
  readonly handshakes: string;
}

/** The attributes of `router` about refused clients; the table authLockout has the locked users. */
export const REFUSED_OF_ROUTER = ["loginsDenied", "connectionsTurnedAway", "handshakesRefused"] as const;

/** Return the counts of a map as text, the largest first. */
function countsText(counts: Row): string {
  const known = Object.entries(counts).map(([reason, value]) => [reason, numberOf(value) ?? 0] as const);
  return known.sort(([, one], [, other]) => other - one).map(([reason, count]) => `${count} ${reason}`).join(", ");
}

/** Return whom each router refuses that tells of it. */
export function refusedClients(snapshot: Snapshot): Refused[] {
  return snapshot.routers.flatMap((router) => {
    const row = tableOf(router, "router")[0];
    if (row === undefined) return [];
    const lockouts = router.tables["authLockout"];
    return [
      {
        router: router.id,
        denied: numberOf(row["loginsDenied"]),
        locked: lockouts === undefined ? null : lockouts.filter((each) => each["locked"] === true).length,
        turnedAway: numberOf(row["connectionsTurnedAway"]),
        handshakes: countsText(mapAt(row, "handshakesRefused")),
      },
    ];
  });
}
