import { expect, it } from "vitest";

import { idOfNode, idOfReply, routersOf } from "./discovery";

it("finds the router id, also with slashes, in the address of a management node", () => {
  expect(idOfNode("amqp:/_topo/0/A/$management")).toBe("A");
  expect(idOfNode("amqp:/_topo/0/site/one/$management")).toBe("site/one");
  expect(idOfNode("amqp:/elsewhere")).toBeUndefined();
  expect(idOfNode(7)).toBeUndefined();
});

it("finds the router in a reply address", () => {
  expect(idOfReply("amqp:/_topo/0/A/temp.abc+_9")).toEqual({ id: "A", isEdge: false });
  expect(idOfReply("amqp:/_edge/E/1/temp.abc")).toEqual({ id: "E/1", isEdge: true });
  expect(idOfReply("temp.abc")).toBeUndefined();
});

it("leaves out the other workers of the connected router", () => {
  const ids = ["A", "A.2", "A.3", "A.4", "A.x", "B.2"];
  const found = (workers: number): string[] => routersOf({ id: "A", address: "", mode: "interior", workers }, ids, () => []).map(({ id }) => id);
  expect(found(3)).toEqual(["A", "A.4", "A.x", "B.2"]);
  expect(found(0)).toEqual(ids);
});

it("lists the edge routers of every present router, and each router once", () => {
  const edge = (container: string): Record<string, string> => ({ role: "edge", dir: "in", container });
  const tables: Record<string, Record<string, string>[]> = {
    A: [{ role: "inter-router", dir: "in", container: "B" }],
    B: [edge("E"), { ...edge("up"), dir: "out" }],
    gone: [edge("F")],
  };
  const found = routersOf({ id: "A", address: "", mode: "interior" }, ["A", "B"], (id) => tables[id] ?? []);
  expect(found.map(({ id, address, mode }) => [id, address, mode])).toEqual([
    ["A", "", "interior"],
    ["B", "_topo/0/B/", "interior"],
    ["E", "_edge/E/", "edge"],
  ]);
});
