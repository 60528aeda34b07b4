/** What rules of alarms have in common. */
import type { Row, RouterTables } from "./types";

export type Severity = "danger" | "warning" | "info";

/** One thing to look at. Texts hold names that strangers chose: show them as text, made visible. */
export interface Alarm {
  readonly key: string;
  readonly severity: Severity;
  /** The id of the router that it is about. */
  readonly router: string;
  readonly title: string;
  readonly detail: string;
  /** The page to go to, behind the #. */
  readonly to: string;
}

/** Tells what is to be looked at on one router. `nowMs` is in ms since 1970. */
export type Rule = (router: RouterTables, nowMs: number) => Alarm[];

/** Alarms of one kind on one router that are told one by one. */
const SINGLY = 5;

/** Return a table of a router; no rows where it has none or does not show it. */
export const rows = (router: RouterTables, entity: string): readonly Row[] => router.tables[entity] ?? [];

/** Return alarms of one kind: the first few, and one that counts the others. */
export function bounded(router: RouterTables, kind: string, what: string, alarms: readonly Alarm[]): Alarm[] {
  if (alarms.length <= SINGLY + 1) return [...alarms];
  const first = alarms[0];
  const more: Alarm = {
    key: `${kind}:${router.id}:more`,
    severity: first?.severity ?? "warning",
    router: router.id,
    title: `${(alarms.length - SINGLY).toLocaleString("en")} more ${what}`,
    detail: "",
    to: kind === "blocked" || kind === "stuck" ? "/address" : (first?.to ?? "/overview"),
  };
  return [...alarms.slice(0, SINGLY), more];
}
