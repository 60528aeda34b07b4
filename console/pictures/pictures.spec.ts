/** The pictures of the manual: each page of the console over the network of the demonstration, in both themes. */

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "@playwright/test";

import { PYTHON, ROOT } from "../e2e/support";

const FOLDER = join(ROOT, "docs/images/console");
/** Time for which the pages collect figures before the screenshots, so that rates and charts are not empty. */
const COLLECTING_MS = 20_000;
/** Reduce the colours of the files to 128, which suffice for these pages, to make them small. */
const SHRINK = `
import sys
from PIL import Image
for path in sys.argv[1:]:
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
`;

interface Demonstration {
  readonly process: ChildProcess;
  readonly url: string;
  readonly password: string;
}

/** Start the demonstration, and read the console's URL and the operator's password from its output. */
async function demonstration(): Promise<Demonstration> {
  const child = spawn(PYTHON, ["-m", "trouter", "run", "--demo", "--no-browser"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  for await (const line of createInterface({ input: child.stdout })) {
    text += `${line}\n`;
    if (line.startsWith("Ctrl-C")) break;
  }
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(text)?.[0];
  const password = /^ {2}operator +(\S+)/m.exec(text)?.[1];
  if (url === undefined || password === undefined) throw new Error(`no console was printed:\n${text}`);
  return { process: child, url, password };
}

test("pictures of every page", async ({ page }) => {
  mkdirSync(FOLDER, { recursive: true });
  const shown = await demonstration();
  try {
    await page.goto(shown.url);
    await page.getByLabel("User").fill("operator");
    await page.getByLabel("Password").fill(shown.password);
    await page.getByRole("button", { name: "Log in" }).click();
    const links = page.getByRole("navigation").getByRole("link");
    await expect(links.first()).toBeVisible();
    await page.waitForTimeout(COLLECTING_MS);
    const files: string[] = [];
    for (const link of await links.all()) {
      const name = (await link.innerText()).trim().toLowerCase().replaceAll(/\W+/g, "-");
      await link.click();
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
      await page.waitForTimeout(COLLECTING_MS / 4);
      for (const theme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme: theme });
        const path = join(FOLDER, `${name}-${theme}.png`);
        await page.screenshot({ path, animations: "disabled" });
        files.push(path);
      }
    }
    execFileSync(PYTHON, ["-c", SHRINK, ...files]);
  } finally {
    shown.process.kill("SIGINT");
    await new Promise((resolve) => shown.process.once("close", resolve));
  }
});
