import { expect, it } from "vitest";
import rhea from "rhea";

import type { Value } from "../model/types";
import { fromValue, toValue } from "./values";

/** Encode as rhea sends, decode as rhea receives. */
function roundTrip(body: unknown): Value {
  const sent = rhea.message.encode({ body });
  return toValue(rhea.message.decode(sent).body);
}

it("decodes integers that a double cannot hold as bigint", () => {
  const bytes = Buffer.from("ffffffffffffffff", "hex");
  expect(roundTrip(rhea.types.wrap_ulong(bytes as never))).toBe(2n ** 64n - 1n);
  expect(roundTrip(rhea.types.wrap_ulong(9007199254740991))).toBe(9007199254740991);
  expect(roundTrip(fromValue(-(2n ** 62n)))).toBe(-(2n ** 62n));
  expect(roundTrip(rhea.types.wrap_long(-5))).toBe(-5);
});

it("decodes symbols as strings, timestamps as milliseconds, binaries as Uint8Array", () => {
  expect(roundTrip(rhea.types.wrap_symbol("colour"))).toBe("colour");
  expect(roundTrip(rhea.types.wrap_timestamp(1_700_000_000_123))).toBe(1_700_000_000_123);
  expect(roundTrip(Buffer.from([0, 1, 2, 3, 4, 5, 6, 7]))).toEqual(new Uint8Array([0, 1, 2, 3, 4, 5, 6, 7]));
});

it("decodes nested lists and maps, and __proto__ as an ordinary key", () => {
  const value = roundTrip(fromValue({ names: ["a", "b"], rows: [[1, null], [true, { deep: -7.5 }]] }));
  expect(value).toEqual({ names: ["a", "b"], rows: [[1, null], [true, { deep: -7.5 }]] });
  const hostile = toValue(JSON.parse('{"__proto__": {"polluted": true}}'));
  expect(Object.keys(hostile as object)).toEqual(["__proto__"]);
  expect((hostile as { polluted?: boolean }).polluted).toBeUndefined();
});

it("decodes a described value as a map of descriptor and value", () => {
  const described = rhea.types.wrap_described(["x"], "example:thing:list");
  expect(roundTrip([described])).toEqual([{ descriptor: "example:thing:list", value: ["x"] }]);
});

it("stops decoding at the maximum depth", () => {
  let deep: unknown = "bottom";
  for (let level = 0; level < 5_000; level += 1) deep = [deep];
  expect(JSON.stringify(toValue(deep))).toContain("nested too deep");
});
