/** The console as a listener serves it: the content security policy, logins by certificate, many consoles, a restarted router. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Page } from "@playwright/test";

import { amqpListener, consoleListener, expect, PYTHON, ROOT, section, startRouter, test, watch } from "./support";

/** Add each violation of the content security policy on any page of this browser to the list. */
async function violations(page: Page): Promise<string[]> {
  const refused: string[] = [];
  await page.exposeFunction("noteViolation", (text: string) => refused.push(text));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      const { noteViolation } = window as unknown as { noteViolation: (text: string) => void };
      noteViolation(`${event.violatedDirective} ${event.blockedURI}`);
    });
  });
  return refused;
}

test("every page obeys the content security policy and requests nothing from other hosts", async ({ page, network }) => {
  const refused = await violations(page);
  const wrong = watch(page);
  const answer = await page.goto(network.url);
  expect(answer?.headers()["content-security-policy"]).toContain("script-src 'self'");
  await expect(page.getByText("Connected to A")).toBeVisible();
  const links = await page.getByRole("navigation").getByRole("link").all();
  expect(links.length).toBeGreaterThan(0);
  for (const link of links) {
    await link.click();
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await expect(link).toHaveAttribute("aria-current", "page");
  }
  expect(refused).toEqual([]);
  expect(wrong).toEqual([]);
});

test("the browser refuses inline code", async ({ page, network }) => {
  const refused = await violations(page);
  await page.goto(network.url);
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'run'";
    document.body.append(script);
  });
  await expect.poll(() => refused).toEqual(["script-src-elem inline"]);
  await expect(page).not.toHaveTitle("run");
});

const CONSOLES = 10;
/** The opened connection of a console; the first group is its number. */
const OPENED = /\[C(\d+)\] Connection Opened: .*container_id=trouter-console-/;

test("ten open consoles end their connections when they are closed", async ({ context, network }) => {
  const since = network.a.lines.length;
  const pages: Page[] = [];
  // In turn, so that each step of a busy machine is one that a hang would be seen in.
  while (pages.length < CONSOLES) {
    const page = await context.newPage();
    pages.push(page);
    await page.goto(network.url);
    await network.a.waitForLine(OPENED, { since, count: pages.length });
  }
  for (const page of pages) await expect(page.getByText("Connected to A")).toBeVisible();
  const opened = network.a.lines.slice(since).flatMap((line) => OPENED.exec(line)?.[1] ?? []);
  for (const page of pages) await page.close();
  for (const number of opened) await network.a.waitForLine(new RegExp(`\\[C${number}\\] Connection Closed`), { since });
});

test("the console reconnects to a restarted router", async ({ page }) => {
  const first = await startRouter(section("router", { id: "P", mode: "standalone" }) + consoleListener());
  const port = first.port();
  await page.goto(`http://127.0.0.1:${port}/`);
  await expect(page.getByText("Connected to P")).toBeVisible();
  await first.kill();
  await expect(page.getByText("The connection to the router is lost")).toBeVisible();
  const again = await startRouter(section("router", { id: "P", mode: "standalone" }) + consoleListener({ port }));
  // Check the masthead and not the notice, which may disappear while the router starts.
  await expect(page.getByText("Connected to P")).toBeVisible();
  await again.stop();
});

test("a client certificate of the browser logs in", async () => {
  const folder = mkdtempSync(join(tmpdir(), "console-certs-"));
  const certs = (...words: string[]): Buffer =>
    execFileSync(PYTHON, ["-m", "trouter", "certs", ...words, "--dir", folder], { cwd: ROOT });
  certs("ca");
  certs("server", "server", "--host", "localhost");
  certs("client", "alice");
  const file = (name: string): string => join(folder, name);
  const profile = section("sslProfile", {
    name: "pair",
    certFile: file("server.crt"),
    privateKeyFile: file("server.key"),
    caCertFile: file("ca.crt"),
    uidFormat: "n",
  });
  const listener = { sslProfile: "pair", requireSsl: true, authenticatePeer: true, saslMechanisms: "EXTERNAL" };
  const router = await startRouter(
    section("router", { id: "X", mode: "standalone" }) + profile + amqpListener() + consoleListener(listener),
  );
  const url = `https://localhost:${router.port(1)}`;
  const browser = await chromium.launch(test.info().project.use.launchOptions ?? {});
  const pair = { certPath: file("alice.crt"), keyPath: file("alice.key") };
  const context = await browser.newContext({ ignoreHTTPSErrors: true, clientCertificates: [{ origin: url, ...pair }] });
  const page = await context.newPage();
  await page.goto(url);
  await expect(page.getByText("Connected to X")).toBeVisible();
  await expect(page.getByText("alice", { exact: true })).toBeVisible();
  await browser.close();
  await router.stop();
  rmSync(folder, { recursive: true });
});
