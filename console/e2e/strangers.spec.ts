/** 10 kB of hostile text in every attribute that peers choose, on every page: shown as text, with the layout intact. */

import type { Locator, Page } from "@playwright/test";

import { expect, expectLayout, openConsole, test, watch } from "./support";
import { startNode, type LargeNetwork } from "./support/large";
import { LOGGED, SHOWN, STRANGE, strangers } from "./support/strangers";

type Find = (page: Page) => Locator;
const inGrid = (name: string): Find => (page) => page.getByRole("grid", { name, exact: true }).getByText(SHOWN);
const inPart = (role: "list" | "region" | "complementary" | "definition", name?: string): Find => (page) =>
  page.getByRole(role, name === undefined ? {} : { name }).getByText(SHOWN);
const within = (selector: string): Find => (page) => page.locator(selector).filter({ hasText: /^<script>/ });
const press = (name: string): ((page: Page) => Promise<void>) => (page) => page.getByRole("button", { name, exact: true }).click();
const open = (find: Find): ((page: Page) => Promise<void>) => (page) => find(page).first().click();

interface Place {
  readonly route: string;
  readonly heading: string | RegExp;
  /** Opens the part of the page that is checked. */
  readonly go?: (page: Page) => Promise<void>;
  readonly shown: readonly Find[];
}

const PLACES: readonly Place[] = [
  { route: "/overview", heading: "Overview", shown: [inPart("list", "Alarms"), inPart("list", "Findings"), inGrid("Most active addresses"), inGrid("Routers")] },
  { route: "/network", heading: "Network", shown: [inGrid("Routers of the network")] },
  { route: "/topology", heading: "Topology", shown: [within("svg .label")] },
  { route: "/topology?node=router%3A", heading: "Topology", shown: [] },
  { route: "/topology?view=list", heading: "Topology", shown: [inGrid("Routers, brokers and clients"), inGrid("Connections")] },
  { route: "/flow", heading: "Message flow", shown: [within(".flow-diagram .flow-label"), within(".flow-choice")] },
  { route: "/flow?by=address&view=sankey&measure=total", heading: "Message flow", shown: [within(".flow-diagram .flow-label")] },
  { route: "/flow?view=table&measure=total", heading: "Message flow", shown: [inGrid("Flows")] },
  { route: "/address", heading: "Address", shown: [inGrid("Addresses")] },
  {
    route: `/address?name=${encodeURIComponent(STRANGE)}`,
    heading: /^Address <script>/,
    shown: [inPart("list", "Explanations"), inGrid("Consumers"), inGrid("Producers"), inGrid("Outcomes by router")],
  },
  { route: "/charts", heading: "Charts", shown: [within(".u-legend .u-label")] },
  { route: "/policy", heading: "Policy", shown: [inGrid("Vhosts"), inGrid("Connected users"), inPart("region", "Group <script>")] },
  { route: "/policy/denials", heading: "Policy", shown: [inGrid("Denials")] },
  { route: "/policy/explain", heading: "Policy", go: press("Explain"), shown: [(page) => page.getByText(`Denied by ${SHOWN}`)] },
  { route: "/entities/connection", heading: "Entities", shown: [inGrid("connection"), within(".console-about")] },
  { route: "/entities/connection?identity=0", heading: "Entities", shown: [inPart("definition")] },
  { route: "/entities/connection?identity=1", heading: "Entities", go: press("Close connection"), shown: [] },
  { route: "/entities/listener?do=create", heading: "Entities", go: press("Create"), shown: [(page) => page.locator(".console-entity-form").getByText(SHOWN), within(".pf-v6-c-helper-text")] },
  { route: "/logs", heading: "Logs", go: open(inGrid("Log entries")), shown: [inGrid("Log entries"), inGrid("Entries by module"), inPart("region", "Log entry"), (page) => page.getByRole("grid").getByText(LOGGED)] },
  { route: "/schema/listener", heading: "Schema", shown: [inGrid("Attributes of listener"), within(".console-about p")] },
];

let node: LargeNetwork;

test.beforeAll(async () => {
  node = await startNode(strangers);
});

test.afterAll(() => node.stop());

test("every page shows hostile texts as text and keeps its layout", async ({ page }) => {
  const wrong = watch(page);
  for (const [at, { route, heading, go, shown }] of PLACES.entries()) {
    await test.step(route.slice(0, 60), async () => {
      await openConsole(page, node.url, route, heading);
      await go?.(page);
      for (const find of shown) await expect(find(page).first()).toBeVisible();
      await expectLayout(page, `strangers-${at}`);
    });
  }
  expect(await page.evaluate(() => "hit" in window)).toBe(false);
  expect(wrong).toEqual([]);
});
