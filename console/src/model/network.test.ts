import { expect, it } from "vitest";

import { FIRST } from "./fixtures/network";
import { policiesOf, routerStates } from "./network";
import type { RouterTables, Row } from "./types";

const router = (id: string, tables: Readonly<Record<string, readonly Row[]>>, more: Partial<RouterTables> = {}): RouterTables => ({
  id, address: "", at: 1, tables, ...more,
});

it("tells of each router what status tells, and nothing of now from one that does not answer", () => {
  const tables: Readonly<Record<string, readonly Row[]>> = {
    router: [{ mode: "interior", version: "0.2.0", uptimeSeconds: 7, workers: "2", connectionCount: 3n, linksBlocked: 1, deliveriesStuck: 0, drainState: "draining" }],
    finding: [{ severity: "unsafe" }, { severity: "unsafe" }, { severity: "warning" }],
    sslProfile: [{ certificateEnds: 1_900_000_000 }, { certificateEnds: 1_800_000_000 }, {}],
    policy: [{ policyDigest: "ab12" }],
  };
  const states = routerStates({ at: 1, routers: [router("B", tables, { error: "no answer within 5 s", isSilent: true }), router("A", tables)] });
  expect(states[0]).toEqual({
    id: "A", mode: "interior", state: "draining", fault: "", version: "0.2.0", uptime: 7, workers: "2", connections: 3, blocked: 1,
    stuck: 0, findings: { problem: 0, unsafe: 2, warning: 1, accepted: 0 }, certificateEnds: 1_800_000_000_000, policy: "ab12",
  });
  expect(states[1]).toMatchObject({ id: "B", state: "no answer", fault: "no answer within 5 s", connections: null, findings: null, policy: "" });
});

it("reads a router of another kind, one that refuses a table, and one that has not answered yet", () => {
  const states = routerStates({
    at: 1,
    routers: [
      router("D", { router: [{ id: "D", mode: "interior", version: "1.19.0" }] }),
      router("R", { router: [{ drainState: "serving" }] }, { error: "you may not see finding" }),
      router("N", {}),
    ],
  });
  expect(states.map(({ id, state, findings }) => [id, state, findings])).toEqual([["D", "up", null], ["N", "", null], ["R", "partly", null]]);
  expect(routerStates(FIRST).map(({ state }) => state)).toEqual(["up", "up", "up", "up", "up"]);
});

it("groups the routers by their policy", () => {
  const states = ["x", "y", "y", ""].map((policyDigest, place) => router(`${place}`, { router: [{}], policy: [{ policyDigest }] }));
  expect(policiesOf(routerStates({ at: 1, routers: states }))).toEqual([["y", ["1", "2"]], ["x", ["0"]]]);
});
