import { expect, test, type Page } from "@playwright/test";

import { consoleListener, inspect, section, startRouter, usersFile, watch, type RunningRouter } from "./support";

const PASSWORD = "Wunderländer 4711";

let router: RunningRouter;
const url = (place = 0): string => `http://127.0.0.1:${router.port(place)}/`;

test.beforeAll(async () => {
  const users = usersFile({ alice: PASSWORD });
  const listener = consoleListener({ saslMechanisms: "PLAIN", authenticatePeer: true, allowInsecurePlain: "loopback" });
  const scram = consoleListener({ saslMechanisms: "SCRAM-SHA-256", authenticatePeer: true });
  router = await startRouter(section("router", { id: "L", mode: "standalone", usersFile: users }) + listener + scram);
});

test.afterAll(() => router.stop());

async function logIn(page: Page, password: string): Promise<void> {
  await page.getByLabel("User").fill("alice");
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}

test("a user logs in, sees the user name, and logs out", async ({ page }) => {
  const wrong = watch(page);
  await page.goto(url());
  await expect(page.getByRole("heading", { name: "Log in to trouter" })).toBeVisible();
  await expect(page.getByRole("button", { name: "Connect without a password" })).toBeHidden();
  await inspect(page, "login");
  await logIn(page, PASSWORD);
  await expect(page.getByText("Connected to L")).toBeVisible();
  await expect(page.getByText("alice", { exact: true })).toBeVisible();
  const kept = await page.evaluate(() => JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie]));
  expect(kept).not.toContain(PASSWORD);
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByRole("heading", { name: "Log in to trouter" })).toBeVisible();
  await expect(page.getByLabel("Password")).toHaveValue("");
  expect(wrong).toEqual([]);
});

test("a wrong password shows an error and keeps the form", async ({ page }) => {
  await page.goto(url());
  await logIn(page, "wrong");
  await expect(page.getByText("The router refuses this login.")).toBeVisible();
  await inspect(page, "login-denied");
  await logIn(page, PASSWORD);
  await expect(page.getByText("Connected to L")).toBeVisible();
});

test("a listener with SCRAM alone accepts the right password, which is never sent", async ({ page }) => {
  const sent: string[] = [];
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => sent.push(payload.toString())));
  await page.goto(url(1));
  await logIn(page, "wrong");
  await expect(page.getByText("The router refuses this login.")).toBeVisible();
  await logIn(page, PASSWORD);
  await expect(page.getByText("Connected to L")).toBeVisible();
  expect(sent.join("")).toContain("n=alice,r=");
  expect(sent.join("")).not.toContain(PASSWORD);
});

test("the console reconnects after a cut connection and shows a notice", async ({ page }) => {
  let cut: (() => Promise<void>) | undefined;
  await page.routeWebSocket(/management/, (socket) => {
    const server = socket.connectToServer();
    cut = async () => {
      await server.close();
      await socket.close();
    };
  });
  await page.goto(url());
  await logIn(page, PASSWORD);
  await expect(page.getByText("Connected to L")).toBeVisible();
  await cut?.();
  await expect(page.getByText("The connection to the router is lost")).toBeVisible();
  await expect(page.getByText("The connection to the router is back")).toBeVisible();
  await expect(page.getByText("Connected to L")).toBeVisible();
});
