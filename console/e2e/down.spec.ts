/** What an operator sees of brokers and uplinks that are down, and of clients that are refused. */

import rhea from "rhea";

import { amqpListener, consoleListener, expect, inspect, openConsole, section, startRouter, test, usersFile, watch } from "./support";

/** A port of this machine on which nothing listens. */
const NOBODY = 1;
const DEAD = { host: "127.0.0.1", port: NOBODY };

test("the overview names what is down, since when and why, and its rows lead to the tables", async ({ page }) => {
  const wrong = watch(page);
  const router = await startRouter(
    section("router", { id: "D", mode: "standalone" }) +
      consoleListener() +
      section("connector", { ...DEAD, name: "warehouse", role: "route-container" }) +
      section("autoLink", { name: "orders-in", address: "orders", direction: "in", connection: "warehouse" }) +
      section("linkRoute", { name: "archive", prefix: "archive", direction: "out", connection: "warehouse" }),
  );
  await openConsole(page, `http://127.0.0.1:${router.port()}/`, "/overview", "Overview");
  const down = page.getByRole("grid", { name: "What is down" });
  await expect(page.getByRole("heading", { name: "What is down (3)" })).toBeVisible();
  const row = (name: string) => down.getByRole("row", { name });
  await expect(row("warehouse")).toContainText(/Connector.*warehouse.*ago|now/);
  await expect(row("warehouse")).toContainText("Connection to 127.0.0.1:1 failed");
  await expect(row("orders-in")).toContainText(/Auto link.*no broker of it is connected/);
  await expect(row("archive")).toContainText("Link route");
  await inspect(page, "down");
  await row("warehouse").getByText("warehouse").first().click();
  await expect(page.getByRole("heading", { level: 2, name: "warehouse" })).toBeVisible();
  for (const [entity, name] of [["connector", "CONNECTING"], ["router.config.autoLink", "inactive"], ["router.config.linkRoute", "inactive"]] as const) {
    await openConsole(page, `http://127.0.0.1:${router.port()}/`, `/entities/${entity}`, "Entities");
    const table = page.getByRole("grid", { name: entity });
    await expect(table.getByText(name, { exact: true })).toBeVisible();
    await expect(table.locator("time")).toBeVisible();
  }
  await router.stop();
  expect(wrong).toEqual([]);
});

test("an edge router without an uplink says so, and a broker that comes back leaves the list", async ({ page }) => {
  const edge = await startRouter(
    section("router", { id: "E", mode: "edge" }) + consoleListener() + section("connector", { ...DEAD, name: "hub", role: "edge" }),
  );
  await openConsole(page, `http://127.0.0.1:${edge.port()}/`, "/overview", "Overview");
  const uplink = page.getByRole("grid", { name: "What is down" }).getByRole("row", { name: /^Uplink/ });
  await expect(uplink).toContainText("Connection to 127.0.0.1:1 failed");
  await edge.stop();

  const broker = await startRouter(section("router", { id: "B", mode: "standalone" }) + amqpListener({ role: "route-container" }));
  const router = await startRouter(
    section("router", { id: "U", mode: "standalone" }) +
      consoleListener() +
      section("connector", { name: "warehouse", host: "127.0.0.1", port: broker.port(), role: "route-container" }),
  );
  await openConsole(page, `http://127.0.0.1:${router.port()}/`, "/overview", "Overview");
  await expect(page.getByText("Nothing is down: every connector")).toBeVisible();
  await broker.stop();
  await expect(page.getByRole("grid", { name: "What is down" }).getByText("warehouse", { exact: true })).toBeVisible();
  await router.stop();
});

test("the overview counts the logins that were denied and the users that are locked", async ({ page }) => {
  const users = usersFile({ alice: "right" });
  const login = { saslMechanisms: "PLAIN", authenticatePeer: true, allowInsecurePlain: "loopback" };
  const strict = { authLockout: "enforce", authDelayAfter: 1000, authLockoutAfter: 2 };
  const router = await startRouter(
    section("router", { id: "L", mode: "standalone", usersFile: users, ...strict }) + consoleListener() + amqpListener(login),
  );
  for (let guess = 0; guess < 2; guess += 1) {
    const container = rhea.create_container({ id: "intruder" });
    container.on("error", () => undefined);
    const ended = new Promise<void>((resolve) => {
      container.once("disconnected", () => resolve());
      container.once("connection_error", () => resolve());
    });
    container.connect({ host: "127.0.0.1", port: router.port(1), username: "alice", password: "wrong", reconnect: false });
    await ended;
  }
  await openConsole(page, `http://127.0.0.1:${router.port()}/`, "/overview", "Overview");
  const cells = page.getByRole("grid", { name: "Who is refused" }).locator("tbody td");
  await expect(cells).toHaveText(["L", "2", "2 sasl", "1", "0"]);
  await page.getByRole("grid", { name: "Who is refused" }).getByText("L", { exact: true }).click();
  await expect(page.getByRole("grid", { name: "Denials" }).getByText("alice")).toBeVisible();
  await router.stop();
});
