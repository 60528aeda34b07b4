import { expect, it } from "vitest";

import { idOfNode, idOfReply } from "./discovery";

it("finds the id in the address of a management node, slashes included", () => {
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
