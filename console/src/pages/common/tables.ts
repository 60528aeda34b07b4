import { useMemo, useState } from "react";

import { updatePairs, type TablePairs } from "../../model/rates";
import type { Entity, Snapshot } from "../../model/types";
import { useSchema, useTables, type Wanted } from "../../store";

/** Attributes that every router reports, although its schema may not list them. */
const ALWAYS_REPORTED: ReadonlySet<string> = new Set(["identity", "name", "connectionId"]);

/** Keep the wanted tables fresh without types and attributes that the schema lacks (Qpid Dispatch has fewer); see useTables. */
export function useSupportedTables(wanted: Wanted, everyMs: number, routers?: readonly string[]): Snapshot {
  const { types } = useSchema();
  const supportedTables = useMemo(
    () =>
      Object.fromEntries(
        Object.entries(wanted).flatMap(([entity, attributes]) => {
          const type = types[entity];
          if (type === undefined) return [];
          const supported = attributes === "all" ? attributes : attributes.filter((name) => name in type.attributes || ALWAYS_REPORTED.has(name));
          return [[entity, supported] as const];
        }),
      ),
    [wanted, types],
  );
  return useTables(supportedTables, everyMs, routers);
}

const NOTHING: TablePairs = new Map();

/** Return the last two tables of one type of all routers, for rates. */
export function useTablePairs(snapshot: Snapshot, entity: Entity): TablePairs {
  const [pairs, setLooks] = useState(NOTHING);
  const next = updatePairs(pairs, snapshot, entity);
  // Set while rendering: the pairs are part of this rendering, and the next snapshot builds on them.
  if (next !== pairs) setLooks(next);
  return next;
}

/** Why a table is absent: the policy refuses it, no router has the type ("absent"), or no answer has come yet ("pending"). */
export type TableAbsence = "refused" | "absent" | "pending";

/** Return the reason why no router reports the table; undefined if one does. */
export function useTableAbsence(snapshot: Snapshot, entity: Entity): TableAbsence | undefined {
  const { types } = useSchema();
  if (snapshot.routers.some((router) => router.tables[entity] !== undefined)) return undefined;
  if (Object.keys(types).length > 0 && types[entity] === undefined) return "absent";
  return snapshot.routers.some((router) => router.refused?.[entity] !== undefined) ? "refused" : "pending";
}
