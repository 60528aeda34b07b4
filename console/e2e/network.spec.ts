/** What an operator sees of all routers at once: their state, policy and findings. */

import { amqpListener, connectTo, consoleListener, expect, inspect, manage, openConsole, section, startRouter, test, usersFile, watch } from "./support";

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

test("a change that is not finished is shown with who made it, where, and the commands that end it, until it is ended", async ({ page }) => {
  const wrong = watch(page);
  const router = await startRouter(section("router", { id: "R" }) + consoleListener() + amqpListener());
  await openConsole(page, `http://127.0.0.1:${router.port()}/`, "/network", "Network");
  await expect(page.getByText("1 of 1 router answered")).toBeVisible();
  await expect(page.getByText("is not finished")).toBeHidden();
  const body = JSON.stringify(`${router.configuration}address { prefix: news }\n`);
  const checked = (await manage(router.port(1), "CHECK", "--body", body, "file=R.conf")) as { apply: { state: string } };
  await manage(router.port(1), "APPLY", "--body", body, "change=3b9f21a0", "by=ann@desk", "routers=R,S", `state=${checked.apply.state}`);
  const line = page.getByRole("status").filter({ hasText: "is not finished" });
  await expect(line).toContainText("The change 3b9f21a0 by ann@desk, of ");
  await expect(line).toContainText(
    "is not finished: made at R; not open at S. trouter network apply FOLDER --resume 3b9f21a0 goes on with it, " +
      "trouter network apply --abandon 3b9f21a0 takes it back.",
  );
  await inspect(page, "network-change");
  await manage(router.port(1), "REVERT-CHANGE", "change=3b9f21a0");
  await expect(line).toBeHidden();
  await router.stop();
  expect(wrong).toEqual([]);
});

test("a router with two workers is one whole row for a user who may only read", async ({ page }) => {
  const allowed = '{ users: "*", remoteHosts: "*", sources: "*", targets: "*", allowDynamicSource: yes, allowAnonymousSender: yes, management: read }';
  const router = await startRouter(
    section("router", { id: "A", mode: "interior", workers: 2, usersFile: usersFile({ reader: "Leser-4711" }) }) +
      consoleListener({ saslMechanisms: "PLAIN", authenticatePeer: true, allowInsecurePlain: "loopback" }) +
      section("policy", { enableVhostPolicy: true }) +
      `vhost {\n hostname: $default\n groups: { $default: ${allowed} }\n}\n`,
  );
  await router.waitForLine(/2 workers serve/);
  await page.goto(`http://127.0.0.1:${router.port()}/#/network`);
  await page.getByLabel("User").fill("reader");
  await page.getByLabel("Password").fill("Leser-4711");
  await page.getByRole("button", { name: "Log in" }).click();
  await expect(page.getByText("1 of 1 router answered")).toBeVisible();
  await expect(page.getByRole("grid", { name: "Routers of the network" }).getByRole("row", { name: /^A / })).toContainText(/interior\s*up/);
  await router.stop();
});
