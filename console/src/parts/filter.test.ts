import { expect, it } from "vitest";

import { matches } from "./filter";

const cells = new Map([
  ["role", "normal"],
  ["host", "10.0.0.7:5672"],
]);

it("matches rows that have each word in some cell", () => {
  expect(matches("NORM 10.0", cells)).toBe(true);
  expect(matches("norm 10.1", cells)).toBe(false);
  expect(matches("  ", cells)).toBe(true);
});

it("matches \"title:word\" in that column, and as plain text if no column has the title", () => {
  expect(matches("role:norm", cells)).toBe(true);
  expect(matches("role:10", cells)).toBe(false);
  expect(matches("7:5672", cells)).toBe(true);
});

it("excludes rows that contain a word with a minus", () => {
  expect(matches("-edge", cells)).toBe(true);
  expect(matches("-role:normal", cells)).toBe(false);
});
