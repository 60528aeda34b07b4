import { describe, expect, it } from "vitest";

import { litByAddress, litByPath } from "./lit";
import { nearest } from "./nearest";
import { LATER } from "./fixtures/network";
import { buildTopology } from "./topology";
import { labelText, nodeName } from "./words";

const POINTS = new Map([
  ["middle", { x: 0, y: 0 }],
  ["right", { x: 100, y: 10 }],
  ["far right", { x: 300, y: 0 }],
  ["below", { x: -20, y: 90 }],
]);
const TOPOLOGY = buildTopology(LATER);

describe("nearest", () => {
  it("goes to the next point in the direction, and stays at the border", () => {
    expect(nearest(POINTS, "middle", "ArrowRight")).toBe("right");
    expect(nearest(POINTS, "right", "ArrowRight")).toBe("far right");
    expect(nearest(POINTS, "middle", "ArrowDown")).toBe("below");
    expect(nearest(POINTS, "middle", "ArrowUp")).toBeUndefined();
  });

  it("begins somewhere when its node is gone", () => {
    expect(nearest(POINTS, "unknown", "ArrowUp")).toBe("middle");
  });
});

describe("lit", () => {
  it("names the path and its cost", () => {
    const lit = litByPath(TOPOLOGY, LATER, "A", "C");
    expect(lit.text).toBe("A → B → C, cost 6");
    expect([...lit.edges.keys()]).toEqual(["router:B>router:A", "router:C>router:B"]);
    expect(litByPath(TOPOLOGY, LATER, "A", "nowhere").text).toBe("A knows no way to nowhere.");
  });

  it("counts an address's producers and consumers, and lights the edge router between", () => {
    const lit = litByAddress(TOPOLOGY, LATER, "queue.1");
    expect(lit.text).toBe("queue.1: 2 producers, 3 consumers, by way of 3 routers.");
    expect(lit.nodes.get("edge:E1")).toBe("way");
    expect(lit.nodes.get("clients:router:C/consumer")).toBe("consumer");
  });
});

describe("names", () => {
  it("stay short and visible whatever a stranger is called", () => {
    expect(labelText("x".repeat(10_240))).toHaveLength(24);
    expect(labelText("a\u202eb\u0000")).toBe("a<U+202E>b<NUL>");
  });

  it("say what a group is and where", () => {
    const group = TOPOLOGY.nodes.get("clients:router:C/consumer");
    expect(nodeName(TOPOLOGY, group)).toBe("3 consumers at router C");
  });
});
