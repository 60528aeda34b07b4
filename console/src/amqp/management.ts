/** Requests to management nodes, and what their answers mean. */

import { visible } from "../model/text";
import type { Entity, Row, Schema, SchemaAttribute, SchemaType, Value } from "../model/types";
import type { AmqpConnection } from "./connection";
import { ManagementError } from "./errors";

export const PREFIX = "org.apache.qpid.dispatch.";
/** Rows asked for at a time. */
export const PAGE_ROWS = 500;
/** No table is followed beyond this; a router that pages without end is one that goes wrong. */
const MAX_ROWS = 200_000;

/** One request: `type` is a short or full name, `properties` are those that an operation of its own takes. */
export interface ManagementRequest {
  readonly operation: string;
  readonly type?: string;
  readonly name?: string;
  readonly identity?: string;
  readonly properties?: Row;
  readonly body?: Value;
}

/** Return the full name of a type, by which routers of the older kind find their core's tables. */
export function fullName(entity: Entity): string {
  return entity.startsWith("org.") ? entity : PREFIX + entity;
}

/** Return the body of the answer to `request` from the node of the router at `router`; ManagementError. */
export async function ask(amqp: AmqpConnection, router: string, request: ManagementRequest): Promise<Value> {
  const ofNode = request.name === undefined && request.identity === undefined && request.operation !== "CREATE";
  const properties = {
    ...request.properties,
    operation: request.operation,
    type: request.type === undefined ? (ofNode ? "org.amqp.management" : undefined) : fullName(request.type),
    name: request.name ?? (ofNode ? "self" : undefined),
    identity: request.identity,
  };
  const answer = await amqp.request(`${router}$management`, properties, request.body ?? {});
  if (answer.status >= 200 && answer.status < 300) return answer.body;
  throw new ManagementError(answer.status, answer.description);
}

/** Return all rows of a table, page by page; ManagementError. */
export async function query(
  amqp: AmqpConnection,
  router: string,
  entity: Entity,
  attributes: readonly string[] | "all",
): Promise<Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const page = await ask(amqp, router, {
      operation: "QUERY",
      properties: { entityType: fullName(entity), offset: rows.length, count: PAGE_ROWS },
      body: { attributeNames: attributes === "all" ? [] : attributes },
    });
    const found = rowsOf(page);
    rows.push(...found);
    // More than was asked for comes from a router that does not page and has sent everything.
    if (found.length !== PAGE_ROWS || rows.length >= MAX_ROWS) return rows;
  }
}

/** Return the rows of the answer to a QUERY; ManagementError if it is none. */
export function rowsOf(body: Value): Row[] {
  if (isMap(body)) {
    const { attributeNames: names, results } = body;
    if (Array.isArray(names) && Array.isArray(results)) {
      return (results as readonly Value[]).filter(Array.isArray).map((cells: readonly Value[]) =>
        Object.fromEntries((names as readonly Value[]).map((name, index) => [text(name), cells[index] ?? null])),
      );
    }
  }
  throw new ManagementError(0, "the answer is no table");
}

/** Return the schema in the answer to GET-SCHEMA. */
export function schemaOf(body: Value): Schema {
  const map = isMap(body) ? body : {};
  const types = isMap(map["entityTypes"] ?? null) ? (map["entityTypes"] as Row) : {};
  return {
    prefix: text(map["prefix"]),
    types: Object.fromEntries(
      Object.entries(types)
        .map(([key, told]) => typeOf(key, isMap(told) ? told : {}))
        .map((type) => [type.name, type]),
    ),
  };
}

function typeOf(key: string, told: Row): SchemaType {
  const full = text(told["fullyQualifiedType"]) || PREFIX + key;
  const attributes = isMap(told["attributes"] ?? null) ? (told["attributes"] as Row) : {};
  return {
    // GET-SCHEMA files router.config.address under "address"; requests want what the full name says.
    name: full.startsWith(`${PREFIX}org.`) ? key : full.startsWith(PREFIX) ? full.slice(PREFIX.length) : key,
    fullName: full,
    attributes: Object.fromEntries(
      Object.entries(attributes).map(([name, attribute]) => [name, attributeOf(isMap(attribute) ? attribute : {})]),
    ),
    operations: texts(told["operations"]),
    description: visible(text(told["description"])),
    deprecated: told["deprecated"] === true,
    singleton: told["singleton"] === true,
    references: texts(told["references"]),
  };
}

function attributeOf(told: Row): SchemaAttribute {
  const type = told["type"];
  return {
    type: Array.isArray(type) ? texts(type) : text(type) || "string",
    default: told["default"],
    required: told["required"] === true,
    unique: told["unique"] === true,
    deprecated: told["deprecated"] === true,
    graph: told["graph"] === true,
    create: told["create"] === true,
    update: told["update"] === true,
    description: visible(text(told["description"])),
  };
}

/** Whether a value is a map. */
export function isMap(value: Value): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

const text = (value: Value | undefined): string => (typeof value === "string" ? value : "");
const texts = (value: Value | undefined): string[] =>
  Array.isArray(value) ? (value as readonly Value[]).filter((item) => typeof item === "string") : [];
