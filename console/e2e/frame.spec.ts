import { expect, inspect, test } from "./support";

test("a listener that offers ANONYMOUS needs no login page", async ({ page, network }) => {
  await page.goto(network.url);
  await expect(page.getByText("Connected to A")).toBeVisible();
  await expect(page.getByText("anonymous", { exact: true })).toBeVisible();
});

test("the theme follows the system until the user chooses one, which the browser stores", async ({ page, network }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(network.url);
  const root = page.locator("html");
  await expect(root).toHaveClass(/pf-v6-theme-dark/);
  await page.getByRole("button", { name: "Light theme" }).click();
  await expect(root).not.toHaveClass(/pf-v6-theme-dark/);
  await page.reload();
  await expect(page.getByRole("button", { name: "Light theme" })).toHaveAttribute("aria-pressed", "true");
  await expect(root).not.toHaveClass(/pf-v6-theme-dark/);
});

test("an unknown URL shows that there is no such page", async ({ open, page }) => {
  await open("/nowhere", "No such page");
  await inspect(page, "missing");
});
