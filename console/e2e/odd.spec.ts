/** Management nodes that answer late, in part, in another order, or never; one with Qpid Dispatch's recorded answers; a clock that jumps. */

import type { Message } from "rhea";

import { expect, openConsole, startRouter, test, watch } from "./support";
import { startNode, type Answer } from "./support/large";
import { qpidDispatch } from "./support/older";
import { consoleListener, section } from "./support/router";

const PREFIX = "org.apache.qpid.dispatch.";
const LATE_MS = 2_000;
/** The tables of a small node. */
const FEW: Readonly<Record<string, readonly string[]>> = {
  router: ["id", "mode", "version", "identity"],
  connection: ["identity", "container", "host", "role", "dir"],
  "router.link": ["identity", "linkType", "linkDir", "owningAddr", "connectionId", "deliveryCount"],
  "router.address": ["identity", "key", "name", "distribution", "subscriberCount"],
  "router.node": ["identity", "id", "nextHop", "cost"],
  log: ["identity", "module", "enable"],
};

const wordOf = (message: Message, name: string): string => {
  const properties = (message.application_properties ?? {}) as Readonly<Record<string, unknown>>;
  const word = properties[name];
  return typeof word === "string" ? word : "";
};
const idIn = (address: string): string => /_topo\/0\/(.+)\/\$management/.exec(address)?.[1] ?? "good";

/** Return one row whose cells name the router and the column; refuse types that Qpid Dispatch lacks. */
function plain(address: string, message: Message): { status: number; body: unknown } {
  const id = idIn(address);
  switch (wordOf(message, "operation")) {
    case "GET-MGMT-NODES":
      return { status: 200, body: ["late", "partial", "swapped", "never"].map((other) => `amqp:/_topo/0/${other}/$management`) };
    case "GET-SCHEMA": {
      const types = Object.entries(FEW).map(([name, columns]): [string, unknown] => [
        name,
        {
          fullyQualifiedType: PREFIX + name,
          operations: ["READ"],
          attributes: Object.fromEntries(columns.map((column) => [column, { type: "string" }])),
        },
      ]);
      return { status: 200, body: { prefix: PREFIX, entityTypes: Object.fromEntries(types) } };
    }
    case "QUERY": {
      const columns = FEW[wordOf(message, "entityType").replace(PREFIX, "")];
      if (columns === undefined) return { status: 404, body: {} };
      const cells: Readonly<Record<string, string>> = { role: "normal", dir: "in", mode: "interior", id };
      return { status: 200, body: { attributeNames: columns, results: [columns.map((column) => cells[column] ?? `${column} of ${id}`)] } };
    }
    default:
      return { status: 501, body: {} };
  }
}

const table = (reply: { body: unknown }): { attributeNames: string[]; results: unknown[][] } =>
  reply.body as { attributeNames: string[]; results: unknown[][] };

/** Damage or delay the answers of the routers whose names say how they answer. */
const odd: Answer = (address, message) => {
  const reply = plain(address, message);
  switch (reply.status === 200 && wordOf(message, "operation") === "QUERY" ? idIn(address) : "good") {
    case "late":
      return new Promise((resume) => setTimeout(() => resume(reply), LATE_MS));
    case "partial":
      // A row without its last cells, and an element that is no row.
      return { ...reply, body: { ...table(reply), results: ["rubbish", null, table(reply).results[0]?.slice(0, 3)] } };
    case "swapped":
      return { ...reply, body: { attributeNames: [...table(reply).attributeNames].reverse(), results: table(reply).results.map((row) => [...row].reverse()) } };
    case "never":
      return undefined;
    default:
      return reply;
  }
};

test("routers that answer late, in part, in another order or never do not hide the others", async ({ page }) => {
  const wrong = watch(page);
  const node = await startNode(odd);
  await openConsole(page, node.url, "/entities/connection", "Entities");
  const grid = page.getByRole("grid", { name: "connection" });
  for (const id of ["good", "late", "partial", "swapped"]) {
    await expect(grid.getByText(`container of ${id}`, { exact: true })).toBeVisible();
    await expect(grid.getByText(`host of ${id}`, { exact: true })).toBeVisible();
  }
  await expect(page.getByText("Router never: no answer within 5 s")).toBeVisible();
  await node.stop();
  expect(wrong).toEqual([]);
});

test("every page works with the recorded answers of Qpid Dispatch", async ({ page }) => {
  const wrong = watch(page);
  const node = await startNode(qpidDispatch());
  await page.goto(node.url);
  await expect(page.getByText("Connected to T")).toBeVisible();
  await expect(page.getByRole("grid", { name: "Routers" }).getByText("1.19.0")).toBeVisible();
  for (const link of await page.getByRole("navigation").getByRole("link").all()) {
    await link.click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText((await link.textContent()) ?? "");
  }
  await openConsole(page, node.url, "/address?name=queue", "Address queue");
  await expect(page.getByRole("grid", { name: "Outcomes by router" }).getByText("balanced")).toBeVisible();
  for (const [entity, cell] of [["router.config.autoLink", "queue"], ["router.config.linkRoute", "lr"], ["listener", "127.0.0.1"]] as const) {
    await openConsole(page, node.url, `/entities/${entity}?router=T`, "Entities");
    await expect(page.getByRole("grid", { name: entity }).getByText(cell, { exact: true }).first()).toBeVisible();
  }
  await node.stop();
  expect(wrong).toEqual([]);
});

test("the page keeps working when the clock jumps back and forth", async ({ page }) => {
  const wrong = watch(page);
  await page.clock.install();
  const node = await startNode(plain);
  await openConsole(page, node.url, "/overview", "Overview");
  for (const hours of [-1, 2]) {
    await page.clock.setSystemTime(Date.now() + hours * 3_600_000);
    const before = node.queries();
    await expect.poll(node.queries).toBeGreaterThan(before + 5);
    await expect(page.getByText("Connected to good")).toBeVisible();
  }
  await node.stop();
  expect(wrong).toEqual([]);
});

test("a page whose timers the browser delays keeps its connection", async ({ page }) => {
  await page.clock.install();
  const heartbeats: number[] = [];
  page.on("websocket", (socket) => {
    socket.on("framesent", ({ payload }) => {
      if (payload.length === 8 && payload[3] === 8) heartbeats.push(payload.length);
    });
  });
  const router = await startRouter(section("router", { id: "H", mode: "standalone" }) + consoleListener({ idleTimeoutSeconds: "18" }));
  await openConsole(page, `http://127.0.0.1:${router.port()}/`, "/overview", "Overview");
  await page.clock.pauseAt(Date.now() + 1_000);
  const before = heartbeats.length;
  // The router sends one each 12 s, and closes the connection after 18 s without a frame: two are one more than a page without timers sends.
  await expect.poll(() => heartbeats.length).toBeGreaterThanOrEqual(before + 2);
  await expect(page.getByText("Connected to H")).toBeVisible();
  await router.stop();
});

test("a listener without a policy that other machines reach raises an alarm", async ({ page }) => {
  const open = consoleListener({ host: "0.0.0.0" });
  const router = await startRouter(section("router", { id: "O", mode: "standalone" }) + open);
  await openConsole(page, `http://127.0.0.1:${router.port()}/`, "/overview", "Overview");
  await expect(page.getByRole("list", { name: "Alarms" }).getByText(/^Listener .* is open to other machines/)).toBeVisible();
  await router.stop();
});
