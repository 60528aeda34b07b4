/** Alarms about routers, their configuration and the logins of their clients. */
import { limitAlarms, totalOf, type Alarm } from "./alarm";
import { count, duration, numberOf, textOf } from "./numbers";
import { tableOf } from "./rows";
import { shown } from "./text";
import type { RouterTables } from "./types";

/** A denied login raises an alarm for this time, in ms. */
export const DENIALS_MS = 15 * 60_000;
/** A certificate that ends within this time raises a warning. */
export const ENDS_SOON_DAYS = 30;
/** A certificate that ends within this time raises a grave alarm. */
export const ENDS_NOW_DAYS = 7;
const DAY_S = 86_400;

/** Return an alarm if the router has not answered at all. */
export function unreachable(router: RouterTables): Alarm[] {
  if (router.error === undefined || Object.keys(router.tables).length > 0) return [];
  return [
    {
      key: `unreachable:${router.id}`,
      severity: "danger",
      router: router.id,
      title: `Router ${shown(router.id)} does not answer`,
      detail: router.error,
      to: "/topology",
    },
  ];
}

/** Return an alarm if workers of the router do not answer: what the console shows is that of the others. */
export function missingWorkers(router: RouterTables): Alarm[] {
  if (router.missing === undefined) return [];
  return [
    {
      key: `workers:${router.id}`,
      severity: "danger",
      router: router.id,
      title: `Workers of router ${shown(router.id)} are missing in what is shown`,
      detail: router.missing,
      to: "/entities/connection",
    },
  ];
}

/** Return an alarm about the logins denied within DENIALS_MS. */
export function deniedLogins(router: RouterTables, nowMs: number): Alarm[] {
  const recent = tableOf(router, "denial").filter(
    (row) => row["operation"] === "login" && nowMs - (numberOf(row["at"]) ?? 0) <= DENIALS_MS,
  );
  const last = recent[recent.length - 1];
  if (last === undefined) return [];
  const times = totalOf(recent, "count");
  return [
    {
      key: `logins:${router.id}`,
      severity: "warning",
      router: router.id,
      title: times === 1 ? "A login was denied" : `${times.toLocaleString("en")} logins were denied`,
      detail: `Last ${textOf(last["user"]) || "a client without a name"} from ${textOf(last["host"])}: ${textOf(last["reason"])}`,
      to: "/policy/denials",
    },
  ];
}

/** Return an alarm for each user that is locked out. */
export function lockedUsers(router: RouterTables): Alarm[] {
  const locked = tableOf(router, "authLockout").filter((row) => row["locked"] === true);
  return limitAlarms(router, "locked", "users locked out", locked.map((row) => ({
    key: `locked:${router.id}:${textOf(row["identity"])}`,
    severity: "warning",
    router: router.id,
    title: `User ${shown(textOf(row["user"]))} is locked out at ${shown(textOf(row["host"]))}`,
    detail: `For another ${duration(numberOf(row["lockedSeconds"]) ?? 0)}`,
    to: "/entities/authLockout",
  })));
}

/** Return an alarm for each certificate that ends within ENDS_SOON_DAYS. */
export function certificates(router: RouterTables, nowMs: number): Alarm[] {
  const alarms: Alarm[] = [];
  for (const profile of tableOf(router, "sslProfile")) {
    const endS = numberOf(profile["certificateEnds"]);
    if (endS === null) continue;
    const leftS = endS - nowMs / 1000;
    if (leftS > ENDS_SOON_DAYS * DAY_S) continue;
    const name = shown(textOf(profile["name"]));
    alarms.push({
      key: `certificate:${router.id}:${name}`,
      severity: leftS <= ENDS_NOW_DAYS * DAY_S ? "danger" : "warning",
      router: router.id,
      title: leftS <= 0 ? `The certificate of ${name} has ended` : `The certificate of ${name} ends in ${duration(leftS)}`,
      detail: new Date(endS * 1000).toLocaleString(),
      to: "/entities/sslProfile",
    });
  }
  return alarms;
}

