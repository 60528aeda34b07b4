import { expect, it } from "vitest";

import { alarms } from "./alarms";
import { isPublic } from "./alarm-router";
import type { Row, Snapshot } from "./types";

const NOW = 1_800_000_000_000;
const titles = (tables: Readonly<Record<string, readonly Row[]>>, error?: string): string[] => {
  const snapshot: Snapshot = { at: NOW, routers: [{ id: "A", address: "", at: NOW, tables, ...(error === undefined ? {} : { error }) }] };
  return alarms(snapshot, NOW).map((alarm) => alarm.title);
};
const link = (more: Row): Row => ({ linkType: "endpoint", linkDir: "out", owningAddr: "M0orders", zeroCreditSeconds: 0, ...more });

it("reports workers that are missing", () => {
  const router = { id: "A", address: "", at: NOW, tables: {}, missing: "A.2: it did not answer within 3 s" };
  expect(alarms({ at: NOW, routers: [router] }, NOW)).toMatchObject([
    { severity: "danger", title: "Workers of router A are missing in what is shown", detail: "A.2: it did not answer within 3 s" },
  ]);
});

it("reports receivers and senders without credit by address", () => {
  expect(titles({ "router.link": [link({ zeroCreditSeconds: 10, undeliveredCount: 3 }), link({ zeroCreditSeconds: 9 })] })).toEqual([
    "1 receiver of orders gives no credit",
  ]);
  expect(titles({ "router.link": [link({ linkDir: "in", zeroCreditSeconds: 30n })] })).toEqual(["1 sender to orders gets no credit"]);
});

it("reports no links of routers, management and replies", () => {
  const blocked = { zeroCreditSeconds: 99, deliveriesStuck: 1 };
  const inner = ["M0$management", "Ltemp.x", "L_edge", "RA", ""].map((owningAddr) => link({ ...blocked, owningAddr }));
  expect(titles({ "router.link": [...inner, link({ ...blocked, linkType: "inter-router" })] })).toEqual([]);
});

it("lists five alarms of a kind and counts the others", () => {
  const many = Array.from({ length: 40 }, (_, number) => link({ owningAddr: `M0a${number}`, zeroCreditSeconds: 60 }));
  expect(titles({ "router.link": many })).toHaveLength(6);
  expect(titles({ "router.link": many }).at(-1)).toBe("35 more addresses with links without credit");
});

it("reports stuck deliveries, denied logins, losses, quotas and unserved configuration, the most serious first", () => {
  const found = titles({
    "router.link": [link({ deliveriesStuck: 2 })],
    denial: [
      { operation: "login", user: "old", host: "h", reason: "r", count: 9, at: NOW - 16 * 60_000 },
      { operation: "login", user: "mallory", host: "h", reason: "bad-credentials", count: 2, at: NOW - 1_000 },
      { operation: "attach", user: "u", count: 1, at: NOW },
    ],
    recordLog: [{ name: "audit", recordsLost: 1n }],
    router: [{ logLinesLost: 3 }],
    vhostStats: [{ hostname: "v", quotaAlarmsRaised: ["v:maxLinks"] }],
    finding: [{ severity: "problem", entity: "listener/l" }, { severity: "unsafe" }],
    authLockout: [{ identity: "i", user: "bob", host: "10.0.0.1", locked: true, lockedSeconds: 60 }],
    connector: [{ name: "up", connectionStatus: "CONNECTING", connectionMsg: "refused" }, { name: "ok", connectionStatus: "SUCCESS" }],
  });
  expect(found).toEqual([
    "1 part of the configuration is not served",
    "1 record of audit is lost",
    "3 log lines are lost",
    "2 deliveries of orders are stuck",
    "2 logins were denied",
    "User bob is locked out at 10.0.0.1",
    "Quotas of vhost v are met",
    "Connector up has no connection",
  ]);
});

it("reports certificates near their end", () => {
  const ends = (days: number): Row => ({ name: `p${days}`, certificateEnds: NOW / 1_000 + days * 86_400 });
  expect(titles({ sslProfile: [ends(31), ends(30), ends(-1), { name: "none" }] })).toEqual([
    "The certificate of p-1 has ended",
    "The certificate of p30 ends in 30 d",
  ]);
});

it("reports a listener without policy that other machines reach", () => {
  const listener: Row[] = [{ name: "open", host: "0.0.0.0", port: "5672", role: "normal" }, { name: "own", host: "127.0.0.1" }];
  expect(titles({ policy: [{ enableVhostPolicy: false }], listener })).toEqual([
    "Listener open is open to other machines, and no policy applies to its clients",
  ]);
  expect(titles({ policy: [{ enableVhostPolicy: true }], listener })).toEqual([]);
  expect(["", "::", "10.0.0.1"].every(isPublic)).toBe(true);
  expect(["localhost", "[::1]", "127.9.9.9"].some(isPublic)).toBe(false);
});

it("reports a router that does not answer, and writes out hostile names", () => {
  expect(titles({}, "no answer within 5 s")).toEqual(["Router A does not answer"]);
  const [title] = titles({ "router.link": [link({ owningAddr: `M0\u202e${"x".repeat(10_000)}`, zeroCreditSeconds: 60 })] });
  expect(title).toContain("<U+202E>");
  expect(title?.length).toBeLessThan(200);
});
