import { expect, test, type Page } from "@playwright/test";

import { amqpListener, consoleListener, connectTo, section, startRouter, usersFile, type RunningRouter } from "./support";

const PASSWORDS = { reader: "Leser-4711", ann: "Anna-4711", zoe: "Zoe-4711" };

let router: RunningRouter;

test.beforeAll(async () => {
  const users = usersFile(PASSWORDS);
  const listener = { saslMechanisms: "PLAIN", authenticatePeer: true, allowInsecurePlain: "loopback" };
  const group = (name: string, more: string): string =>
    `${name}: { users: ${name}, remoteHosts: "*", sources: "*", targets: "*", allowDynamicSource: yes, allowAnonymousSender: yes, ${more} }`;
  router = await startRouter(
    section("router", { id: "P", usersFile: users }) +
      consoleListener(listener) +
      consoleListener({ ...listener, multiTenant: true }) +
      amqpListener({ policyVhost: "open" }) +
      section("policy", { enableVhostPolicy: true }) +
      `vhost {\n hostname: open\n groups: { $default: { users: "*", remoteHosts: "*", sources: "*", targets: "*" } }\n}\n` +
      `vhost {\n hostname: 127.0.0.1\n groups: { ${group("reader", "management: read")}, ${group("zoe", "management: none")} }\n}\n` +
      `vhost {\n hostname: t1.example\n groups: { ${group("ann", "management: read")} }\n}\n`,
  );
});

test.afterAll(() => router.stop());

async function logIn(page: Page, place: number, user: keyof typeof PASSWORDS, host = ""): Promise<void> {
  await page.goto(`http://127.0.0.1:${router.port(place)}/`);
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill(PASSWORDS[user]);
  await page.getByLabel("Virtual host or tenant").fill(host);
  await page.getByRole("button", { name: "Log in" }).click();
}

test("a login that may only read sees no buttons for changes", async ({ page }) => {
  await logIn(page, 0, "reader");
  await expect(page.getByText("read only")).toBeVisible();
  await page.goto(`${page.url().split("#")[0] ?? ""}#/entities/log`);
  const grid = page.getByRole("grid", { name: "log" });
  await expect(grid.getByRole("row").nth(1)).toBeVisible();
  await expect(page.getByRole("button", { name: /^Create/ })).toBeHidden();
  await grid.getByRole("row").nth(1).click();
  await expect(page.getByRole("definition").first()).toBeVisible();
  await expect(page.getByRole("button", { name: /^(Change|Delete)$/ })).toHaveCount(0);
});

test("a login without management rights gets a message", async ({ page }) => {
  await logIn(page, 0, "zoe");
  await expect(page.getByText("This login has no management rights.")).toBeVisible();
});

test("a tenant's login sees only the connections of its tenant", async ({ page }) => {
  const other = await connectTo(router.port(2), "someone-else");
  await logIn(page, 1, "ann", "t1.example");
  await expect(page.getByText("tenant", { exact: true })).toBeVisible();
  await page.goto(`${page.url().split("#")[0] ?? ""}#/entities/connection`);
  const grid = page.getByRole("grid", { name: "connection" });
  await expect(grid.getByText(/^trouter-console/)).toBeVisible();
  await expect(grid.getByText("someone-else")).toHaveCount(0);
  other.close();
});
