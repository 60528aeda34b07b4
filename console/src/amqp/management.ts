/** Requests to management nodes, and their answers as rows and schema. */

import { isMap } from "../model/rows";
import { visible } from "../model/text";
import type { Entity, Row, Schema, SchemaAttribute, SchemaType, Value } from "../model/types";
import type { AmqpConnection, Answer } from "./connection";
import { ManagementError } from "./errors";

/** The prefix of full type names. */
export const PREFIX = "org.apache.qpid.dispatch.";
/** Rows requested in one QUERY. */
export const PAGE_ROWS = 500;
/** Rows read of one table at most, in case a faulty router pages without end. */
const MAX_ROWS = 200_000;

/** One request to a management node. Without `name` and `identity` it is for the node itself, except a CREATE. */
export interface ManagementRequest {
  /** "READ", "CREATE", "GET-LOG", ... */
  readonly operation: string;
  /** The short or full name of the entity type. */
  readonly type?: string;
  readonly name?: string;
  readonly identity?: string;
  /** Further application properties, which the operation defines. */
  readonly properties?: Row;
  readonly body?: Value;
}

/** Return the full name of a type; Qpid Dispatch finds the tables of its core by full names only. */
export function fullName(entity: Entity): string {
  return entity.startsWith("org.") ? entity : PREFIX + entity;
}

/** Return the body of the answer of the router at `router`; throw ManagementError if it refuses or does not answer. */
export async function requestBody(amqp: AmqpConnection, router: string, request: ManagementRequest): Promise<Value> {
  return (await requestAnswer(amqp, router, request)).body;
}

async function requestAnswer(amqp: AmqpConnection, router: string, request: ManagementRequest): Promise<Answer> {
  const isForNode = request.name === undefined && request.identity === undefined && request.operation !== "CREATE";
  const properties = {
    ...request.properties,
    operation: request.operation,
    type: request.type === undefined ? (isForNode ? "org.amqp.management" : undefined) : fullName(request.type),
    name: request.name ?? (isForNode ? "self" : undefined),
    identity: request.identity,
  };
  const answer = await amqp.request(`${router}$management`, properties, request.body ?? {});
  if (answer.status >= 200 && answer.status < 300) return answer;
  throw new ManagementError(answer.status, answer.description);
}

/** A table of a router, and what its answers say of the router's workers. */
export interface Table {
  readonly rows: Row[];
  /** The workers that are missing in the rows, and why; "" if none is. */
  readonly missing: string;
  /** See Answer. */
  readonly workers: number;
}

/** Return all rows of a table, requested in pages; throw ManagementError if the router refuses or does not answer. */
export async function query(amqp: AmqpConnection, router: string, entity: Entity, attributes: readonly string[] | "all"): Promise<Row[]> {
  return (await queryTable(amqp, router, entity, attributes)).rows;
}

/** Return a table with all its rows, as `query` does. */
export async function queryTable(
  amqp: AmqpConnection,
  router: string,
  entity: Entity,
  attributes: readonly string[] | "all",
): Promise<Table> {
  const rows: Row[] = [];
  let missing = "";
  for (;;) {
    const page = await requestAnswer(amqp, router, {
      operation: "QUERY",
      properties: { entityType: fullName(entity), offset: rows.length, count: PAGE_ROWS },
      body: { attributeNames: attributes === "all" ? [] : attributes },
    });
    const found = queryRows(page.body);
    if (page.missing) missing = visible(page.missing);
    rows.push(...found);
    // More rows than requested come from a router that does not page: it has sent all of them.
    if (found.length !== PAGE_ROWS || rows.length >= MAX_ROWS) return { rows, missing, workers: page.workers };
  }
}

/** Return the rows in the answer to a QUERY; throw ManagementError if the body is no table. */
export function queryRows(body: Value): Row[] {
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
export function parseSchema(body: Value): Schema {
  const map = isMap(body) ? body : {};
  const types = isMap(map["entityTypes"] ?? null) ? (map["entityTypes"] as Row) : {};
  return {
    prefix: text(map["prefix"]),
    types: Object.fromEntries(
      Object.entries(types)
        .map(([key, reported]) => typeOf(key, isMap(reported) ? reported : {}))
        .map((type) => [type.name, type]),
    ),
  };
}

function typeOf(key: string, reported: Row): SchemaType {
  const full = text(reported["fullyQualifiedType"]) || PREFIX + key;
  const attributes = isMap(reported["attributes"] ?? null) ? (reported["attributes"] as Row) : {};
  return {
    // GET-SCHEMA lists router.config.address as "address"; requests take the name that the full name ends with.
    name: full.startsWith(`${PREFIX}org.`) ? key : full.startsWith(PREFIX) ? full.slice(PREFIX.length) : key,
    fullName: full,
    attributes: Object.fromEntries(
      Object.entries(attributes).map(([name, attribute]) => [name, attributeOf(isMap(attribute) ? attribute : {})]),
    ),
    operations: texts(reported["operations"]),
    description: visible(text(reported["description"])),
    deprecated: reported["deprecated"] === true,
    singleton: reported["singleton"] === true,
    references: texts(reported["references"]),
  };
}

function attributeOf(reported: Row): SchemaAttribute {
  const type = reported["type"];
  return {
    type: Array.isArray(type) ? texts(type) : text(type) || "string",
    default: reported["default"],
    required: reported["required"] === true,
    unique: reported["unique"] === true,
    deprecated: reported["deprecated"] === true,
    graph: reported["graph"] === true,
    create: reported["create"] === true,
    update: reported["update"] === true,
    description: visible(text(reported["description"])),
  };
}

const text = (value: Value | undefined): string => (typeof value === "string" ? value : "");
const texts = (value: Value | undefined): string[] =>
  Array.isArray(value) ? (value as readonly Value[]).filter((item) => typeof item === "string") : [];
