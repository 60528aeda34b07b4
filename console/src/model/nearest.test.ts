import { describe, expect, it } from "vitest";

import { highlightAddress, highlightPath } from "./highlight";
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
  it("finds the next point in the direction, and none beyond the border", () => {
    expect(nearest(POINTS, "middle", "ArrowRight")).toBe("right");
    expect(nearest(POINTS, "right", "ArrowRight")).toBe("far right");
    expect(nearest(POINTS, "middle", "ArrowDown")).toBe("below");
    expect(nearest(POINTS, "middle", "ArrowUp")).toBeUndefined();
  });

  it("returns the first point if the start is unknown", () => {
    expect(nearest(POINTS, "unknown", "ArrowUp")).toBe("middle");
  });
});

describe("highlight", () => {
  it("describes the path between two routers with its cost", () => {
    const highlight = highlightPath(TOPOLOGY, LATER, "A", "C");
    expect(highlight.text).toBe("A → B → C, cost 6");
    expect([...highlight.edges.keys()]).toEqual(["router:B>router:A", "router:C>router:B"]);
    expect(highlightPath(TOPOLOGY, LATER, "A", "nowhere").text).toBe("A has no route to nowhere.");
  });

  it("counts an address's producers and consumers, and highlights the edge router between them", () => {
    const highlight = highlightAddress(TOPOLOGY, LATER, "queue.1");
    expect(highlight.text).toBe("queue.1: 2 producers, 3 consumers, through 3 routers.");
    expect(highlight.nodes.get("edge:E1")).toBe("way");
    expect(highlight.nodes.get("clients:router:C/consumer")).toBe("consumer");
  });
});

describe("names", () => {
  it("are cut and have invisible characters written out", () => {
    expect(labelText("x".repeat(10_240))).toHaveLength(24);
    expect(labelText("a\u202eb\u0000")).toBe("a<U+202E>b<NUL>");
  });

  it("of groups have count, kind and router", () => {
    const group = TOPOLOGY.nodes.get("clients:router:C/consumer");
    expect(nodeName(TOPOLOGY, group)).toBe("3 consumers at router C");
  });
});
