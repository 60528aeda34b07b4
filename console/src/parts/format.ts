/** Values as text for cells and details, as CSV and as JSON. */

import { visible } from "../model/text";
import type { Value } from "../model/types";

const counts = new Intl.NumberFormat();

/** Return a value as one line of text for the user; invisible characters are written out. */
export function displayText(value: Value | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return visible(value);
  if (typeof value === "number" || typeof value === "bigint") return counts.format(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  return visible(jsonOf(value));
}

/** Return a value as JSON: a bigint as its digits, a binary as {"binary": hex}. */
export function jsonOf(value: Value | readonly unknown[], indent?: number): string {
  return JSON.stringify(
    value,
    (_key, item: unknown) => {
      if (typeof item === "bigint") return item.toString();
      if (item instanceof Uint8Array) return { binary: hexOf(item) };
      return item;
    },
    indent,
  );
}

const hexOf = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** A spreadsheet takes a cell that begins with one of these characters for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** Return one cell of CSV. Text that a spreadsheet would take for a formula gets an apostrophe in front. */
export function csvCell(value: Value | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : jsonOf(value);
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/** Return a table as CSV with a header line. */
export function csvOf(columns: readonly string[], rows: readonly (readonly (Value | undefined)[])[]): string {
  const lines = [columns.map(csvCell), ...rows.map((row) => row.map(csvCell))];
  return lines.map((line) => `${line.join(",")}\r\n`).join("");
}

/** Compare two values for sorting: numbers by size, texts by the viewer's language, empty values last. */
export function compare(one: Value | undefined, other: Value | undefined): number {
  const isEmpty = (value: Value | undefined): boolean => value === null || value === undefined || value === "";
  if (isEmpty(one) || isEmpty(other)) return Number(isEmpty(one)) - Number(isEmpty(other));
  const isNumber = (value: Value | undefined): value is number | bigint =>
    typeof value === "number" || typeof value === "bigint";
  if (isNumber(one) && isNumber(other)) return one < other ? -1 : one > other ? 1 : 0;
  return collator.compare(displayText(one), displayText(other));
}

const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
