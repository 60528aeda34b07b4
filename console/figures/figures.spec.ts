/** Measurements of the console's cost and speed. They are printed, and no test checks them. */

import { execFile, execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";
import { expect, type Browser, type Page } from "@playwright/test";
import rhea, { type Source } from "rhea";

import { amqpListener, connectTo, consoleListener, PYTHON, ROOT, section, startRouter, test, type RunningRouter } from "../e2e/support";

const TICKS_PER_S = 100;
const MEASURED_S = 20;
const ROWS = 10_000;
const run = promisify(execFile);

/** Restrict a process, and the processes that it starts from now on, to these cores. */
function pin(pid: number, cores: string): void {
  execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", cores, String(pid)]);
}

const CORES = availableParallelism();
const ROUTERS_CORE = "0";
// The load has a core of its own, and so have the browsers if the machine has three.
const LOADS_CORE = CORES > 1 ? "1" : "0";
// Processes that are started here, such as the browser, inherit the cores.
if (CORES > 1) pin(process.pid, CORES > 2 ? `2-${CORES - 1}` : "1");

/** Start a standalone router with a listener for clients and one for consoles, on the routers' core. */
async function startAlone(id: string): Promise<RunningRouter> {
  const router = await startRouter(section("router", { id, mode: "standalone" }) + amqpListener() + consoleListener());
  pin(router.pid, ROUTERS_CORE);
  return router;
}

/** Return the CPU time that a process has used, in s. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S;
}

/** Return the share of a core that a process uses over some time, in percent. */
async function load(pid: number): Promise<number> {
  const before = cpuOf(pid);
  await new Promise((resume) => setTimeout(resume, MEASURED_S * 1000));
  return ((cpuOf(pid) - before) / MEASURED_S) * 100;
}

const median = (values: readonly number[]): number =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;

function report(title: string, value: number, unit: string): void {
  process.stdout.write(`${title}: ${value.toFixed(2)} ${unit}\n`);
}

async function connected(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await expect(page.getByText("Connected to")).toBeVisible();
}

interface Throughput {
  readonly perSecond: number;
  /** Messages for each second of CPU time that the router used meanwhile, including its other work. */
  readonly perCpuSecond: number;
}

/** Send messages through a router at full speed, from one sender to one receiver. */
async function throughput(router: RunningRouter): Promise<Throughput> {
  const words = ["-c", LOADS_CORE, PYTHON, "-m", "trouter", "bench", "pair", "--port", String(router.port()), "--seconds", "5", "--json"];
  const before = cpuOf(router.pid);
  const { stdout } = await run("taskset", words, { cwd: ROOT });
  const used = cpuOf(router.pid) - before;
  const report = JSON.parse(stdout) as { send: { messages_per_second: number; messages: number } };
  return { perSecond: report.send.messages_per_second, perCpuSecond: report.send.messages / used };
}

async function openConsoles(browser: Browser, url: string, count: number): Promise<() => Promise<void>> {
  const context = await browser.newContext();
  for (let number = 0; number < count; number += 1) await connected(await context.newPage(), url);
  return () => context.close();
}

test("first view", async ({ browser, network }) => {
  const took: number[] = [];
  for (let turn = 0; turn < 7; turn += 1) {
    const page = await browser.newPage();
    const begun = performance.now();
    await connected(page, network.url);
    took.push(performance.now() - begun);
    await page.close();
  }
  report("first view, median of 7, nothing cached", median(took) / 1000, "s");
});

test("one browser on three routers", async ({ browser, network }) => {
  const alone = await load(network.a.pid);
  const close = await openConsoles(browser, network.url, 1);
  const watched = await load(network.a.pid);
  await close();
  report("router asked by one browser, beyond its traffic", watched - alone, "% of a core");
});

test("a hundred routers polled each second through one router", async ({ network }) => {
  const connection = await connectTo(network.a.port(), "figures");
  const receiver = connection.open_receiver({ source: { dynamic: true } as Source });
  await new Promise((resume) => connection.once("receiver_open", resume));
  const sender = connection.open_sender({});
  await new Promise((resume) => connection.once("sendable", resume));
  const alone = await load(network.a.pid);
  const ask = (): void => {
    for (let router = 0; router < 100; router += 1) {
      for (const entityType of ["connection", "router.link"]) {
        sender.send({
          to: "_topo/0/B/$management",
          reply_to: receiver.source.address,
          correlation_id: entityType,
          application_properties: { operation: "QUERY", type: "org.amqp.management", name: "self", entityType: `org.apache.qpid.dispatch.${entityType}` },
          body: { attributeNames: rhea.types.wrap_list([]) },
        });
      }
    }
  };
  let replies = 0;
  connection.on("message", () => (replies += 1));
  const timer = setInterval(ask, 1000);
  const withPolls = await load(network.a.pid);
  clearInterval(timer);
  expect(replies).toBeGreaterThan(MEASURED_S * 100);
  connection.close();
  report("router asked, passing on two tables of each of 100 routers at 1 Hz", withPolls - alone, "% of a core");
});

test("ten consoles cost the router", async ({ browser }) => {
  const router = await startAlone("T");
  const url = `http://127.0.0.1:${router.port(1)}/`;
  const alone = await load(router.pid);
  const close = await openConsoles(browser, url, 10);
  const watched = await load(router.pid);
  await close();
  report("router asked by ten consoles on the Overview page, without other load", watched - alone, "% of a core");
  await router.stop();
});

test("throughput beside ten consoles", async ({ browser }) => {
  const router = await startAlone("T");
  const rates: number[] = [];
  const capacities: number[] = [];
  for (let turn = 0; turn < 5; turn += 1) {
    const alone = await throughput(router);
    const close = await openConsoles(browser, `http://127.0.0.1:${router.port(1)}/`, 10);
    const beside = await throughput(router);
    await close();
    rates.push(beside.perSecond / alone.perSecond);
    capacities.push(beside.perCpuSecond / alone.perCpuSecond);
  }
  await router.stop();
  report("messages for each CPU second of the router beside ten consoles to those without, median of 5", median(capacities), "x");
  const shared = CORES > 2 ? "" : ", where the browsers share a core with the load";
  report(`messages a second beside ten consoles to those without${shared}, median of 5`, median(rates), "x");
});

test("scrolling a table", async ({ page }) => {
  const router = await startAlone("S");
  const connection = await connectTo(router.port(), "rows");
  for (let row = 0; row < ROWS; row += 1) connection.open_receiver({ source: `rows/${row}`, credit_window: 0 });
  await router.waitForLine(new RegExp(`rows/${ROWS - 1} `));
  await page.goto(`http://127.0.0.1:${router.port(1)}/#/entities/router.address`);
  const cell = page.getByRole("gridcell", { name: /rows\// }).first();
  await expect(cell).toBeVisible();
  await page.evaluate(() => {
    const seen: number[] = [];
    (window as unknown as { seen: number[] }).seen = seen;
    const frame = (at: number): void => {
      seen.push(at);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await cell.hover();
  for (let turn = 0; turn < 200; turn += 1) await page.mouse.wheel(0, 400);
  const seen = await page.evaluate(() => (window as unknown as { seen: number[] }).seen);
  const took = ((seen.at(-1) ?? 0) - (seen[0] ?? 0)) / 1000;
  connection.close();
  await router.stop();
  report(`frames a second while a table of ${ROWS} rows scrolls`, (seen.length - 1) / took, "");
});
