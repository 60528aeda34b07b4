/** The policy: vhosts with their groups and connected users, denials, and explanations of decisions. */
import { numberOf, textOf } from "./numbers";
import { isMap, tableOf } from "./rows";
import type { Row, Snapshot, Value } from "./types";

/** One vhost of one router. */
export interface Vhost {
  readonly router: string;
  readonly hostname: string;
  readonly aliases: string;
  readonly groups: readonly Group[];
  /** The router enforces vhost policies (enableVhostPolicy). */
  readonly isEnforced: boolean;
  /** Open connections. */
  readonly current: number | null;
  /** Connections that the policy has admitted. */
  readonly approved: number | null;
  /** Connections that the policy has denied. */
  readonly denied: number | null;
  readonly linksDenied: number | null;
}

/** One group of a vhost with its users and its configured settings. */
export interface Group {
  readonly name: string;
  /** The user names, separated by commas; "*" stands for all users. */
  readonly users: string;
  readonly settings: readonly (readonly [name: string, value: string])[];
}

/** A user that is connected under a vhost of one router. */
export interface ConnectedUser {
  readonly router: string;
  readonly vhost: string;
  readonly group: string;
  readonly user: string;
  /** The hosts and ports of the user's connections. */
  readonly connections: readonly string[];
}

/** One row of the type `denial`: equal denials are counted together. */
export interface Denial {
  readonly key: string;
  readonly router: string;
  /** When the last one happened, in ms since 1970. */
  readonly at: number;
  readonly count: number;
  readonly operation: string;
  readonly reason: string;
  readonly user: string;
  readonly host: string;
  readonly vhost: string;
  readonly rule: string;
  /** The address or entity that was denied, or the mechanism of a login. */
  readonly about: string;
}

const joinedText = (value: Value | undefined): string =>
  Array.isArray(value) ? (value as readonly Value[]).map(textOf).join(", ") : textOf(value);
/** Return the vhosts of all routers: the configured ones, and others that have connections. */
export function vhostsOf(snapshot: Snapshot): Vhost[] {
  return snapshot.routers.flatMap((router) => {
    const stats = new Map(tableOf(router, "vhostStats").map((row) => [nameOf(row), row]));
    const configured = new Map(tableOf(router, "vhost").map((row) => [nameOf(row), row]));
    const isEnforced = tableOf(router, "policy")[0]?.["enableVhostPolicy"] === true;
    return [...new Set([...configured.keys(), ...stats.keys()])].map((hostname) => {
      const row = configured.get(hostname);
      const statistics = stats.get(hostname);
      const number = (name: string): number | null => numberOf(statistics?.[name]);
      return {
        router: router.id,
        hostname,
        aliases: joinedText(row?.["aliases"]),
        groups: groupsOf(row?.["groups"]),
        isEnforced,
        current: number("connectionsCurrent"),
        approved: number("connectionsApproved"),
        denied: number("connectionsDenied"),
        linksDenied: statistics === undefined ? null : (number("senderDenied") ?? 0) + (number("receiverDenied") ?? 0),
      };
    });
  });
}

const nameOf = (row: Row): string => textOf(row["hostname"]) || textOf(row["id"]) || textOf(row["name"]);

function groupsOf(value: Value | undefined): Group[] {
  if (!isMap(value)) return [];
  return Object.entries(value).map(([name, configured]) => {
    const settings = isMap(configured) ? configured : {};
    return {
      name,
      users: joinedText(settings["users"]),
      settings: Object.entries(settings)
        .filter(([key, each]) => key !== "users" && each !== null && each !== "")
        .map(([key, each]) => [key, joinedText(each)] as const),
    };
  });
}

/** Return the connected users of all vhosts of all routers, with the group that lists the user. */
export function connectedUsers(snapshot: Snapshot): ConnectedUser[] {
  const vhosts = new Map(vhostsOf(snapshot).map((vhost) => [`${vhost.router} ${vhost.hostname}`, vhost]));
  return snapshot.routers.flatMap((router) =>
    tableOf(router, "vhostStats").flatMap((row) => {
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

/** Return the name of the group that lists the user, else of the group of all users, else "$default"; "" if there is none. */
export function groupOf(user: string, groups: readonly Group[]): string {
  const users = (group: Group): string[] => group.users.split(",").map((each) => each.trim());
  const found = groups.find((group) => users(group).includes(user)) ?? groups.find((group) => users(group).includes("*"));
  return found?.name ?? groups.find((group) => group.name === "$default")?.name ?? "";
}

/** Return the denials of all routers, the newest first. */
export function denialsOf(snapshot: Snapshot): Denial[] {
  const found = snapshot.routers.flatMap((router) =>
    tableOf(router, "denial").map((row) => ({
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

/** The policy's decision on one request of a user. */
export interface Decision {
  readonly isAllowed: boolean;
  /** The name of the rule that decided. */
  readonly rule: string;
  /** The checks in their order. */
  readonly steps: readonly (readonly [subject: string, finding: string, reason: string])[];
  readonly settings: readonly (readonly [name: string, value: string])[];
}

/** Return the decision in an answer to EXPLAIN-POLICY; undefined if the answer has none. */
export function parseDecision(answer: Value): Decision | undefined {
  if (!isMap(answer) || typeof answer["allowed"] !== "boolean") return undefined;
  const steps = Array.isArray(answer["steps"]) ? (answer["steps"] as readonly Value[]) : [];
  const settings = isMap(answer["settings"]) ? Object.entries(answer["settings"]) : [];
  return {
    isAllowed: answer["allowed"],
    rule: textOf(answer["rule"]),
    steps: steps.filter(isMap).map((step) => [textOf(step["what"]), textOf(step["found"]), textOf(step["why"])] as const),
    settings: settings.filter(([, value]) => value !== null).map(([name, value]) => [name, joinedText(value)] as const),
  };
}
