import { describe, expect, it } from "vitest";

import { compare, csvCell, csvOf, jsonOf, displayText } from "./format";

describe("csv", () => {
  it("quotes text and doubles quotes", () => {
    expect(csvOf(["name", "count"], [['say "hi",\nnow', 3]])).toBe('"name","count"\r\n"say ""hi"",\nnow",3\r\n');
  });

  it("prefixes text that a spreadsheet would take for a formula", () => {
    expect(csvCell("=HYPERLINK(1)")).toBe("\"'=HYPERLINK(1)\"");
    expect(csvCell("@x")).toBe("\"'@x\"");
    expect(csvCell(-5)).toBe("-5");
  });
});

describe("text", () => {
  it("formats maps, lists, binaries and large numbers", () => {
    expect(displayText({ a: [1n << 63n, null], b: new Uint8Array([1, 255]) })).toBe(
      '{"a":["9223372036854775808",null],"b":{"binary":"01ff"}}',
    );
    expect(jsonOf([1])).toBe("[1]");
    expect(displayText(null)).toBe("");
  });

  it("writes out invisible characters inside of maps", () => {
    expect(displayText(["\u202e"])).toBe('["<U+202E>"]');
  });
});

describe("compare", () => {
  it("sorts numbers by size, text with its numbers, and empty ones last", () => {
    expect([10n, 9, null, 11].sort(compare)).toEqual([9, 10n, 11, null]);
    expect(["c10", "c9", "", "a"].sort(compare)).toEqual(["a", "c9", "c10", ""]);
  });
});
