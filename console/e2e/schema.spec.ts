import { expect, inspect, test } from "./support";

test("the filter searches all attributes, and a type shows its own", async ({ open, page }) => {
  await open("/schema", "Schema");
  const all = page.getByRole("grid", { name: "Attributes of all types" });
  await page.getByLabel(/^Filter/).fill("entity:listener attribute:saslMechanisms");
  await expect(all.getByRole("row")).toHaveCount(2);
  await all.getByRole("row").nth(1).click();
  await expect(page.getByRole("heading", { level: 2, name: "listener" })).toBeVisible();
  await expect(page.getByRole("grid", { name: "Attributes of listener" }).getByRole("row", { name: /saslMechanisms/ })).toBeVisible();
  await inspect(page, "schema");
  await page.getByRole("link", { name: "Entities of this type" }).click();
  await expect(page.getByRole("grid", { name: "listener" }).getByRole("row").nth(1)).toBeVisible();
});
