/** Shared by the specs of all pages: `test` with a network that the specs of one worker share, and checks of a page. */

import AxeBuilder from "@axe-core/playwright";
import { expect, test as base, type Page } from "@playwright/test";

import { startNetwork, type Network } from "./network";

export { expect } from "@playwright/test";
export * from "./clients";
export * from "./network";
export * from "./router";

interface Fixtures {
  /** Open the console of the network's router A at a hash route such as "/schema" and wait for its heading. */
  readonly open: (route: string, heading: string | RegExp) => Promise<void>;
}

/** Playwright's test with the network. A page's error, or a request to another host, fails the test. */
export const test = base.extend<Fixtures, { network: Network }>({
  network: [
    // eslint-disable-next-line no-empty-pattern
    async ({}, use) => {
      const network = await startNetwork();
      await use(network);
      await network.stop();
    },
    { scope: "worker" },
  ],
  open: async ({ page, network }, use) => {
    const wrong = watch(page);
    await use(async (route, heading) => {
      await openConsole(page, network.url, route, heading);
    });
    expect(wrong).toEqual([]);
  },
});

/** Open the console that `url` serves at a hash route, and wait for the page's heading. */
export async function openConsole(page: Page, url: string, route: string, heading: string | RegExp): Promise<void> {
  await page.goto(`${url}#${route}`);
  await expect(page.getByRole("heading", { level: 1, name: heading })).toBeVisible();
}

/** Return a list that collects the faults of a page: errors, violations of the content security policy, requests to other hosts. */
export function watch(page: Page): string[] {
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy|Content-Security-Policy/.test(message.text())) {
      wrong.push(message.text());
    }
  });
  page.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (protocol !== "blob:" && hostname !== "127.0.0.1") wrong.push(`request to ${request.url()}`);
  });
  return wrong;
}

/** Wait until the transition of colours has ended: halfway between two themes the contrast is that of neither. */
async function settled(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const ending = document.getAnimations().filter((animation) => animation.effect?.getTiming().iterations !== Infinity);
    await Promise.allSettled(ending.map((animation) => animation.finished));
  });
}

/** Fail if axe has a serious or critical finding about the page. */
export async function expectAccessible(page: Page): Promise<void> {
  await settled(page);
  // Leaving out frames, which the page has not, saves half of axe's time, and leaving out all results but violations a quarter.
  const { violations } = await new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ["violations"] }).analyze();
  const found = violations
    .filter((violation) => violation.impact === "serious" || violation.impact === "critical")
    .map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.target.join(" ")).join(", ")}`);
  expect(found).toEqual([]);
}

/** Colours depend on the theme and layout on the size, so two variants cover both themes and both sizes. */
const VARIANTS = [
  { name: "dark-phone", theme: "dark", size: { width: 390, height: 844 } },
  { name: "light-desk", theme: "light", size: { width: 1280, height: 800 } },
] as const;

/** Return the elements that scroll sideways, without tables. */
const scrolledSideways = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll(":root, :root *:not(.console-scroll, textarea)")]
      .filter((part) => part.scrollWidth > part.clientWidth + 1)
      .filter((part) => part === document.documentElement || /auto|scroll/.test(getComputedStyle(part).overflowX))
      .map((part) => `${part.tagName} ${part.className}: ${part.scrollWidth} > ${part.clientWidth}`),
  );

/** Check the page's layout in both themes and sizes, and run `check` in each. PICTURES=1 stores screenshots. */
export async function expectLayout(page: Page, name: string, check?: (page: Page) => Promise<void>): Promise<void> {
  for (const { name: variant, theme, size } of VARIANTS) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize(size);
    await check?.(page);
    if (process.env["PICTURES"] !== undefined) await page.screenshot({ path: `test-results/pictures/${name}-${variant}.png` });
    await expect.poll(() => scrolledSideways(page), `${name} is wider than a ${variant}`).toEqual([]);
  }
}

/** Check the page in both themes and sizes: no serious finding of axe, no scrolling sideways. */
export const inspect = (page: Page, name: string): Promise<void> => expectLayout(page, name, expectAccessible);
