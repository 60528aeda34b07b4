import { expect, it } from "vitest";

import { isWhole, tableOf, wholeTableOf } from "./rows";
import type { RouterTables } from "./types";

const ROWS = [{ id: "B" }];
const router = (whole?: ReadonlySet<string>): RouterTables => ({
  id: "A",
  address: "",
  at: 1,
  tables: { "router.node": ROWS },
  ...(whole === undefined ? {} : { whole }),
});

it("has the rows of a table with all attributes, not of one that a page has requested in part", () => {
  expect(wholeTableOf(router(new Set(["router.node"])), "router.node")).toEqual(ROWS);
  for (const one of [router(), router(new Set(["connection"]))]) {
    expect(tableOf(one, "router.node")).toEqual(ROWS);
    expect(wholeTableOf(one, "router.node")).toEqual([]);
  }
  expect(isWhole(router(new Set(["connection"])), "connection")).toBe(true);
});
