import type { Connection } from "rhea";

import { connectTo, expect, inspect, test } from "./support";

/** A hostile name of a container or an address. */
const NAMES = {
  script: `<script>window.hit=1</script><img src=x onerror="window.hit=1">`,
  quotes: `"quo'ted" {{7*7}} \${7*7} &lt;b&gt;`,
  bidi: "gnp\u202excod.exe\u2066\u200b",
  control: "bell\u0007null\u0000esc\u001b[31mline\nend",
} as const;

/** About the longest address that the router accepts; it refuses a container id or link name of 10 kB. */
const LONG = `long-${"x".repeat(1_800)}-end`;

const connections: Connection[] = [];

test.beforeAll(async ({ network }) => {
  for (const name of Object.values(NAMES)) {
    const connection = await connectTo(network.a.port(), name);
    connections.push(connection);
    // A subscriber adds the address to the table; the router refuses addresses with a null character.
    connection.on("receiver_error", () => undefined);
    connection.open_receiver({ source: { address: `hostile/${name}` } });
  }
  connections[0]?.open_receiver({ source: { address: LONG } });
});

test.afterAll(() => connections.forEach((connection) => connection.close()));

test.afterEach(async ({ page }) => {
  expect(await page.evaluate(() => "hit" in window)).toBe(false);
});

test("hostile names are shown as text with invisible characters written out", async ({ open, page }) => {
  await open("/entities/connection?router=A", "Entities");
  const grid = page.getByRole("grid", { name: "connection" });
  await expect(grid.getByText("<script>window.hit=1</script>", { exact: false })).toBeVisible();
  await expect(grid.getByText(`"quo'ted" {{7*7}} \${7*7} &lt;b&gt;`)).toBeVisible();
  await expect(grid.getByText("gnp<U+202E>xcod.exe<U+2066><U+200B>")).toBeVisible();
  await expect(grid.getByText("bell<U+0007>null<NUL>esc<U+001B>[31mline<LF>end")).toBeVisible();
  await inspect(page, "hostile-table");
});

test("a long name is cut in a table and shown in full in a detail", async ({ open, page }) => {
  await open("/entities/router.address?router=A&filter=long-xxx", "Entities");
  const row = page.getByRole("grid", { name: "router.address" }).getByRole("row").nth(1);
  await expect(row.getByText(/long-x+…$/).first()).toBeVisible();
  await row.click();
  await expect(page.getByRole("definition").filter({ hasText: /long-x+-end/ }).first()).toBeVisible();
  await inspect(page, "hostile-detail");
});

test("hostile addresses and log lines do not break the layout", async ({ open, page }) => {
  await open("/entities/router.address?router=A&filter=hostile", "Entities");
  const grid = page.getByRole("grid", { name: "router.address" });
  await expect(grid.getByText("<script>window.hit=1</script>", { exact: false }).first()).toBeVisible();
  await expect(grid.getByText("gnp<U+202E>xcod.exe", { exact: false }).first()).toBeVisible();
  await open("/logs?router=A&filter=hit=1", "Logs");
  await expect(page.getByRole("grid", { name: "Log entries" })).toBeVisible();
  await inspect(page, "hostile-logs");
});

test("a URL with a hostile entity, router and identity shows that they do not exist", async ({ open, page }) => {
  const evil = encodeURIComponent(NAMES.script + NAMES.bidi);
  await open(`/entities/${evil}?router=${evil}&identity=${evil}`, "Entities");
  await expect(page.getByText(/^There is no <script>/)).toBeVisible();
  // An escape that decodes to no text.
  await open("/entities/%E0%A4%A", "Entities");
  await expect(page.getByText("There is no %E0%A4%A.")).toBeVisible();
  await open("/schema/%E0%A4%A", "Schema");
});

test("the Address page shows a hostile address as text", async ({ open, page }) => {
  await open(`/address?name=${encodeURIComponent(`hostile/${NAMES.script}`)}`, /Address hostile\/<script>/);
  await expect(page.getByRole("grid", { name: "Consumers" }).getByRole("row").nth(1)).toBeVisible();
  await open(`/address?name=${encodeURIComponent(`hostile/${NAMES.bidi}`)}`, /Address hostile\/gnp<U\+202E>xcod\.exe/);
  await inspect(page, "hostile-address");
});
