/** What an operator sees of the workers of a router with several processes. */

import { amqpListener, connectTo, consoleListener, expect, openConsole, section, startRouter, test, watch } from "./support";

test("a router with two workers is one router, which names the worker of a connection and one that is missing", async ({ page }) => {
  const wrong = watch(page);
  const router = await startRouter(section("router", { id: "A", workers: 2 }) + amqpListener() + consoleListener());
  await router.waitForLine(/2 workers serve/);
  const url = `http://127.0.0.1:${router.port(1)}/`;
  const clients = await Promise.all(["first", "second"].map((name) => connectTo(router.port(), name)));

  await openConsole(page, url, "/entities/connection", "Entities");
  const table = page.getByRole("grid", { name: "connection" });
  await expect(table.getByRole("row", { name: "second" })).toBeVisible();
  const place = (await table.getByRole("columnheader").allTextContents()).findIndex((text) => text.trim() === "worker");
  const worker = (name: string) => table.getByRole("row", { name }).getByRole("gridcell").nth(place);
  await expect(worker("first")).toHaveText(/^[12]$/);
  const of = [await worker("first").textContent(), await worker("second").textContent()];
  expect(of.sort()).toEqual(["1", "2"]);
  await expect(page.getByLabel("Router", { exact: true }).getByRole("option", { name: "A.2" })).toHaveCount(0);

  const line = router.lines.find((each) => each.includes("[W2] Operational")) ?? "";
  const second = Number(/process ID (\d+)/.exec(line)?.[1]);
  await openConsole(page, url, "/overview", "Overview");
  process.kill(second, "SIGSTOP");
  await expect(page.getByText("Workers of router A are missing in what is shown")).toBeVisible();
  await expect(page.getByText(/A\.2: it did not answer within 3 s|A\.2: it gives no sign of life/)).toBeVisible();
  process.kill(second, "SIGCONT");
  await expect(page.getByText("Workers of router A are missing in what is shown")).toBeHidden();
  clients.forEach((client) => client.close());
  await router.stop();
  expect(wrong).toEqual([]);
});
