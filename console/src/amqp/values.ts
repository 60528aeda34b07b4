/** Conversion between AMQP values and the console's Value; model/types.ts lists what each type becomes. */

import "./node/globals";

import rhea from "rhea";

import type { Value } from "../model/types";

/** Nesting depth of a value at most: deeper than any router's answer, and too shallow to overflow the stack. */
const MAX_DEPTH = 32;

interface Codec {
  read: (buffer: Buffer, offset: number) => unknown;
}

/** A decoded value for which rhea keeps the AMQP type. */
interface TypedValue {
  readonly descriptor?: { readonly value: unknown };
  readonly value: unknown;
  readonly type: unknown;
}

const ULONG = 0x80;
const LONG = 0x81;
const TIMESTAMP = 0x83;

const byCode = (rhea.types as unknown as { by_code: Record<number, Codec> }).by_code;

function codecOf(code: number): Codec {
  const codec = byCode[code];
  if (codec === undefined) throw new Error(`rhea has no codec for the type ${code}`);
  return codec;
}

const safeNumber = (wide: bigint): number | bigint =>
  wide >= BigInt(Number.MIN_SAFE_INTEGER) && wide <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(wide) : wide;

// rhea returns eight bytes for a number that a double cannot hold, which look like a binary; a bigint is unambiguous.
codecOf(ULONG).read = (buffer, offset) =>
  safeNumber((BigInt(buffer.readUInt32BE(offset)) << 32n) | BigInt(buffer.readUInt32BE(offset + 4)));
codecOf(LONG).read = (buffer, offset) =>
  safeNumber((BigInt(buffer.readInt32BE(offset)) << 32n) | BigInt(buffer.readUInt32BE(offset + 4)));
// A Date cannot hold every timestamp.
codecOf(TIMESTAMP).read = (buffer, offset) =>
  Number((BigInt(buffer.readInt32BE(offset)) << 32n) | BigInt(buffer.readUInt32BE(offset + 4)));

function isTyped(value: object): value is TypedValue {
  return Object.getPrototypeOf(value) !== Object.prototype && "type" in value && "value" in value;
}

/** Return a value that rhea decoded as a Value; a described value becomes {descriptor, value}. */
export function toValue(decoded: unknown, depth = 0): Value {
  if (depth > MAX_DEPTH) return "(nested too deep)";
  switch (typeof decoded) {
    case "boolean":
    case "number":
    case "bigint":
    case "string":
      return decoded;
    case "object":
      return decoded === null ? null : objectToValue(decoded, depth + 1);
    default:
      return null;
  }
}

function objectToValue(decoded: object, depth: number): Value {
  if (decoded instanceof Uint8Array) return new Uint8Array(decoded);
  if (decoded instanceof Date) return decoded.getTime();
  if (Array.isArray(decoded)) return decoded.map((item: unknown) => toValue(item, depth));
  if (isTyped(decoded)) {
    const value = toValue(decoded.value, depth);
    return decoded.descriptor === undefined
      ? value
      : { descriptor: toValue(decoded.descriptor.value, depth), value };
  }
  // fromEntries makes "__proto__" an ordinary key.
  return Object.fromEntries(Object.entries(decoded).map(([key, item]) => [key, toValue(item, depth)]));
}

/** Return a Value in the form that rhea encodes: whole numbers as int or long, as the router's own tools send them. */
export function fromValue(value: Value | undefined): unknown {
  if (value === undefined || value === null) return null;
  if (typeof value === "number") {
    if (!Number.isInteger(value)) return rhea.types.wrap_double(value);
    return Math.abs(value) < 2 ** 31 ? rhea.types.wrap_int(value) : rhea.types.wrap_long(value);
  }
  if (typeof value === "bigint") return rhea.types.wrap_long(longBytes(value));
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (Array.isArray(value)) return value.map((item: Value) => fromValue(item));
  if (typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fromValue(item)]));
  }
  return value;
}

function longBytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(Number((value >> 32n) & 0xffffffffn), 0);
  bytes.writeUInt32BE(Number(value & 0xffffffffn), 4);
  return bytes;
}
