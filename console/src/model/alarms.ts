/** The alarms for the operator, from the tables of all routers. */
import type { Alarm, Rule, Severity } from "./alarm";
import {
  certificates, deniedLogins, failedConnectors, lockedUsers, lostRecords, missingWorkers, notServed, openListeners, quotas, unreachable,
} from "./alarm-router";
import { blockedLinks, stuckDeliveries } from "./alarm-traffic";
import type { Snapshot } from "./types";

export type { Alarm, Severity } from "./alarm";
export { addressPage } from "./alarm-traffic";

const RANK: Readonly<Record<Severity, number>> = { danger: 0, warning: 1, info: 2 };

const RULES: readonly Rule[] = [
  unreachable, missingWorkers, notServed, lostRecords, certificates, blockedLinks, stuckDeliveries, deniedLogins, lockedUsers, quotas,
  failedConnectors, openListeners,
];

/** The tables that alarms read besides those of the overview; they change rarely. */
export const ALARM_TABLES: Readonly<Record<string, readonly string[] | "all">> = {
  sslProfile: ["identity", "name", "certificateEnds"],
  recordLog: ["identity", "name", "recordsLost"],
  listener: ["identity", "name", "role", "host", "port"],
  connector: ["identity", "name", "host", "port", "connectionStatus", "connectionMsg"],
  policy: ["identity", "enableVhostPolicy"],
  vhostStats: ["identity", "hostname", "quotaAlarmsRaised"],
  finding: "all",
  denial: "all",
  authLockout: "all",
};

/** Return all alarms, the most urgent first. `nowMs` is in ms since 1970. */
export function alarms(snapshot: Snapshot, nowMs: number): Alarm[] {
  const found = snapshot.routers.flatMap((router) => RULES.flatMap((rule) => rule(router, nowMs)));
  return found.sort((one, other) => RANK[one.severity] - RANK[other.severity]);
}
