/** The rows of one type over the chosen routers, and the columns of their table. */

import { createElement } from "react";

import { numberOf } from "../../model/numbers";
import { wholeTableOf } from "../../model/rows";
import { shown } from "../../model/text";
import type { Entity, Row, SchemaType, Snapshot } from "../../model/types";
import { Ago, displayText, type Column } from "../../parts";

/** One entity of one router. */
export interface EntityRow {
  readonly router: string;
  /** The address of the router's management node, as manage() takes it. */
  readonly address: string;
  readonly identity: string;
  readonly row: Row;
}

/** Attributes that come first, if a type has them. */
const FIRST = [
  "name", "id", "hostname", "host", "port", "role", "user", "container", "worker", "linkName", "owningAddr", "address", "addr", "prefix", "pattern",
  "connectionStatus", "operStatus", "downSince", "connectionAttempts", "attempts", "connectionMsg", "lastError",
];
/** Columns that are visible until the user chooses. */
const SHOWN = 10;

/** Return the text that identifies an entity among those of its type. */
export function identityOf(row: Row): string {
  const identity = row["identity"] ?? row["name"];
  return typeof identity === "string" ? identity : displayText(identity);
}

/** Return the name of an entity, or else its identity, as text for a heading. */
export const titleOf = ({ row, identity }: EntityRow): string => shown(displayText(row["name"]) || identity, 200);

/** Return the entities of a type on the chosen router, or on all routers for "". */
export function entityRows(snapshot: Snapshot, entity: Entity, router: string): EntityRow[] {
  return snapshot.routers
    .filter((one) => router === "" || one.id === router)
    .flatMap((one) =>
      wholeTableOf(one, entity).map((row) => ({ router: one.id, address: one.address, identity: identityOf(row), row })),
    );
}

/** Return the attributes of a type: those of the schema that are not deprecated, and those that only the rows have. */
export function attributesOf(type: SchemaType | undefined, rows: readonly EntityRow[]): string[] {
  const current = Object.entries(type?.attributes ?? {}).filter(([, attribute]) => !attribute.deprecated);
  const deprecated = Object.entries(type?.attributes ?? {}).filter(([, attribute]) => attribute.deprecated);
  const hidden = new Set(deprecated.map(([name]) => name).concat("type"));
  const names = new Set(current.map(([name]) => name));
  for (const name of Object.keys(rows[0]?.row ?? {})) names.add(name);
  const all = [...names].filter((name) => !hidden.has(name));
  return [...FIRST.filter((name) => all.includes(name)), ...all.filter((name) => !FIRST.includes(name))];
}

/** The description of an attribute that is a time says so. */
const TIME = "in milliseconds since 1970";

/** Return how a cell shows a time: as how long ago it was. */
function timeCell(name: string): Pick<Column<EntityRow>, "cell"> {
  return {
    cell: ({ row }) => {
      const ms = numberOf(row[name]);
      return ms === null ? "" : createElement(Ago, { ms });
    },
  };
}

/** Return the columns of a type's table. The first attributes with values are visible, the others hidden until the user chooses them. */
export function columnsOf(
  type: SchemaType | undefined,
  rows: readonly EntityRow[],
  isOverAll: boolean,
): Column<EntityRow>[] {
  const attributes = attributesOf(type, rows);
  const hasValue = (name: string): boolean => rows.some(({ row }) => row[name] !== null && row[name] !== undefined);
  const shown = new Set(attributes.filter((name) => rows.length === 0 || hasValue(name)).slice(0, SHOWN));
  return [
    { key: "router", title: "router", value: ({ router }) => router, isHidden: !isOverAll },
    ...attributes.map((name) => ({
      key: name === "router" ? "router of the entity" : name,
      title: name,
      value: ({ row }: EntityRow) => row[name],
      isHidden: !shown.has(name),
      help: type?.attributes[name]?.description,
      ...((type?.attributes[name]?.description ?? "").includes(TIME) ? timeCell(name) : {}),
    })),
  ];
}
