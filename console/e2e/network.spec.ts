/** What an operator sees of all routers at once: their state, policy and findings. */

import { amqpListener, connectTo, consoleListener, expect, inspect, openConsole, section, startRouter, test, watch } from "./support";

test("every router of the network is shown with its state, and leads to its findings", async ({ open, page }) => {
  await open("/network", "Network");
  const grid = page.getByRole("grid", { name: "Routers of the network" });
  for (const name of ["A", "B", "C", "E"]) {
    await expect(grid.getByRole("row", { name: new RegExp(`^${name} `) })).toContainText(/(interior|edge)\s*up\s*0\.2/);
  }
  await expect(page.getByText(/^4 of 4 routers answered/)).toBeVisible();
  await inspect(page, "network");
  await grid.getByRole("row", { name: /^B / }).getByText("interior").click();
  await expect(page.getByRole("grid", { name: "finding" })).toBeVisible();
  await expect(page.getByLabel("Router", { exact: true })).toHaveValue("B");
});

test("routers with different policies are named, and one that has left the network", async ({ page }) => {
  const wrong = watch(page);
  const hub = await startRouter(
    section("router", { id: "Hub", mode: "interior" }) + consoleListener() + amqpListener({ role: "inter-router" }),
  );
  const spoke = await startRouter(
    section("router", { id: "Spoke", mode: "interior" }) +
      amqpListener() +
      section("connector", { host: "127.0.0.1", port: hub.port(1), role: "inter-router" }) +
      section("policy", { defaultVhost: "none" }),
  );
  await openConsole(page, `http://127.0.0.1:${hub.port()}/`, "/network", "Network");
  const row = (name: string) => page.getByRole("grid", { name: "Routers of the network" }).getByRole("row", { name: new RegExp(`^${name} `) });
  await expect(page.getByText(/The routers have 2 policies: [0-9a-f]{7}…? at .*; [0-9a-f]{7}…? at /)).toBeVisible();
  const client = await connectTo(spoke.port(), "stays");
  process.kill(spoke.pid, "SIGSTOP");
  await expect(row("Spoke")).toContainText(/no answer.*left the network/);
  process.kill(spoke.pid, "SIGCONT");
  await expect(row("Spoke")).toContainText("up");
  client.close();
  await spoke.stop();
  await hub.stop();
  expect(wrong).toEqual([]);
});
