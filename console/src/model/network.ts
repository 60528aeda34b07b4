/** The state of each router of the network: what `trouter network status` shows, from the tables that the console polls. */
import { numberOf, textOf } from "./numbers";
import { tableOf } from "./rows";
import type { Row, RouterTables, Snapshot } from "./types";

/** The severities of findings, the most serious first. */
export const SEVERITIES = ["problem", "unsafe", "warning", "accepted"] as const;
export type FindingSeverity = (typeof SEVERITIES)[number];

/** One router; null and "" where it has not answered, or reports no such value, as Qpid Dispatch. */
export interface RouterState {
  readonly id: string;
  readonly mode: string;
  /** "no answer", "partly" if some table is missing, or its drain state; "up" for a router that serves. */
  readonly state: string;
  /** Why it does not answer, or answers in part. */
  readonly fault: string;
  readonly version: string;
  readonly uptime: number | null;
  /** The number of its workers as it is configured, or "auto". */
  readonly workers: string;
  readonly connections: number | null;
  readonly blocked: number | null;
  readonly stuck: number | null;
  /** The number of findings of each severity; null if the router reports none at all. */
  readonly findings: Readonly<Record<FindingSeverity, number>> | null;
  /** When the first certificate expires, in ms since 1970. */
  readonly certificateEnds: number | null;
  readonly policy: string;
}

/** The tables that this needs. */
export const NETWORK_TABLES = {
  router: [
    "identity", "id", "mode", "version", "uptimeSeconds", "connectionCount", "linksBlocked", "deliveriesStuck", "drainState", "workers",
  ],
  finding: ["identity", "severity"],
  sslProfile: ["identity", "certificateEnds"],
  policy: ["identity", "policyDigest"],
} as const;

function stateOf(router: RouterTables, row: Row | undefined): string {
  if (row === undefined) return router.error === undefined ? "" : "no answer";
  const drain = textOf(row["drainState"]);
  if (drain !== "" && drain !== "serving") return drain;
  return router.error === undefined && router.missing === undefined ? "up" : "partly";
}

function findingsOf(router: RouterTables): RouterState["findings"] {
  const rows = router.tables["finding"];
  if (rows === undefined) return null;
  const count = (severity: FindingSeverity): number => rows.filter((row) => row["severity"] === severity).length;
  return { problem: count("problem"), unsafe: count("unsafe"), warning: count("warning"), accepted: count("accepted") };
}

/** Return the states of all routers, in the order of their ids. */
export function routerStates(snapshot: Snapshot): RouterState[] {
  return snapshot.routers
    .map((router): RouterState => {
      const row = router.isSilent === true ? undefined : tableOf(router, "router")[0];
      const number = (name: string): number | null => numberOf(row?.[name]);
      const ends = tableOf(router, "sslProfile").map((profile) => numberOf(profile["certificateEnds"]));
      const known = ends.filter((end) => end !== null);
      return {
        id: router.id,
        mode: textOf(row?.["mode"]),
        state: stateOf(router, row),
        fault: router.error ?? router.missing ?? "",
        version: textOf(row?.["version"]),
        uptime: number("uptimeSeconds"),
        workers: textOf(row?.["workers"]),
        connections: number("connectionCount"),
        blocked: number("linksBlocked"),
        stuck: number("deliveriesStuck"),
        findings: row === undefined ? null : findingsOf(router),
        certificateEnds: row === undefined || known.length === 0 ? null : Math.min(...known) * 1000,
        policy: row === undefined ? "" : textOf(tableOf(router, "policy")[0]?.["policyDigest"]),
      };
    })
    .sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** Return the ids of the routers with each policy, by its digest, the most frequent first; routers without a digest are left out. */
export function policiesOf(states: readonly RouterState[]): (readonly [string, readonly string[]])[] {
  const routers = new Map<string, string[]>();
  for (const { policy, id } of states) if (policy !== "") routers.set(policy, [...(routers.get(policy) ?? []), id]);
  return [...routers].sort(([, one], [, other]) => other.length - one.length);
}
