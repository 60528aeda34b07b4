import { expect, it } from "vitest";

import { addressesOf, addressView } from "./address";
import { concludeFromTables, parseExplanation, gravityOf } from "./explanation";
import { isInner, isTemporary, parseKey } from "./addresskey";
import type { Snapshot } from "./types";

const snapshot: Snapshot = {
  at: 1,
  routers: [
    {
      id: "A",
      address: "",
      at: 1,
      tables: {
        "router.address": [
          { key: "M0orders", distribution: "balanced", subscriberCount: 1, deliveriesIngress: 5n },
          { key: "M0$management" },
          { key: "Ltemp.x" },
        ],
        "router.link": [
          { identity: "7", linkType: "endpoint", linkDir: "in", owningAddr: "M0orders", connectionId: "2", creditAvailable: 5, acceptedCount: 4 },
        ],
        connection: [{ identity: "2", container: "writer", host: "h:1", user: "u" }],
      },
    },
    {
      id: "B",
      address: "_topo/0/B/",
      at: 1,
      tables: {
        "router.address": [{ name: "M0orders", distribution: "balanced", subscriberCount: 2, deliveriesEgress: 4 }],
        "router.link": [
          { identity: "9", linkType: "endpoint", linkDir: "out", owningAddr: "M0orders", creditAvailable: 0, undeliveredCount: 3, zeroCreditSeconds: 9 },
          { identity: "1", linkType: "inter-router", linkDir: "out", owningAddr: "M0orders" },
        ],
      },
    },
  ],
};

it("sums an address over routers, and leaves out addresses of routers and replies", () => {
  const [orders, ...others] = addressesOf(snapshot);
  expect(others).toEqual([]);
  expect(orders).toMatchObject({ text: "orders", kind: "mobile", phase: 0, routers: ["A", "B"] });
  expect(orders?.counts).toMatchObject({ subscriberCount: 3, deliveriesIngress: 5, deliveriesEgress: 4 });
});

it("finds producers and consumers with their credit and outcomes, by router", () => {
  const view = addressView(snapshot, "orders");
  expect(view.producers).toMatchObject([{ router: "A", container: "writer", credit: 5, outcomes: { acceptedCount: 4 } }]);
  expect(view.consumers).toMatchObject([{ router: "B", container: "", credit: 0, undelivered: 3, noCreditSeconds: 9 }]);
  expect(view.routers.map((each) => [each.router, each.consumers, each.producers])).toEqual([["A", 0, 1], ["B", 1, 0]]);
  expect(addressView(snapshot, "other").consumers).toEqual([]);
});

it("parses keys, and recognises inner and temporary addresses", () => {
  expect(parseKey("M1a/b")).toEqual({ kind: "mobile", phase: 1, text: "a/b" });
  expect(parseKey("MFa/b")).toEqual({ kind: "mobile", phase: "F", text: "a/b" });
  expect(parseKey("Cbroker")).toEqual({ kind: "link route in", phase: null, text: "broker" });
  expect([isInner("M0$management"), isInner("L_edge"), isInner("M0edges"), isTemporary("Ltemp.q")]).toEqual([true, true, false, true]);
});

it("turns an answer to EXPLAIN into sentences", () => {
  const consumers = [{ link: 9, container: "c", waitsFor: "credit", zeroCreditSeconds: 70, undelivered: 1, unsettled: 2 }];
  const explanation = parseExplanation({ verdict: "consumers without credit: link 9 on connection 2", rule: "prefix a", consumers, senders: [{ link: 1 }] });
  expect(explanation).toMatchObject({ gravity: "danger", rule: "prefix a", isReported: true });
  expect(explanation?.details).toEqual(["Receiver c (link 9): its receiver gives no credit, for 70 s; 1 delivery waits; 2 deliveries unsettled"]);
  expect(parseExplanation([])).toBeUndefined();
});

it.each([
  ["flowing", "success"],
  ["flowing, but link 1 on connection 2 is behind", "warning"],
  ["ready: nothing is under way", "info"],
  ["no consumer: 1 sender without new credit until one comes", "warning"],
  ["held by link 1 on connection 2: its session's window is closed", "danger"],
  ["senders are routed by broker to container B on connection 3", "info"],
])("gives the verdict %j the gravity %s", (verdict, gravity) => {
  expect(gravityOf(verdict)).toBe(gravity);
});

it("concludes a verdict from the tables if the router does not explain", () => {
  const view = addressView(snapshot, "orders");
  expect(concludeFromTables(view)).toMatchObject({ verdict: "consumers without credit: 1 receiver", gravity: "danger", isReported: false });
  expect(concludeFromTables({ ...view, consumers: [] }).verdict).toMatch(/^no consumer/);
  expect(concludeFromTables({ ...view, consumers: [], producers: [] }).verdict).toMatch(/^unknown address/);
});
