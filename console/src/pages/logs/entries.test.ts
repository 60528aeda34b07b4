import { expect, it } from "vitest";

import { entriesOf, isAtLeast } from "./entries";

it("parses log entries and leaves out other elements", () => {
  const answer = [["SERVER", "info", "Listening", "server.py", 12, 1_700_000_000], "rubbish", ["AGENT"]];
  expect(entriesOf("A", answer)).toEqual([
    { router: "A", place: 0, module: "SERVER", level: "info", text: "Listening", file: "server.py:12", at: 1_700_000_000_000 },
    { router: "A", place: 1, module: "AGENT", level: "", text: "", file: "", at: 0 },
  ]);
  expect(entriesOf("A", { not: "a list" })).toEqual([]);
});

it("compares levels by seriousness, and accepts unknown ones", () => {
  expect(isAtLeast("warning", "notice")).toBe(true);
  expect(isAtLeast("info", "notice")).toBe(false);
  expect(isAtLeast("odd", "critical")).toBe(true);
});
