/** Vhosts with their groups and those who are connected, denials, and explanations of the policy. */
import { numberOf, textOf } from "./numbers";
import type { Row, RouterTables, Snapshot, Value } from "./types";

/** One vhost of one router. */
export interface Vhost {
  readonly router: string;
  readonly hostname: string;
  readonly aliases: string;
  readonly groups: readonly Group[];
  readonly isEnforced: boolean;
  readonly current: number | null;
  readonly approved: number | null;
  readonly denied: number | null;
  readonly linksDenied: number | null;
}

/** One group of a vhost: who belongs to it, and its settings as they are configured. */
export interface Group {
  readonly name: string;
  readonly users: string;
  readonly settings: readonly (readonly [name: string, value: string])[];
}

/** A user, the vhost under which it is connected, and from where. */
export interface ConnectedUser {
  readonly router: string;
  readonly vhost: string;
  readonly group: string;
  readonly user: string;
  readonly connections: readonly string[];
}

/** One denial as `denial` tells it. */
export interface DenialLine {
  readonly key: string;
  readonly router: string;
  readonly at: number;
  readonly count: number;
  readonly operation: string;
  readonly reason: string;
  readonly user: string;
  readonly host: string;
  readonly vhost: string;
  readonly rule: string;
  readonly about: string;
}

const isMap = (value: Value | undefined): value is Row =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
const listed = (value: Value | undefined): string =>
  Array.isArray(value) ? (value as readonly Value[]).map(textOf).join(", ") : textOf(value);
const rows = (router: RouterTables, entity: string): readonly Row[] => router.tables[entity] ?? [];

/** Return the vhosts of all routers, and those that are not configured but have connections. */
export function vhostsOf(snapshot: Snapshot): Vhost[] {
  return snapshot.routers.flatMap((router) => {
    const stats = new Map(rows(router, "vhostStats").map((row) => [nameOf(row), row]));
    const configured = new Map(rows(router, "vhost").map((row) => [nameOf(row), row]));
    const isEnforced = rows(router, "policy")[0]?.["enableVhostPolicy"] === true;
    return [...new Set([...configured.keys(), ...stats.keys()])].map((hostname) => {
      const row = configured.get(hostname);
      const told = stats.get(hostname);
      const number = (name: string): number | null => numberOf(told?.[name]);
      return {
        router: router.id,
        hostname,
        aliases: listed(row?.["aliases"]),
        groups: groupsOf(row?.["groups"]),
        isEnforced,
        current: number("connectionsCurrent"),
        approved: number("connectionsApproved"),
        denied: number("connectionsDenied"),
        linksDenied: told === undefined ? null : (number("senderDenied") ?? 0) + (number("receiverDenied") ?? 0),
      };
    });
  });
}

const nameOf = (row: Row): string => textOf(row["hostname"]) || textOf(row["id"]) || textOf(row["name"]);

function groupsOf(value: Value | undefined): Group[] {
  if (!isMap(value)) return [];
  return Object.entries(value).map(([name, told]) => {
    const settings = isMap(told) ? told : {};
    return {
      name,
      users: listed(settings["users"]),
      settings: Object.entries(settings)
        .filter(([key, each]) => key !== "users" && each !== null && each !== "")
        .map(([key, each]) => [key, listed(each)] as const),
    };
  });
}

/** Return who is connected under which vhost, by router; the group is the one that the vhost's lists tell. */
export function connectedUsers(snapshot: Snapshot): ConnectedUser[] {
  const vhosts = new Map(vhostsOf(snapshot).map((vhost) => [`${vhost.router} ${vhost.hostname}`, vhost]));
  return snapshot.routers.flatMap((router) =>
    rows(router, "vhostStats").flatMap((row) => {
      const state = row["perUserState"];
      if (!isMap(state)) return [];
      const vhost = nameOf(row);
      const groups = vhosts.get(`${router.id} ${vhost}`)?.groups ?? [];
      return Object.entries(state).map(([user, connections]) => ({
        router: router.id,
        vhost,
        group: groupOf(user, groups),
        user,
        connections: Array.isArray(connections) ? (connections as readonly Value[]).map(textOf) : [],
      }));
    }),
  );
}

/** Return the group that lists the user, else the one of every user, else $default. */
export function groupOf(user: string, groups: readonly Group[]): string {
  const users = (group: Group): string[] => group.users.split(",").map((each) => each.trim());
  const found = groups.find((group) => users(group).includes(user)) ?? groups.find((group) => users(group).includes("*"));
  return found?.name ?? groups.find((group) => group.name === "$default")?.name ?? "";
}

/** Return the denials of all routers, the newest first. */
export function denialsOf(snapshot: Snapshot): DenialLine[] {
  const found = snapshot.routers.flatMap((router) =>
    rows(router, "denial").map((row) => ({
      key: `${router.id} ${textOf(row["identity"])}`,
      router: router.id,
      at: numberOf(row["at"]) ?? 0,
      count: numberOf(row["count"]) ?? 1,
      operation: textOf(row["operation"]),
      reason: textOf(row["reason"]),
      user: textOf(row["user"]),
      host: textOf(row["host"]),
      vhost: textOf(row["vhost"]),
      rule: textOf(row["rule"]),
      about: textOf(row["about"]),
    })),
  );
  return found.sort((one, other) => other.at - one.at);
}

/** What the policy decides, from the answer to EXPLAIN-POLICY. */
export interface Decision {
  readonly isAllowed: boolean;
  readonly rule: string;
  readonly steps: readonly (readonly [what: string, found: string, why: string])[];
  readonly settings: readonly (readonly [name: string, value: string])[];
}

/** Return what the answer to EXPLAIN-POLICY says; undefined if it is none. */
export function decisionOf(answer: Value): Decision | undefined {
  if (!isMap(answer) || typeof answer["allowed"] !== "boolean") return undefined;
  const steps = Array.isArray(answer["steps"]) ? (answer["steps"] as readonly Value[]) : [];
  const settings = isMap(answer["settings"]) ? Object.entries(answer["settings"]) : [];
  return {
    isAllowed: answer["allowed"],
    rule: textOf(answer["rule"]),
    steps: steps.filter(isMap).map((step) => [textOf(step["what"]), textOf(step["found"]), textOf(step["why"])] as const),
    settings: settings.filter(([, value]) => value !== null).map(([name, value]) => [name, listed(value)] as const),
  };
}
