import { expect, inspect, test } from "./support";

test("a searched address shows each router's explanation why it does not flow", async ({ page, open }) => {
  await open("/address", "Address");
  await expect(page.getByRole("grid", { name: "Addresses" }).getByText("orders")).toBeVisible();
  await inspect(page, "addresses");
  await page.getByLabel("Address", { exact: true }).fill("lonely");
  await page.getByRole("button", { name: "Show address" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Address lonely" })).toBeVisible();
  const explanations = page.getByRole("list", { name: "Explanations" });
  await expect(explanations.getByText(/consumers without credit: link \d+ on connection \d+/)).toBeVisible();
  await expect(explanations.getByText(/senders without credit: other routers have \d+ of their deliveries/)).toBeVisible();
  await expect(explanations.getByText(/Receiver reader-lonely-0 .*: its receiver gives no credit/)).toBeVisible();
  await expect(page.getByRole("grid", { name: "Consumers" }).getByText("reader-lonely-0")).toBeVisible();
  await expect(page.getByRole("grid", { name: "Producers" }).getByText("writer-lonely")).toBeVisible();
  await expect(page.getByRole("grid", { name: "Outcomes by router" }).getByText("balanced").first()).toBeVisible();
  await inspect(page, "address");
});

test("a flowing address and an unknown one show their verdicts", async ({ page, open }) => {
  await open("/address?name=orders", "Address orders");
  await expect(page.getByRole("list", { name: "Explanations" }).getByText(/flowing/).first()).toBeVisible();
  await expect(page.getByRole("grid", { name: "Outcomes by router" })).toContainText("accepted", { ignoreCase: true });
  await open("/address?name=nothing.here", "Address nothing.here");
  await expect(page.getByRole("list", { name: "Explanations" }).getByText(/unknown address/).first()).toBeVisible();
});
