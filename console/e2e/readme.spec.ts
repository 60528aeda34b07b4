/** The README's chapter about the first message: its commands are run as they are, and the console shows the address. */

import { execFile, execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";

import { expect, openConsole, PYTHON, ROOT, startRouter, test, watch } from "./support";

/** The commands of each block of the README's chapter about the first message. */
const BLOCKS = (/\n## A first message\n([\s\S]*?)\n## /.exec(readFileSync(join(ROOT, "README.md"), "utf8"))?.[1] ?? "")
  .split("```console\n")
  .slice(1)
  .map((block) => [...block.matchAll(/^\$ (.*)/gm)].map(([, command]) => command).join("\n"));

/** The configuration that `make run` serves, on free ports. */
const configuration = (): string =>
  execFileSync(PYTHON, ["-c", "from trouter.config.load import DEFAULT_TEXT; print(DEFAULT_TEXT)"], { cwd: ROOT, encoding: "utf8" })
    .replaceAll("port: amqp", "port: 0")
    .replaceAll("port: 5680", "port: 0");

test("the console shows the first message of the README's steps", async ({ page }) => {
  const wrong = watch(page);
  expect(BLOCKS).toHaveLength(2);
  const [greeting = "", flow = ""] = BLOCKS;
  const router = await startRouter(configuration());
  const path = `${dirname(PYTHON)}${delimiter}${process.env["PATH"] ?? ""}`;
  const env = { ...process.env, PATH: path, TROUTER_BUS: `127.0.0.1:${router.port(0)}` };
  const { stdout } = await promisify(execFile)("bash", ["-c", greeting], { env });
  expect(stdout).toBe("Hello, world\n");

  // A process group of its own, so that the test can end all processes in it.
  const flowing = spawn("bash", ["-c", flow], { env, stdio: "ignore", detached: true });
  await openConsole(page, `http://127.0.0.1:${router.port(1)}/`, "/overview", "Overview");
  const row = page.getByRole("grid", { name: "Most active addresses" }).getByRole("row", { name: /greetings/ });
  const [incoming, outgoing, consumers] = [1, 2, 3].map((place) => row.getByRole("gridcell").nth(place));
  await expect(incoming ?? row).toHaveText(/^[1-9]/);
  await expect(outgoing ?? row).toHaveText(/^[1-9]/);
  await expect(consumers ?? row).toHaveText("1");
  await row.getByRole("link", { name: "greetings" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Address greetings" })).toBeVisible();
  for (const name of ["Producers", "Consumers"]) await expect(page.getByRole("grid", { name }).getByRole("row")).toHaveCount(2);
  if (flowing.pid !== undefined) process.kill(-flowing.pid);
  await router.stop();
  expect(wrong).toEqual([]);
});