/** Return an alarm for each record log with lost records, and one for lost log lines. */
export function lostRecords(router: RouterTables): Alarm[] {
  const alarms: Alarm[] = [];
  for (const log of tableOf(router, "recordLog")) {
    const lost = numberOf(log["recordsLost"]) ?? 0;
    if (lost === 0) continue;
    alarms.push({
      key: `records:${router.id}:${textOf(log["identity"])}`,
      severity: "danger",
      router: router.id,
      title: `${count(lost, "record")} of ${shown(textOf(log["name"]))} ${lost === 1 ? "is" : "are"} lost`,
      detail: "The disk or the queue had no room for them",
      to: "/entities/recordLog",
    });
  }
  const lines = numberOf(tableOf(router, "router")[0]?.["logLinesLost"]) ?? 0;
  if (lines > 0)
    alarms.push({
      key: `lines:${router.id}`,
      severity: "warning",
      router: router.id,
      title: `${count(lines, "log line")} ${lines === 1 ? "is" : "are"} lost`,
      detail: "The output of the log could not be written",
      to: "/entities/log",
    });
  return alarms;
}

/** Return whether other machines can reach a listener on this host: it is no loopback address. */
export function isPublic(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, "").toLowerCase();
  return !(bare === "localhost" || bare === "::1" || bare.startsWith("127.") || bare.startsWith("::ffff:127."));
}

/** Return an alarm for each listener that other machines can reach while the router enforces no policy. */
export function openListeners(router: RouterTables): Alarm[] {
  const policy = tableOf(router, "policy")[0];
  if (policy === undefined || policy["enableVhostPolicy"] === true) return [];
  const open = tableOf(router, "listener").filter(
    (row) => !["inter-router", "edge"].includes(textOf(row["role"])) && isPublic(textOf(row["host"])),
  );
  return limitAlarms(router, "open", "listeners without a policy are open to other machines", open.map((row) => ({
    key: `open:${router.id}:${textOf(row["identity"])}`,
    severity: "warning",
    router: router.id,
    title: `Listener ${shown(textOf(row["name"]))} is open to other machines, and no policy applies to its clients`,
    detail: `${textOf(row["host"]) || "every address"} at port ${textOf(row["port"])}: every client may send, receive and manage`,
    to: "/entities/listener",
  })));
}

/** Return an alarm about the parts of the configuration that the router does not serve. */
export function notServed(router: RouterTables): Alarm[] {
  const problems = tableOf(router, "finding").filter((row) => row["severity"] === "problem");
  if (problems.length === 0) return [];
  return [
    {
      key: `served:${router.id}`,
      severity: "danger",
      router: router.id,
      title: `${count(problems.length, "part")} of the configuration ${problems.length === 1 ? "is" : "are"} not served`,
      detail: problems.map((row) => textOf(row["entity"]) || textOf(row["section"])).slice(0, 3).join(", "),
      to: "/overview?at=configuration",
    },
  ];
}

/** Return an alarm for each connector without a connection. */
export function failedConnectors(router: RouterTables): Alarm[] {
  const failed = tableOf(router, "connector").filter((row) => ["CONNECTING", "FAILED"].includes(textOf(row["connectionStatus"])));
  return limitAlarms(router, "connectors", "connectors without a connection", failed.map((row) => ({
    key: `connector:${router.id}:${textOf(row["identity"])}`,
    severity: "warning",
    router: router.id,
    title: `Connector ${shown(textOf(row["name"]))} has no connection`,
    detail: textOf(row["connectionMsg"]) || `${textOf(row["host"])}:${textOf(row["port"])}`,
    to: "/entities/connector",
  })));
}

/** Return an alarm for each vhost that has reached a quota. */
export function quotas(router: RouterTables): Alarm[] {
  return tableOf(router, "vhostStats").flatMap((row) => {
    const raised = row["quotaAlarmsRaised"];
    if (!Array.isArray(raised) || raised.length === 0) return [];
    return [
      {
        key: `quota:${router.id}:${textOf(row["hostname"])}`,
        severity: "warning" as const,
        router: router.id,
        title: `Quotas of vhost ${shown(textOf(row["hostname"]))} are met`,
        detail: raised.slice(0, 3).map(textOf).join(", "),
        to: "/policy",
      },
    ];
  });
}
