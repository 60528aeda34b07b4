/** The fields of a form, from the schema, and the values that their texts stand for. */

import { jsonOf } from "../../parts/format";
import type { Row, SchemaAttribute, SchemaType, Value } from "../../model/types";

/** One field of a form, for one attribute. */
export interface Field {
  readonly name: string;
  readonly kind: "text" | "secret" | "number" | "boolean" | "enum" | "json";
  readonly choices: readonly string[];
  readonly isRequired: boolean;
  /** The default that the router uses for an empty field; "" if it has none. */
  readonly byDefault: string;
  readonly description: string;
}

/** Attributes that the router sets itself, for routers whose schema does not say which attributes a request may set. */
const ROUTER_MADE = new Set(["identity", "type", "operStatus", "lastError", "connectionStatus", "connectionMsg", "lastErrorAt"]);

/** Return the fields for a CREATE or UPDATE of that type: the attributes that the request may set, without deprecated ones. */
export function fieldsOf(type: SchemaType, operation: "create" | "update"): Field[] {
  const reportsWritable = Object.values(type.attributes).some((attribute) => attribute.create || attribute.update);
  const isWritable = (name: string, attribute: SchemaAttribute): boolean =>
    reportsWritable ? attribute[operation] : !attribute.graph && !ROUTER_MADE.has(name);
  const fields = Object.entries(type.attributes)
    .filter(([name, attribute]) => !attribute.deprecated && isWritable(name, attribute))
    .map(([name, attribute]) => fieldOf(name, attribute));
  const rank = (field: Field): number => (field.name === "name" ? 0 : field.isRequired ? 1 : 2);
  return fields.sort((one, other) => rank(one) - rank(other));
}

function fieldOf(name: string, attribute: SchemaAttribute): Field {
  const isEnum = typeof attribute.type !== "string";
  const fallback = attribute.default ?? null;
  return {
    name,
    kind: isEnum ? "enum" : kindOf(name, attribute.type),
    choices: isEnum ? (attribute.type) : [],
    isRequired: attribute.required && fallback === null,
    byDefault: textOfField(fallback),
    description: attribute.description,
  };
}

function kindOf(name: string, type: string): Field["kind"] {
  if (type === "boolean" || type === "map" || type === "list") return type === "boolean" ? "boolean" : "json";
  if (type === "integer") return "number";
  return /password|secret/i.test(name) && !/file/i.test(name) ? "secret" : "text";
}

/** Return the text that a field shows for a value. */
export function textOfField(value: Value | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "object" ? jsonOf(value, 2) : String(value);
}

/** Return the value that the text of a field stands for, or an Error with the reason if it stands for none. */
export function valueOfField(field: Field, text: string): Value | Error {
  if (text === "") return null;
  switch (field.kind) {
    case "boolean":
      return text === "yes";
    case "number":
      return /^-?\d+$/.test(text.trim()) ? integer(text.trim()) : new Error("This must be a whole number.");
    case "json":
      try {
        return JSON.parse(text) as Value;
      } catch {
        return new Error("This must be JSON, such as {\"a\": 1} or [\"x\"].");
      }
    default:
      return text;
  }
}

function integer(text: string): number | bigint {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : BigInt(text);
}

/** Return the attributes that the user changed from `present`, and the errors of fields by name. */
export function bodyOf(
  fields: readonly Field[],
  texts: Readonly<Record<string, string>>,
  present: Row | undefined,
): { body: Record<string, Value>; errors: Record<string, string> } {
  const body: Record<string, Value> = {};
  const errors: Record<string, string> = {};
  for (const field of fields) {
    const text = texts[field.name] ?? "";
    if (text === textOfField(present?.[field.name])) {
      if (field.isRequired && text === "") errors[field.name] = "This is required.";
      continue;
    }
    const value = valueOfField(field, text);
    if (value instanceof Error) errors[field.name] = value.message;
    else body[field.name] = value;
  }
  return { body, errors };
}

/** Return the name of the first field that the description of a refusal mentions; undefined if it mentions none. */
export function fieldIn(description: string, fields: readonly Field[]): string | undefined {
  const named = (name: string): number => {
    const escaped = name.replace(/[^\w]/g, "\\$&");
    const at = [new RegExp(`['"]${escaped}['"]`), new RegExp(`\\b${escaped}\\s*[:=]`), new RegExp(`\\.${escaped}\\b`)]
      .map((pattern) => description.search(pattern))
      .filter((found) => found >= 0);
    return at.length === 0 ? Infinity : Math.min(...at);
  };
  const places = fields.map((field) => ({ name: field.name, at: named(field.name) })).filter(({ at }) => at < Infinity);
  return places.sort((one, other) => one.at - other.at)[0]?.name;
}
