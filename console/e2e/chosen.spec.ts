/** Names that real clients choose in logins, opens and attaches: the console shows them as text. */

import rhea, { type Connection } from "rhea";

import { amqpListener, consoleListener, expect, openConsole, section, startRouter, test, usersFile, watch, type RunningRouter } from "./support";

const HOSTILE = `chosen <script>window.hit=1</script><img src=x onerror="window.hit=1">`;
const USER = `u<img src=x onerror="window.hit=1">`;

let router: RunningRouter;
let opened: Connection;

/** Log in with a password and a hostile hostname; wait until the router has accepted or refused it. */
async function logIn(username: string, password: string): Promise<Connection> {
  const properties = { product: HOSTILE, version: HOSTILE, [HOSTILE]: HOSTILE };
  const container = rhea.create_container({ id: HOSTILE });
  const connection = container.connect({
    host: "127.0.0.1", port: router.port(), username, password, reconnect: false, hostname: HOSTILE, properties,
  });
  await new Promise<void>((resume) => {
    for (const event of ["connection_open", "connection_error", "disconnected"]) connection.once(event, () => resume());
  });
  connection.on("disconnected", () => undefined);
  connection.on("error", () => undefined);
  return connection;
}

test.beforeAll(async () => {
  const users = usersFile({ [USER]: "secret" });
  const login = { saslMechanisms: "PLAIN", authenticatePeer: true, allowInsecurePlain: "loopback" };
  router = await startRouter(
    section("router", { id: "U", mode: "standalone", usersFile: users }) + amqpListener(login) + consoleListener(),
  );
  opened = await logIn(USER, "secret");
  const attached = new Promise<void>((resume) => opened.once("receiver_open", () => resume()));
  opened.open_receiver({ name: HOSTILE, source: { address: HOSTILE } });
  await attached;
  await logIn(`${USER}unknown`, "wrong");
});

test.afterAll(async () => {
  opened.close();
  await router.stop();
});

const PLACES = [
  { route: "/entities/connection?filter=chosen", heading: "Entities", row: true, shown: "chosen <script>" },
  { route: "/entities/connection?filter=chosen", heading: "Entities", row: true, shown: "u<img src=x" },
  { route: "/entities/router.link?filter=chosen", heading: "Entities", row: true, shown: "chosen <script>" },
  { route: "/logs?filter=unknown", heading: "Logs", row: false, shown: "<img src=x" },
  { route: "/policy/denials", heading: "Policy", row: false, shown: "<img src=x" },
] as const;

test("users, hostnames, properties, links and failed logins are shown as text", async ({ page }) => {
  const wrong = watch(page);
  for (const { route, heading, row, shown } of PLACES) {
    await test.step(`${route} ${shown}`, async () => {
      await openConsole(page, `http://127.0.0.1:${router.port(1)}/`, route, heading);
      if (row) await page.getByRole("grid").getByRole("row").nth(1).click();
      await expect(page.getByText(shown, { exact: false }).first()).toBeVisible();
      expect(await page.evaluate(() => "hit" in window)).toBe(false);
    });
  }
  expect(wrong).toEqual([]);
});
