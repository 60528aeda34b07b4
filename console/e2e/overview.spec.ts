import { expect, inspect, test } from "./support";

test("the overview shows figures, an alarm for the blocked receiver and a link to its address", async ({ page, open }) => {
  await open("/overview", "Overview");
  const figure = (name: string) => page.locator("dl.console-figures > div", { hasText: name }).locator("dd");
  await expect(figure("Routers")).toHaveText("4");
  await expect(figure("Deliveries in")).toHaveText(/^[1-9][\d.,]* \/s$/);
  await expect(figure("Transit")).toHaveText(/^[1-9]/);
  await expect(page.getByRole("grid", { name: "Routers" }).getByText("interior").first()).toBeVisible();
  await expect(page.getByRole("grid", { name: "Most active addresses" }).getByText("news")).toBeVisible();
  await expect(page.getByText("Everything that is configured is served.")).toBeVisible();
  await expect(page.locator(".console-chart canvas")).toBeVisible();
  await inspect(page, "overview");
  // The dialog about the receiver's connection is cancelled, so the connection stays open.
  await page.getByRole("button", { name: "Close reader-lonely-0" }).click();
  const question = page.getByRole("dialog", { name: "Close this connection?" });
  await expect(question).toContainText("connection reader-lonely-0 on router B");
  await question.getByRole("button", { name: "Cancel" }).click();
  const alarm = page.getByRole("list", { name: "Alarms" }).getByRole("link", { name: /receiver of lonely gives no credit/ });
  await expect(alarm).toBeVisible();
  await alarm.click();
  await expect(page.getByRole("heading", { level: 1, name: "Address lonely" })).toBeVisible();
});
