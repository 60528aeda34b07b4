import { expect, it } from "vitest";

import { downParts, refusedClients } from "./down";
import { FIRST } from "./fixtures/network";
import type { Row, Snapshot } from "./types";

const snapshot = (tables: Readonly<Record<string, readonly Row[]>>): Snapshot => ({
  at: 1,
  routers: [{ id: "A", address: "", at: 1, tables }],
});

it("names what is down, connectors first, with reason, time and attempts", () => {
  const found = downParts(
    snapshot({
      "router.config.linkRoute": [{ identity: "9", prefix: "queues", direction: "in", operStatus: "inactive", downSince: 5 }, { operStatus: "active" }],
      "router.config.autoLink": [{ identity: "8", name: "in", operStatus: "failed", lastError: "no such queue", attempts: 7n }, { operStatus: "active" }],
      connector: [
        { identity: "c", name: "broker", connectionStatus: "CONNECTING", connectionMsg: "refused", connectionAttempts: 3, downSince: 4 },
        { name: "up", connectionStatus: "SUCCESS" },
        { name: "stops", connectionStatus: "CLOSING" },
      ],
      router: [{ identity: "1", uplinkFault: "no connector has role: edge" }],
    }),
  );
  expect(found.map((part) => [part.kind, part.name, part.reason, part.since, part.attempts])).toEqual([
    ["Connector", "broker", "refused", 4, 3],
    ["Uplink", "A", "no connector has role: edge", null, null],
    ["Auto link", "in", "no such queue", null, 7],
    ["Link route", "queues (in)", "no broker of it is connected", 5, null],
  ]);
  expect(new Set(found.map((part) => part.key)).size).toBe(4);
});

it("reads what Qpid Dispatch reports, and nothing is down in a network that works", () => {
  const old = downParts(snapshot({ "router.config.autoLink": [{ addr: "q", dir: "out", operStatus: "failed", lastError: "x" }] }));
  expect(old.map((part) => [part.name, part.since, part.attempts])).toEqual([["q (out)", null, null]]);
  expect(downParts(FIRST)).toEqual([]);
});

it("counts whom a router refuses", () => {
  const handshakesRefused = { tls: 1n, sasl: 20 };
  const tables = { router: [{ loginsDenied: 4n, connectionsTurnedAway: 2, handshakesRefused }], authLockout: [{ locked: true }, { locked: false }] };
  expect(refusedClients(snapshot(tables))).toEqual([{ router: "A", denied: 4, locked: 1, turnedAway: 2, handshakes: "20 sasl, 1 tls" }]);
  expect(refusedClients(snapshot({ router: [{ id: "old" }] }))).toEqual([{ router: "A", denied: null, locked: null, turnedAway: null, handshakes: "" }]);
});
