import { useMemo, useState } from "react";

import { look, type LooksByRouter } from "../../model/rates";
import type { Entity, Snapshot } from "../../model/types";
import { useSchema, useTables, type Wanted } from "../../store";

/** Attributes that every router shows, whether its schema tells of them or not. */
const UNTOLD: ReadonlySet<string> = new Set(["identity", "name", "connectionId"]);

/** Keep those of the tables fresh that the routers' schema has: a router of the older kind lacks some types and attributes. */
export function useKnownTables(wanted: Wanted, everyMs: number, routers?: readonly string[]): Snapshot {
  const { types } = useSchema();
  const known = useMemo(
    () =>
      Object.fromEntries(
        Object.entries(wanted).flatMap(([entity, attributes]) => {
          const type = types[entity];
          if (type === undefined) return [];
          const there = attributes === "all" ? attributes : attributes.filter((name) => name in type.attributes || UNTOLD.has(name));
          return [[entity, there] as const];
        }),
      ),
    [wanted, types],
  );
  return useTables(known, everyMs, routers);
}

const NOTHING: LooksByRouter = new Map();

/** Follow one table of all routers, so that rates can be told from its last two answers. */
export function useLooks(snapshot: Snapshot, entity: Entity): LooksByRouter {
  const [looks, setLooks] = useState(NOTHING);
  const next = look(looks, snapshot, entity);
  // Set while rendering: what was seen is part of what is drawn, and the next snapshot follows it.
  if (next !== looks) setLooks(next);
  return next;
}

/** Why a table is not there: "refused" by the policy, "absent" where no router has the type, "pending" until an answer comes. */
export type Missing = "refused" | "absent" | "pending";

/** Return why no router shows the table; undefined if one does. */
export function useMissing(snapshot: Snapshot, entity: Entity): Missing | undefined {
  const { types } = useSchema();
  if (snapshot.routers.some((router) => router.tables[entity] !== undefined)) return undefined;
  if (Object.keys(types).length > 0 && types[entity] === undefined) return "absent";
  return snapshot.routers.some((router) => router.refused?.[entity] !== undefined) ? "refused" : "pending";
}
