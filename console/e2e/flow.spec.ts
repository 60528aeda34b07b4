import { expect, inspect, test } from "./support";

test("flows between routers are drawn as chords, a Sankey and a table", async ({ open, page }) => {
  await open("/flow", "Message flow");
  const chords = page.getByRole("img", { name: /Chord diagram/ });
  await expect(chords.locator("text.flow-label", { hasText: "C" })).toBeVisible();
  // A chord's title names both ends and the rate.
  await expect(chords.locator("title", { hasText: /^A → C: \d/ })).toBeAttached();
  await expect(page.getByText(/to clients, mean over [1-9]/)).toBeVisible();
  await inspect(page, "flow-chord");
  await page.getByRole("button", { name: "Sankey" }).click();
  await page.getByRole("button", { name: "Routers and addresses" }).click();
  await expect(page).toHaveURL(/view=sankey/);
  const sankey = page.getByRole("img", { name: /Sankey/ });
  await expect(sankey.locator("title", { hasText: /^A → orders: / })).toBeAttached();
  await expect(sankey.locator("title", { hasText: /^orders → C: / })).toBeAttached();
  await inspect(page, "flow-sankey");
  await page.getByRole("button", { name: "Table" }).click();
  const row = page.getByRole("grid", { name: "Flows" }).locator("tr", { hasText: "orders" });
  await expect(row.getByText("A", { exact: true })).toBeVisible();
  await expect(row.getByText("C", { exact: true })).toBeVisible();
  await inspect(page, "flow-table");
});

test("messages of an edge router's clients enter at its interior router", async ({ open, page }) => {
  await open("/flow?view=table", "Message flow");
  const row = page.getByRole("grid", { name: "Flows" }).locator("tr", { hasText: "bids" });
  await expect(row.getByText("B", { exact: true })).toHaveCount(2);
});

test("addresses and routers are filtered, the URL keeps the choice, and totals are shown", async ({ open, page }) => {
  await open("/flow?by=address&view=sankey", "Message flow");
  const label = (name: string): ReturnType<typeof page.locator> => page.locator("text.flow-label", { hasText: name });
  await expect(label("orders")).toBeVisible();
  await page.getByRole("checkbox", { name: /^news/ }).check();
  await expect(page).toHaveURL(/address=news/);
  await expect(label("orders")).toBeHidden();
  await expect(label("news")).toBeVisible();
  await page.getByRole("button", { name: "Total" }).click();
  await expect(page.getByText(/messages to the clients that are connected now/)).toBeVisible();
  await page.reload();
  await expect(page.getByRole("checkbox", { name: /^news/ })).toBeChecked();
  await expect(label("news")).toBeVisible();
  await page.getByRole("button", { name: "Show all" }).click();
  await expect(label("orders")).toBeVisible();
});

test("a network without traffic shows that nothing flows", async ({ open, page }) => {
  await open("/flow?address=unheard", "Message flow");
  await expect(page.getByText("Nothing flows")).toBeVisible();
  await inspect(page, "flow-nothing");
});
