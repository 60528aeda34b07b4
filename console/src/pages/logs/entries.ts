/** Log entries of the routers looked at, fetched again and again while the page is open. */

import { useEffect, useState } from "react";

import type { RouterRef, Value } from "../../model/types";
import { manage } from "../../store";

/** The levels from the least to the most serious. */
export const LEVELS = ["trace", "debug", "info", "notice", "warning", "error", "critical"] as const;

/** Entries asked of each router. */
export const LIMIT = 500;
const EVERY_MS = 5_000;

export interface Entry {
  readonly router: string;
  /** The place among the entries of that answer, newest last, which keeps entries of one second in their order. */
  readonly place: number;
  readonly module: string;
  readonly level: string;
  readonly text: string;
  readonly file: string;
  /** ms since 1970. */
  readonly at: number;
}

export interface Fetched {
  readonly entries: readonly Entry[];
  /** What went wrong, by router. */
  readonly problems: Readonly<Record<string, string>>;
  readonly isLoading: boolean;
}

const text = (value: Value | undefined): string => (typeof value === "string" ? value : "");

/** Return the entries in the answer to GET-LOG of one router; what is no entry is left out. */
export function entriesOf(router: string, answer: Value): Entry[] {
  if (!Array.isArray(answer)) return [];
  return (answer as readonly Value[]).filter(Array.isArray).map((cells: readonly Value[], place) => {
    const [module, level, said, file, line, seconds] = cells;
    const source = text(file);
    return {
      router,
      place,
      module: text(module),
      level: text(level),
      text: text(said),
      file: source === "" ? "" : `${source}:${typeof line === "number" ? line : ""}`,
      at: Number(seconds ?? 0) * 1_000,
    };
  });
}

/** Whether an entry of `level` is at least as serious as `least`; an unknown level is shown. */
export function isAtLeast(level: string, least: string): boolean {
  const [one, other] = [LEVELS.findIndex((name) => name === level), LEVELS.findIndex((name) => name === least)];
  return one < 0 || one >= other;
}

/** The newest entries of `module` ("" for all) on these routers, newest first. */
export function useEntries(routers: readonly RouterRef[], module: string): Fetched {
  const [fetched, setFetched] = useState<Fetched>({ entries: [], problems: {}, isLoading: true });
  const key = JSON.stringify([routers, module]);
  useEffect(() => {
    let isOpen = true;
    const [asked, only] = JSON.parse(key) as [RouterRef[], string];
    const properties = { limit: LIMIT, ...(only === "" ? {} : { module: only }) };
    const fetchAll = async (): Promise<void> => {
      const problems: Record<string, string> = {};
      const answers = asked.map(async ({ id, address }) => {
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
    const repeat = async (): Promise<void> => {
      while (isOpen) {
        await fetchAll();
        await new Promise((resume) => setTimeout(resume, EVERY_MS));
      }
    };
    void repeat();
    return () => {
      isOpen = false;
    };
  }, [key]);
  return fetched;
}
