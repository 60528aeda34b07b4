/** Log entries of the chosen routers, fetched every EVERY_MS while the page is open. */

import { useEffect, useState } from "react";

import type { RouterRef, Value } from "../../model/types";
import { manage } from "../../store";
import { repeat } from "../common/repeat";

/** The levels of log entries, the least serious first. */
export const LEVELS = ["trace", "debug", "info", "notice", "warning", "error", "critical"] as const;

/** Entries requested from each router. */
export const LIMIT = 500;
const EVERY_MS = 5_000;

/** One log entry. */
export interface Entry {
  readonly router: string;
  /** The index in the router's answer, newest last; it orders entries of the same second. */
  readonly place: number;
  readonly module: string;
  readonly level: string;
  readonly text: string;
  /** Source file and line, "server.py:12"; "" if the router does not report them. */
  readonly file: string;
  /** In ms since 1970. */
  readonly at: number;
}

/** The log entries of several routers. */
export interface LogEntries {
  readonly entries: readonly Entry[];
  /** The errors of requests, by router id. */
  readonly problems: Readonly<Record<string, string>>;
  readonly isLoading: boolean;
}

const text = (value: Value | undefined): string => (typeof value === "string" ? value : "");

/** Return the entries in a router's answer to GET-LOG, without elements that are no lists. */
export function entriesOf(router: string, answer: Value): Entry[] {
  if (!Array.isArray(answer)) return [];
  return (answer as readonly Value[]).filter(Array.isArray).map((cells: readonly Value[], place) => {
    const [module, level, message, file, line, seconds] = cells;
    const source = text(file);
    return {
      router,
      place,
      module: text(module),
      level: text(level),
      text: text(message),
      file: source === "" ? "" : `${source}:${typeof line === "number" ? line : ""}`,
      at: Number(seconds ?? 0) * 1_000,
    };
  });
}

/** Return whether `level` is at least as serious as `minimum`; true for an unknown level. */
export function isAtLeast(level: string, minimum: string): boolean {
  const [one, other] = [LEVELS.findIndex((name) => name === level), LEVELS.findIndex((name) => name === minimum)];
  return one < 0 || one >= other;
}

/** Return the newest entries of `module` ("" for all) on these routers, the newest first. */
export function useEntries(routers: readonly RouterRef[], module: string): LogEntries {
  const [fetched, setFetched] = useState<LogEntries>({ entries: [], problems: {}, isLoading: true });
  const key = JSON.stringify([routers, module]);
  useEffect(() => {
    let isOpen = true;
    const [requested, moduleFilter] = JSON.parse(key) as [RouterRef[], string];
    const properties = { limit: LIMIT, ...(moduleFilter === "" ? {} : { module: moduleFilter }) };
    const fetchAll = async (): Promise<void> => {
      const problems: Record<string, string> = {};
      const answers = requested.map(async ({ id, address }) => {
        try {
          return entriesOf(id, await manage(address, { operation: "GET-LOG", properties }));
        } catch (error) {
          problems[id] = error instanceof Error ? error.message : String(error);
          return [];
        }
      });
      const entries = (await Promise.all(answers)).flat().sort((one, other) => other.at - one.at || other.place - one.place);
      if (isOpen) setFetched({ entries, problems, isLoading: false });
    };
    const stop = repeat(fetchAll, EVERY_MS);
    return () => {
      isOpen = false;
      stop();
    };
  }, [key]);
  return fetched;
}
