import { expect, openConsole, test, watch } from "./support";
import { startLargeNetwork, type LargeNetwork } from "./support/large";

const ROUTERS = 100;
const CLIENTS = 10_000;

let large: LargeNetwork;

test.beforeAll(async () => {
  large = await startLargeNetwork(ROUTERS, CLIENTS);
});

test.afterAll(() => large.stop());

/** Run `act` and return the durations of the frames meanwhile, in ms, the shortest first. */
async function frames(page: Parameters<typeof watch>[0], act: () => Promise<void>): Promise<readonly number[]> {
  await page.evaluate(() => {
    const seen: number[] = [];
    (window as unknown as { seen: number[] }).seen = seen;
    const frame = (at: number): void => {
      seen.push(at);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await act();
  const seen = await page.evaluate(() => (window as unknown as { seen: number[] }).seen);
  return seen.slice(1).map((at, index) => at - (seen[index] ?? at)).sort((one, other) => one - other);
}

test("a picture of 100 routers and 10,000 clients is drawn, zoomed and moved", async ({ page }) => {
  const wrong = watch(page);
  await openConsole(page, large.url, "/topology", "Topology");
  await expect(page.getByText(`${String(ROUTERS)} routers, 1 broker, 10000 clients`)).toBeVisible();
  await expect(page.locator('[data-node^="router:"]')).toHaveCount(ROUTERS);
  await expect(page.locator('[data-node^="clients:"]')).toHaveCount(2 * ROUTERS);
  const box = await page.locator(".topology-picture > svg").boundingBox();
  if (box === null) throw new Error("the picture is not drawn");
  const [x, y] = [box.x + 30, box.y + 30];
  const took = await frames(page, async () => {
    for (let turn = 0; turn < 5; turn += 1) {
      await page.mouse.move(x, y);
      await page.mouse.down();
      await page.mouse.move(x + 200, y + 100, { steps: 30 });
      await page.mouse.up();
      await page.mouse.wheel(0, turn % 2 === 0 ? -200 : 200);
    }
  });
  const at = (part: number): string => `${String(Math.round(took[Math.floor(took.length * part)] ?? 0))} ms`;
  test.info().annotations.push({ type: "frames", description: `${String(took.length)}, median ${at(0.5)}, 95 % ${at(0.95)}, longest ${at(0.999)}` });
  await page.getByRole("button", { name: "Show all" }).click();
  await expect(page.locator('[data-node^="broker:"] .label')).toHaveText(/^"'><script>alert/);
  expect(wrong).toEqual([]);
});

test("the list of a large network scrolls, and a group of clients opens", async ({ page }) => {
  await openConsole(page, large.url, "/topology?node=clients%3Arouter%3Ar007%2Fconsumer", "Topology");
  const panel = page.getByRole("complementary", { name: "Selected" });
  await expect(panel.getByRole("heading", { name: "50 consumers at router r007" })).toBeVisible();
  await panel.getByText("client-701", { exact: true }).click();
  await expect(panel.getByRole("heading", { name: "Links of client-701" })).toBeVisible();
  await page.getByRole("button", { name: "List", exact: true }).click();
  await expect(page.getByRole("grid", { name: "Connections" })).toBeVisible();
});

test("flows of a large network are drawn with the smallest ones merged", async ({ page }) => {
  await openConsole(page, large.url, "/flow?by=address&view=sankey&measure=total", "Message flow");
  await expect(page.getByRole("img", { name: /Sankey/ })).toBeVisible();
  await expect(page.locator("text.flow-label", { hasText: "others" }).first()).toBeVisible();
});
