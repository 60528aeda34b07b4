/** The type of an alarm, and what the rules of alarms share. */
import { numberAt } from "./rows";
import type { Row, RouterTables } from "./types";

/** How urgent an alarm is, "danger" the most. */
export type Severity = "danger" | "warning" | "info";

/** One alarm for the operator. Its texts contain names that peers chose. */
export interface Alarm {
  /** Unique, and the same at each update. */
  readonly key: string;
  readonly severity: Severity;
  /** The id of the router that the alarm is about. */
  readonly router: string;
  readonly title: string;
  readonly detail: string;
  /** The route of the page with the details. */
  readonly to: string;
}

/** Return the alarms of one kind about one router. `nowMs` is in ms since 1970. */
export type Rule = (router: RouterTables, nowMs: number) => Alarm[];

/** Alarms of one kind on one router that are listed, at most. */
const MAX_LISTED = 5;

/** Return the sum of an attribute over rows; a row without it counts as 0. */
export const totalOf = (rows: readonly Row[], attribute: string): number =>
  rows.reduce((sum, row) => sum + numberAt(row, attribute), 0);

/** Return the first MAX_LISTED alarms of one kind, and one alarm with the number of the others ("35 more SUBJECT"). */
export function limitAlarms(router: RouterTables, kind: string, subject: string, alarms: readonly Alarm[]): Alarm[] {
  if (alarms.length <= MAX_LISTED + 1) return [...alarms];
  const first = alarms[0];
  const more: Alarm = {
    key: `${kind}:${router.id}:more`,
    severity: first?.severity ?? "warning",
    router: router.id,
    title: `${(alarms.length - MAX_LISTED).toLocaleString("en")} more ${subject}`,
    detail: "",
    to: kind === "blocked" || kind === "stuck" ? "/address" : (first?.to ?? "/overview"),
  };
  return [...alarms.slice(0, MAX_LISTED), more];
}
