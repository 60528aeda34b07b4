import { expect, it } from "vitest";

import { parseCharts, titleOf } from "./charts";
import { smoothed, stacked } from "./series";

const line = { router: "*", entity: "router", identity: "1", attribute: "deliveriesIngress", isRate: true, name: "router" };

it("parses stored charts and leaves out damaged ones", () => {
  const chart = { id: "1", title: "t", lines: [line, { router: 7 }], isStacked: true, isLarge: false, minutes: 30, windowSeconds: 5 };
  expect(parseCharts(JSON.stringify([chart, chart, { id: "2" }, null]))).toEqual([{ ...chart, lines: [line] }]);
  expect(parseCharts(JSON.stringify([{ ...chart, minutes: 1e9, windowSeconds: "x" }]))[0]).toMatchObject({ minutes: 10, windowSeconds: 1 });
  expect([parseCharts(null), parseCharts("{"), parseCharts("7")]).toEqual([[], [], []]);
  expect(parseCharts(JSON.stringify(Array.from({ length: 99 }, (_, id) => ({ ...chart, id: String(id) })))).length).toBe(24);
});

it("makes a title from the attribute, row and rate of a line", () => {
  expect(titleOf(line)).toBe("deliveriesIngress per second");
  expect(titleOf({ ...line, entity: "router.address", name: "orders", isRate: false })).toBe("deliveriesIngress of orders");
});

it("smooths over a window and keeps missing samples", () => {
  const history = { times: [1_000, 2_000, 3_000, 4_000], values: [2, 4, null, 6] };
  expect(smoothed(history, 2_000).values).toEqual([2, 3, null, 6]);
  expect(smoothed(history, 1_000)).toBe(history);
});

it("stacks series whose samples have different times", () => {
  const one = { times: [1_010, 2_020, 3_030], values: [1, 2, 3] };
  const other = { times: [1_900, 3_100], values: [10, 30] };
  const [below, above] = stacked([one, other]);
  expect(below).toEqual({ times: [1_000, 2_000, 3_000], values: [1, 2, 3] });
  expect(above?.values).toEqual([11, 12, 33]);
});
