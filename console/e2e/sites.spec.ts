/** Pages of other sites in the same browser: they can neither frame the console, nor act through it, nor read what the listener shows. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { chromium, type Page } from "@playwright/test";

import { consoleListener, expect, section, startRouter, test, type RunningRouter } from "./support";

/** A name that its owner makes lead to the router. */
const REBOUND = "evil.example";

let router: RunningRouter;
let site: Server;
let evil: string;

test.beforeAll(async () => {
  const strict = consoleListener({ webSocketOrigins: "none", allowedHosts: "none" });
  router = await startRouter(section("router", { id: "S", mode: "standalone" }) + strict);
  site = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end("<!doctype html><title>evil</title>"));
  await new Promise<void>((resume) => site.listen(0, "127.0.0.1", resume));
  evil = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
});

test.afterAll(async () => {
  site.close();
  await router.stop();
});

const own = (): string => `http://127.0.0.1:${router.port()}/`;

/** Return whether a page can open a WebSocket at the URL. */
const opens = (page: Page, url: string): Promise<boolean> =>
  page.evaluate(
    (to) =>
      new Promise<boolean>((resolve) => {
        const socket = new WebSocket(to, "amqp");
        socket.onopen = () => resolve(true);
        socket.onerror = () => resolve(false);
      }),
    url.replace("http:", "ws:"),
  );

test("another site cannot show the console in a frame", async ({ page }) => {
  await page.goto(evil);
  for (const path of ["", "metrics", "healthz"]) {
    await page.evaluate((url) => {
      const frame = document.createElement("iframe");
      frame.src = url;
      document.body.replaceChildren(frame);
    }, own() + path);
    await expect.poll(() => page.frames().map((frame) => frame.url())).toContain("chrome-error://chromewebdata/");
  }
});

test("another site reads no page, changes nothing, and opens no WebSocket", async ({ page }) => {
  await page.goto(evil);
  for (const path of ["", "metrics", "readyz"]) {
    const read = await page.evaluate((url) => fetch(url).then(() => true, () => false), own() + path);
    expect(read).toBe(false);
  }
  for (const method of ["POST", "PUT", "DELETE"]) expect((await fetch(own(), { method })).status).toBe(405);
  expect(await opens(page, own())).toBe(false);
  await router.waitForLine(/WebSocket from \S+ refused: its origin http:\/\/127\.0\.0\.1:\d+ is neither/);
  await page.goto(own());
  expect(await opens(page, own())).toBe(true);
});

test("a site whose name leads to the router reads no page and opens no WebSocket", async () => {
  const options = test.info().project.use.launchOptions ?? {};
  const args = [...(options.args ?? []), `--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`];
  const browser = await chromium.launch({ ...options, args });
  const page = await browser.newPage();
  const rebound = own().replace("127.0.0.1", REBOUND);
  for (const path of ["", "metrics"]) expect((await page.goto(rebound + path))?.status()).toBe(421);
  expect(await opens(page, rebound)).toBe(false);
  await browser.close();
});
