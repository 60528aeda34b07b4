import { expect, it } from "vitest";

import { ordersFor } from "./interests";

it("merges attributes and takes the shortest time", () => {
  const orders = ordersFor(
    [
      { wanted: { connection: ["role"], router: "all" }, everyMs: 5_000 },
      { wanted: { connection: ["role", "host"] }, everyMs: 1_000 },
      { wanted: { router: ["id"] }, everyMs: 7_000 },
    ],
    "A",
  );
  expect(orders).toEqual([
    { entity: "connection", attributes: ["role", "host"], everyMs: 1_000 },
    { entity: "router", attributes: "all", everyMs: 5_000 },
  ]);
});

it("leaves out what is wanted of other routers", () => {
  const interests = [{ wanted: { log: "all" as const }, everyMs: 1_000, routers: ["B"] }];
  expect(ordersFor(interests, "A")).toEqual([]);
  expect(ordersFor(interests, "B")).toHaveLength(1);
});
