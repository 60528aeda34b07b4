import { readFileSync } from "node:fs";

import { connectTo, expect, inspect, test } from "./support";

test.describe("tables", () => {
  test("list the entities of all routers, edge included, and of one", async ({ open, page, network }) => {
    await open("/entities/connection", "Entities");
    const grid = page.getByRole("grid", { name: "connection" });
    await expect(grid.getByRole("row", { name: /writer-orders/ })).toBeVisible();
    await expect(grid.getByRole("columnheader", { name: "user", exact: true })).toBeVisible();
    await page.getByRole("searchbox").or(page.getByPlaceholder(/Filter/)).fill("writer-");
    for (const name of ["writer-orders", "writer-news", "writer-bids", "writer-lonely"]) {
      await expect(grid.getByRole("row", { name: new RegExp(name) })).toBeVisible();
    }
    await page.getByLabel("Router", { exact: true }).selectOption("E");
    await expect(grid.getByRole("row", { name: /writer-bids/ })).toBeVisible();
    await expect(grid.getByRole("row", { name: /writer-orders/ })).toBeHidden();
    await inspect(page, "entities-table");
    expect(network.edge.ports.length).toBe(2);
  });

  test("sort by a heading, move by keys, and open by Enter", async ({ open, page }) => {
    await open("/entities/log?router=A", "Entities");
    const grid = page.getByRole("grid", { name: "log" });
    const heading = grid.getByRole("columnheader", { name: "module" });
    await heading.getByRole("button").click();
    await expect(heading).toHaveAttribute("aria-sort", "ascending");
    const first = grid.getByRole("row").nth(1);
    await expect(first).toContainText("AGENT");
    await heading.getByRole("button").click();
    await expect(heading).toHaveAttribute("aria-sort", "descending");
    await expect(first).not.toContainText("AGENT");
    await grid.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await expect(page.getByRole("heading", { level: 2, name: "log/AGENT" })).toBeVisible();
    await page.goBack();
    await expect(grid).toBeVisible();
  });

  test("are exported as CSV and JSON with the visible cells", async ({ open, page }) => {
    await open("/entities/router.node?router=A", "Entities");
    await expect(page.getByRole("grid").getByRole("row", { name: /router.node\/C/ })).toBeVisible();
    const saved = async (button: string): Promise<string> => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button }).click()]);
      return readFileSync(await download.path(), "utf8");
    };
    const rows = JSON.parse(await saved("JSON")) as Record<string, unknown>[];
    expect(rows.map((row) => row["id"]).sort()).toEqual(["A", "B", "C"]);
    const csv = (await saved("CSV")).split("\r\n");
    expect(csv[0]).toContain('"id"');
    expect(csv).toHaveLength(5);
  });
});

test.describe("changes", () => {
  test("an entity is created after an error at its field, changed, and deleted after a confirmation", async ({ open, page }) => {
    await open("/entities/router.config.address?router=B", "Entities");
    await page.getByRole("button", { name: "Create router.config.address" }).click();
    await page.getByLabel("name", { exact: true }).fill("made-here");
    await page.getByLabel("prefix", { exact: true }).fill("made");
    await page.getByLabel("priority", { exact: true }).fill("12");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await expect(page.locator("#field-priority")).toBeFocused();
    await expect(page.locator("#field-priority-help")).toContainText("priority");
    await inspect(page, "entities-form");
    await page.getByLabel("priority", { exact: true }).fill("5");
    await page.getByLabel("distribution", { exact: true }).selectOption("multicast");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await expect(page.getByRole("heading", { level: 2, name: "made-here" })).toBeVisible();
    await expect(page.getByText("multicast")).toBeVisible();
    await inspect(page, "entities-detail");
    await page.getByRole("button", { name: "Delete" }).click();
    const question = page.getByRole("dialog", { name: /Delete this/ });
    await expect(question).toContainText("made-here");
    await question.getByRole("button", { name: "Cancel" }).click();
    await expect(question).toBeHidden();
    await page.getByRole("button", { name: "Delete" }).click();
    await question.getByRole("button", { name: "Delete" }).click();
    await expect(page.getByText(/Deleted router.config.address made-here/)).toBeVisible();
    await expect(page.getByRole("grid").getByRole("row", { name: /made-here/ })).toBeHidden();
  });

  test("a client's connection is closed after a confirmation", async ({ open, page, network }) => {
    const client = await connectTo(network.a.port(), "to-be-closed");
    const closed = new Promise((resolve) => client.once("connection_close", resolve));
    await open("/entities/connection?router=A&filter=to-be-closed", "Entities");
    await page.getByRole("grid").getByRole("row", { name: /to-be-closed/ }).click();
    await page.getByRole("button", { name: "Close connection" }).click();
    await page.getByRole("dialog", { name: "Close this connection?" }).getByRole("button", { name: "Close connection" }).click();
    await closed;
    await expect(page.getByText(/Closed connection/)).toBeVisible();
  });

  test("the levels of a log are changed", async ({ open, page }) => {
    await open("/entities/log?router=C&identity=log%2FPOLICY", "Entities");
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByLabel("enable", { exact: true }).fill("error+");
    // An attribute that an UPDATE cannot change has no field.
    await expect(page.getByLabel("module", { exact: true })).toHaveCount(0);
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await expect(page.getByText("Changed log log/POLICY")).toBeVisible();
    await expect(page.getByRole("definition").filter({ hasText: "error+" })).toBeVisible();
  });
});
