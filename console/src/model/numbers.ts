/** Single values of management as numbers and texts, and numbers as texts. */

import type { Value } from "./types";

/** Return a value as a number; null if it is no finite number. A bigint loses the digits that a double cannot hold. */
export function numberOf(value: Value | undefined): number | null {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  return typeof value === "bigint" ? Number(value) : null;
}

/** Return a value as text: a string unchanged, "" for null, maps and lists as JSON. */
export function textOf(value: Value | undefined): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  return typeof value === "object" ? JSON.stringify(value, (_, each: unknown) => plain(each)) : String(value);
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  return value instanceof Uint8Array ? Array.from(value) : value;
}

/** Return the sum of the known numbers; null if all of them are unknown. */
export function sum(values: Iterable<number | null>): number | null {
  let total: number | null = null;
  for (const value of values) if (value !== null) total = (total ?? 0) + value;
  return total;
}

/** Return a number with its noun in singular or plural: "1 link", "2 links", "3 addresses", "4 deliveries". */
export function count(number: number, noun: string): string {
  const plural = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : noun.endsWith("s") ? `${noun}es` : `${noun}s`;
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

/** Return a rate per second as text: "0", "0.3", "12", "1,234", "2.3 M"; "–" if it is unknown. */
export function shownRate(rate: number | null): string {
  if (rate === null) return "–";
  if (rate >= 1e6) return `${(rate / 1e6).toFixed(1)} M`;
  if (rate > 0 && rate < 10) return rate.toFixed(1);
  return Math.round(rate).toLocaleString("en");
}

/** Return a time in seconds as text: "45 s", "12 min", "3 h 20 min" or "5 d 2 h". */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return `${whole} s`;
  if (whole < 7200) return `${Math.floor(whole / 60)} min`;
  if (whole < 172_800) return pair(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");
  return pair(Math.floor(whole / 86_400), "d", Math.floor((whole % 86_400) / 3600), "h");
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}
