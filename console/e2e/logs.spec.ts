import { expect, inspect, test } from "./support";

test("log entries of all routers are filtered by level, module and words, which the URL keeps", async ({ open, page }) => {
  await open("/logs", "Logs");
  const entries = page.getByRole("grid", { name: "Log entries" });
  await expect(entries.getByRole("row").nth(1)).toBeVisible();
  await page.getByLabel("Router", { exact: true }).selectOption("B");
  await page.getByLabel("Minimum level").selectOption("notice");
  await page.getByLabel("Filter: Log entries").fill("listening");
  await expect(entries.getByRole("row").nth(1)).toContainText("Listening");
  await expect(page).toHaveURL(/router=B.*level=notice.*filter=listening/);
  await page.reload();
  await expect(entries.getByRole("row").nth(1)).toContainText("Listening");
  await entries.getByRole("row").nth(1).click();
  await expect(page.getByRole("region", { name: "Log entry" })).toContainText("Listening");
  await inspect(page, "logs");
});

test("a row of the counts by module opens the entries of that module", async ({ open, page }) => {
  await open("/logs", "Logs");
  await page.getByLabel("Filter: Entries by module").fill("router:A module:SERVER");
  const counts = page.getByRole("grid", { name: "Entries by module" }).getByRole("row").nth(1);
  await expect(counts.getByRole("gridcell").nth(2)).toHaveText("info+");
  await counts.click();
  await expect(page).toHaveURL(/router=A&module=SERVER/);
  await expect(page.getByRole("grid", { name: "Log entries" }).getByRole("row").nth(1)).toContainText("SERVER");
});
