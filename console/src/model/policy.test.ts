import { expect, it } from "vitest";

import { connectedUsers, parseDecision, denialsOf, groupOf, vhostsOf } from "./policy";
import type { Snapshot } from "./types";

const snapshot: Snapshot = {
  at: 1,
  routers: [
    {
      id: "A",
      address: "",
      at: 1,
      tables: {
        policy: [{ enableVhostPolicy: true }],
        vhost: [{ hostname: "v", groups: { few: { users: "alice, bob", sources: ["a", "b"], maxSenders: 3 }, all: { users: "*" } } }],
        vhostStats: [{ hostname: "v", connectionsCurrent: 2, senderDenied: 1, perUserState: { bob: ["h:1", "h:2"] } }, { id: "w" }],
        denial: [{ identity: "denial/1", at: 5, count: 2n, operation: "login" }, { identity: "denial/2", at: 9 }],
      },
    },
    { id: "B", address: "_topo/0/B/", at: 1, tables: {} },
  ],
};

it("joins vhosts with their statistics, including vhosts that are not configured", () => {
  const [one, other] = vhostsOf(snapshot);
  expect(one).toMatchObject({ router: "A", hostname: "v", current: 2, linksDenied: 1, isEnforced: true });
  expect(one?.groups[0]).toEqual({ name: "few", users: "alice, bob", settings: [["sources", "a, b"], ["maxSenders", "3"]] });
  expect(other).toMatchObject({ hostname: "w", groups: [], current: null });
});

it("lists connected users with their group", () => {
  expect(connectedUsers(snapshot)).toEqual([
    { router: "A", vhost: "v", group: "few", user: "bob", connections: ["h:1", "h:2"] },
  ]);
  expect(groupOf("carol", vhostsOf(snapshot)[0]?.groups ?? [])).toBe("all");
  expect(groupOf("carol", [])).toBe("");
});

it("lists denials with the newest first", () => {
  expect(denialsOf(snapshot).map((row) => [row.key, row.count])).toEqual([["A denial/2", 1], ["A denial/1", 2]]);
});

it("parses a decision, and returns undefined for other answers", () => {
  const decision = parseDecision({ allowed: false, rule: "v:no-group", steps: [{ what: "open", found: "denied", why: "w" }, 7] });
  expect(decision).toEqual({ isAllowed: false, rule: "v:no-group", steps: [["open", "denied", "w"]], settings: [] });
  expect([parseDecision({}), parseDecision([]), parseDecision(null)]).toEqual([undefined, undefined, undefined]);
});
