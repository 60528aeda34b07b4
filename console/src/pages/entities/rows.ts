/** The rows of one type over the routers looked at, and the columns that show them. */

import { shown } from "../../model/text";
import type { Entity, Row, SchemaType, Snapshot } from "../../model/types";
import { textOf, type Column } from "../../parts";

/** One entity of one router. */
export interface EntityRow {
  readonly router: string;
  /** The address of the router's management node, as manage() takes it. */
  readonly address: string;
  readonly identity: string;
  readonly row: Row;
}

/** Attributes that come first, where a type has them. */
const FIRST = ["name", "id", "hostname", "host", "port", "role", "container", "linkName", "owningAddr", "address", "addr"];
/** Columns that are shown before the user chooses. */
const SHOWN = 10;

/** Return the text that names an entity among those of its type. */
export function identityOf(row: Row): string {
  const identity = row["identity"] ?? row["name"];
  return typeof identity === "string" ? identity : textOf(identity);
}

/** Return the name of an entity, or its identity, as text that fits a heading. */
export const titleOf = ({ row, identity }: EntityRow): string => shown(textOf(row["name"]) || identity, 200);

/** Return the rows of a type as the routers answered. */
export function rowsOf(snapshot: Snapshot, entity: Entity, router: string): EntityRow[] {
  return snapshot.routers
    .filter((one) => router === "" || one.id === router)
    .flatMap((one) =>
      (one.tables[entity] ?? []).map((row) => ({ router: one.id, address: one.address, identity: identityOf(row), row })),
    );
}

/** Return the attributes of a type: those of the schema that are in use, and those that only the rows have. */
export function attributesOf(type: SchemaType | undefined, rows: readonly EntityRow[]): string[] {
  const told = Object.entries(type?.attributes ?? {}).filter(([, attribute]) => !attribute.deprecated);
  const old = Object.entries(type?.attributes ?? {}).filter(([, attribute]) => attribute.deprecated);
  const hidden = new Set(old.map(([name]) => name).concat("type"));
  const names = new Set(told.map(([name]) => name));
  for (const name of Object.keys(rows[0]?.row ?? {})) names.add(name);
  const all = [...names].filter((name) => !hidden.has(name));
  return [...FIRST.filter((name) => all.includes(name)), ...all.filter((name) => !FIRST.includes(name))];
}

/** Return the columns of a type's table; beside the router and the first attributes that say something, the others are hidden. */
export function columnsOf(
  type: SchemaType | undefined,
  rows: readonly EntityRow[],
  isOverAll: boolean,
): Column<EntityRow>[] {
  const attributes = attributesOf(type, rows);
  const says = (name: string): boolean => rows.some(({ row }) => row[name] !== null && row[name] !== undefined);
  const shown = new Set(attributes.filter((name) => rows.length === 0 || says(name)).slice(0, SHOWN));
  return [
    { key: "router", title: "router", value: ({ router }) => router, isHidden: !isOverAll },
    ...attributes.map((name) => ({
      key: name === "router" ? "router of the entity" : name,
      title: name,
      value: ({ row }: EntityRow) => row[name],
      isHidden: !shown.has(name),
      help: type?.attributes[name]?.description,
    })),
  ];
}
