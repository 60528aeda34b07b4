/** The recorded answers of Qpid Dispatch, 1.19.0, to its own tools, for the console. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import rhea, { type Message } from "rhea";

import type { Answer } from "./large";
import { ROOT } from "./router";

interface Conversation {
  readonly steps: readonly { readonly octets: string }[];
  readonly answers: readonly { readonly octets?: string; readonly schema?: unknown }[];
}

interface Table {
  readonly attributeNames: readonly string[];
  readonly results: readonly (readonly unknown[])[];
}

const RECORDED = JSON.parse(readFileSync(join(ROOT, "tests/interop/recorded/data/tools.json"), "utf8")) as readonly Conversation[];
/** Matches an operation, or the type of a QUERY behind the type code and size of its text. */
const REQUESTS = /(GET-[A-Z-]+|QUERY)|entityType[^]{1,5}?(org\.apache\.qpid\.dispatch\.[A-Za-z.]+)/g;

const bodyOf = (octets: string): unknown =>
  (rhea.message.decode as unknown as (buffer: Buffer) => Message)(Buffer.from(octets, "hex")).body;

/** The recorded answers by operation, and the tables by type. */
function recorded(): { bodies: Map<string, unknown>; tables: Map<string, Table> } {
  const bodies = new Map<string, unknown>();
  const tables = new Map<string, Table>();
  for (const { steps, answers } of RECORDED) {
    const sent = steps.map(({ octets }) => Buffer.from(octets, "hex").toString("latin1")).join("");
    const found = [...sent.matchAll(REQUESTS)];
    const types = found.flatMap(([, , type]) => type ?? []);
    for (const { octets, schema } of answers) {
      const body = octets === undefined ? schema : bodyOf(octets);
      if (isTable(body)) {
        const type = types.shift() ?? "";
        if (body.attributeNames.length > (tables.get(type)?.attributeNames.length ?? 0)) tables.set(type, body);
      } else if (schema !== undefined) bodies.set("GET-SCHEMA", body);
      else if (found[0]?.[1]?.startsWith("GET-") === true && !bodies.has(found[0][1])) bodies.set(found[0][1], body);
    }
  }
  return { bodies, tables };
}

const isTable = (body: unknown): body is Table => typeof body === "object" && body !== null && "attributeNames" in body;

/** Return a node with the recorded answers; tables that no tool requested are empty, and types that the router lacks are refused. */
export function qpidDispatch(): Answer {
  const { bodies, tables } = recorded();
  const { entityTypes } = bodies.get("GET-SCHEMA") as { entityTypes: Readonly<Record<string, { fullyQualifiedType: string }>> };
  const known = new Set(Object.values(entityTypes).map(({ fullyQualifiedType: name }) => name));
  return (_address, message) => {
    const properties = (message.application_properties ?? {}) as Readonly<Record<string, unknown>>;
    const operation = String(properties["operation"]);
    if (operation !== "QUERY") return bodies.has(operation) ? { status: 200, body: bodies.get(operation) } : { status: 501, body: {} };
    const type = String(properties["entityType"]);
    if (!known.has(type)) return { status: 400, body: {} };
    const { attributeNames: columns, results } = tables.get(type) ?? { attributeNames: [], results: [] };
    const requested = (message.body as Table).attributeNames;
    const names = requested.length === 0 ? columns : requested;
    const places = names.map((name) => columns.indexOf(name));
    const offset = Number(properties["offset"] ?? 0);
    const rows = results.slice(offset, offset + Number(properties["count"] ?? results.length));
    return { status: 200, body: { attributeNames: names, results: rows.map((row) => places.map((place) => row[place] ?? null)) } };
  };
}
