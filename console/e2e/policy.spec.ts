import { expect, test, type Page } from "@playwright/test";
import rhea from "rhea";

import { amqpListener, connectTo, consoleListener, inspect, openConsole, section, startRouter, usersFile, watch, type RunningRouter } from "./support";

const PASSWORD = "see no evil";
const GROUP = "remoteHosts: *, sources: *, targets: *, allowDynamicSource: yes, allowAnonymousSender: yes";

let router: RunningRouter;
const url = (place: number): string => `http://127.0.0.1:${router.port(place)}/`;

test.beforeAll(async () => {
  const users = usersFile({ admin: PASSWORD, reader: PASSWORD, bert: PASSWORD, guest: PASSWORD });
  const login = { saslMechanisms: "PLAIN", authenticatePeer: true, allowInsecurePlain: "loopback" };
  router = await startRouter(
    section("router", { id: "P", mode: "standalone", usersFile: users, authDelayAfter: 1000 }) +
      consoleListener(login) +
      consoleListener({ ...login, multiTenant: true }) +
      amqpListener(login) +
      amqpListener({ host: "0.0.0.0" }) +
      section("sslProfile", { name: "gone", certFile: "/nonexistent/cert.pem", privateKeyFile: "/nonexistent/key.pem" }) +
      section("listener", { name: "unserved", host: "127.0.0.1", port: 0, sslProfile: "gone" }) +
      section("policy", { enableVhostPolicy: true }) +
      `vhost { hostname: $default, allowUnknownUser: yes, groups: {
         admins: { users: admin, ${GROUP}, management: admin }
         readers: { users: reader, ${GROUP}, management: read }
         $default: { users: *, remoteHosts: *, sources: news, targets: news }
       } }
       vhost { hostname: acme.example, groups: {
         staff: { users: bert, ${GROUP}, management: read }
       } }`,
  );
});

test.afterAll(() => router.stop());

async function logIn(page: Page, place: number, route: string, user: string, host = ""): Promise<void> {
  await page.goto(`${url(place)}#${route}`);
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill(PASSWORD);
  if (host !== "") await page.getByLabel("Virtual host or tenant").fill(host);
  await page.getByRole("button", { name: "Log in" }).click();
}

/** Cause two denials: a login with a wrong password, and a sender to an address that the policy denies. */
async function denyTwice(): Promise<void> {
  const port = router.port(2);
  await new Promise<void>((resolve) => {
    const container = rhea.create_container({ id: "intruder" });
    container.once("disconnected", () => resolve());
    container.once("connection_error", () => resolve());
    container.on("error", () => undefined);
    container.connect({ host: "127.0.0.1", port, username: "mallory", password: "guess", reconnect: false });
  });
  const client = await connectTo(router.port(3), "nosy");
  const sender = client.open_sender({ target: { address: "secrets" } });
  await new Promise<void>((resolve) => sender.once("sender_close", () => resolve()));
  client.close();
}

test("an admin sees vhosts, groups, users, new denials and explained decisions", async ({ page }) => {
  const wrong = watch(page);
  await logIn(page, 0, "/policy", "admin");
  await expect(page.getByRole("heading", { level: 1, name: "Policy" })).toBeVisible();
  const vhosts = page.getByRole("grid", { name: "Vhosts" });
  await expect(vhosts.getByText("acme.example")).toBeVisible();
  await vhosts.getByText("acme.example").click();
  await expect(page.getByRole("region", { name: "Group staff" })).toContainText("bert");
  await expect(page.getByRole("grid", { name: "Connected users" }).getByText("admins")).toBeVisible();
  await inspect(page, "policy-vhosts");

  await page.getByRole("tab", { name: "Denials" }).click();
  await denyTwice();
  const denials = page.getByRole("grid", { name: "Denials" });
  await expect(denials.getByText("mallory")).toBeVisible();
  await expect(denials.getByText("secrets")).toBeVisible();
  await expect(denials.getByText("$default:$default:targets:none")).toBeVisible();
  await inspect(page, "policy-denials");

  await page.getByRole("tab", { name: "Explain" }).click();
  await page.getByLabel("Vhost").fill("acme.example");
  await page.getByLabel("User").fill("guest");
  await page.getByRole("button", { name: "Explain" }).click();
  await expect(page.getByText("Denied by acme.example:no-group")).toBeVisible();
  await page.getByLabel("User").fill("bert");
  await page.getByLabel("Operation").selectOption("target");
  await page.getByLabel("Address").fill("orders");
  await page.getByRole("button", { name: "Explain" }).click();
  await expect(page.getByText("Allowed by acme.example:staff:targets:1")).toBeVisible();
  await inspect(page, "policy-explain");
  expect(wrong).toEqual([]);
});

test("the overview reports a denied login and unserved configuration", async ({ page }) => {
  await denyTwice();
  await logIn(page, 0, "/overview", "admin");
  const alarms = page.getByRole("list", { name: "Alarms" });
  await expect(alarms.getByRole("link", { name: /2 parts of the configuration are not served/ })).toBeVisible();
  await expect(alarms.getByRole("link", { name: /logins? w(as|ere) denied/ })).toBeVisible();
  await expect(page.getByRole("list", { name: "Findings" })).toContainText("will open, and no TLS handshake with it will succeed");
  await inspect(page, "overview-policy");
  await alarms.getByRole("link", { name: /logins? w(as|ere) denied/ }).click();
  await expect(page.getByRole("grid", { name: "Denials" }).getByText("mallory")).toBeVisible();
});

test("a login that may only read sees the pages without buttons for changes", async ({ page }) => {
  await logIn(page, 0, "/policy", "reader");
  await expect(page.getByRole("grid", { name: "Vhosts" }).getByText("acme.example")).toBeVisible();
  await openConsole(page, url(0), "/overview", "Overview");
  await expect(page.getByRole("button", { name: /Close|Delete|Create/ })).toHaveCount(0);
  await openConsole(page, url(0), "/address?name=news", "Address news");
  await expect(page.getByRole("list", { name: "Explanations" }).getByText(/unknown address/)).toBeVisible();
});

test("a tenant's login sees its own entities, and a message in place of forbidden ones", async ({ page }) => {
  const wrong = watch(page);
  await logIn(page, 1, "/overview", "bert", "acme.example");
  await expect(page.getByRole("heading", { level: 1, name: "Overview" })).toBeVisible();
  await expect(page.getByText("Not allowed: the policy does not show this to your login.").first()).toBeVisible();
  await inspect(page, "overview-tenant");
  await openConsole(page, url(1), "/policy", "Policy");
  await expect(page.getByText("Not allowed: the policy does not show this to your login.").first()).toBeVisible();
  await openConsole(page, url(1), "/address?name=news", "Address news");
  await expect(page.getByText(/does not explain this to your login/)).toBeVisible();
  await inspect(page, "address-tenant");
  expect(wrong).toEqual([]);
});
