import { expect, it } from "vitest";

import { changeOf, openChanges, type RouterChange } from "./changes";

const answer = { id: "3b9f21a0", by: "ann@desk", user: "ann", host: "::1", at: 1_700_000_000n, routers: ["A", "B", "C"], state: "made" };

function changesAt(states: Readonly<Record<string, object>>): Map<string, RouterChange> {
  const found = Object.entries(states).map(([id, more]) => [id, changeOf({ ...answer, ...more })] as const);
  return new Map(found.filter((each): each is readonly [string, RouterChange] => each[1] !== null));
}

it("tells of a change who ordered it, when, how far it is at which routers, and what ends it", () => {
  expect(openChanges(changesAt({ B: {}, A: {}, D: { state: "edited" } }))).toEqual([{
    id: "3b9f21a0",
    by: "ann@desk",
    at: 1_700_000_000_000,
    places: "made at A, B; edited at D; not open at C",
    resume: "trouter network apply FOLDER --resume 3b9f21a0",
    abandon: "trouter network apply --abandon 3b9f21a0",
  }]);
});

it("names each of several changes, and the command for one of the policy", () => {
  const changes = openChanges(changesAt({ A: {}, B: { id: "policy-1", by: "" } }));
  expect(changes.map(({ id, by, places }) => [id, by, places])).toEqual([
    ["policy-1", "ann", "made at B; not open at A, C"],
    ["3b9f21a0", "ann@desk", "made at A; not open at B, C"],
  ]);
  expect(changes[0]?.resume).toBe("trouter network policy push FOLDER --resume policy-1");
});

it("sees no change in the answer of a router without one, or of one that names what a shell would run", () => {
  for (const none of [{}, [], null, { ...answer, id: "x; rm -rf ~" }]) expect(changeOf(none)).toBeNull();
});

it("bounds what a router says of a change", () => {
  const routers = Array.from({ length: 10_000 }, (_, number) => `router-${number}-${"x".repeat(10_000)}`);
  const [change] = openChanges(changesAt({ A: { routers, state: "y".repeat(10_000) } }));
  expect(change?.places).toMatch(/ and 9980 more$/);
  expect(change?.places.length).toBeLessThan(2_000);
});
