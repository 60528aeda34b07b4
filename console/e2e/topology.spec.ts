import type { Connection } from "rhea";

import { connectTo, expect, inspect, test } from "./support";

const HOSTILE = `"><img src=x onerror=alert(1)>\u202egnp.exe\u0000${"<script>alert(1)</script>".repeat(30)}`;

test("the picture has every router, edge router, broker and group of clients", async ({ open, page, network }) => {
  const broker = await connectTo(network.b.port(), "store", { product: "qpid-cpp" });
  await open("/topology", "Topology");
  const node = (name: RegExp): ReturnType<typeof page.getByRole> => page.getByRole("button", { name });
  for (const name of [/^router A$/, /^router B$/, /^router C$/, /^edge router E$/, /^broker store$/])
    await expect(node(name)).toBeVisible();
  await expect(node(/^2 producers at router A$/)).toBeVisible();
  await expect(node(/^1 producer at edge router E$/)).toBeVisible();
  await expect(page.locator('[data-edge="router:B>router:A"] .label')).toHaveText(/\/s/);
  await inspect(page, "topology");
  broker.close();
  await expect(page.getByText(/gone since/)).toBeVisible();
  await page.getByRole("button", { name: "Remove gone entries" }).click();
  await expect(node(/^broker store/)).toBeHidden();
});

test("nodes keep their places between updates and after a drag", async ({ open, page, network }) => {
  await open("/topology", "Topology");
  const place = (id: string): Promise<string | null> => page.locator(`[data-node="${id}"]`).getAttribute("transform");
  await expect(page.locator('[data-node="clients:edge:E/producer"]')).toBeVisible();
  const before = await Promise.all(["router:A", "router:B", "router:C", "edge:E"].map(place));
  const guest = await connectTo(network.c.port(), "guest");
  await expect(page.locator('[data-node="clients:router:C/idle"]')).toBeVisible();
  expect(await Promise.all(["router:A", "router:B", "router:C", "edge:E"].map(place))).toEqual(before);
  const box = await page.locator('[data-node="router:A"] .shape').boundingBox();
  if (box === null) throw new Error("router A is not drawn");
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 40, y + 30, { steps: 4 });
  await page.mouse.up();
  await expect(page.locator('[data-node="router:A"] .pin')).toBeVisible();
  expect(await place("router:A")).not.toBe(before[0]);
  expect(await place("router:B")).toBe(before[1]);
  await page.getByRole("button", { name: "router A", exact: true }).press("p");
  await expect(page.locator('[data-node="router:A"] .pin')).toBeHidden();
  guest.close();
});

test("a searched address highlights its producers, consumers and paths", async ({ open, page }) => {
  await open("/topology?address=orders", "Topology");
  await expect(page.getByText("orders: 1 producer, 1 consumer, through 2 routers.")).toBeVisible();
  await expect(page.locator('[data-node="clients:router:A/producer"]')).toHaveClass(/part-producer/);
  await expect(page.locator('[data-node="clients:router:C/consumer"]')).toHaveClass(/part-consumer/);
  await expect(page.locator('[data-node="edge:E"]')).toHaveClass(/part-dim/);
  await expect(page.locator('[data-edge="router:C>router:A"] .way')).toBeVisible();
  await inspect(page, "topology-address");
  const search = page.getByLabel("Address whose messages to show");
  await search.fill("bids");
  await search.press("Enter");
  await expect(page.getByText("bids: 1 producer, 1 consumer, through 1 router.")).toBeVisible();
  await expect(page).toHaveURL(/address=bids/);
  await expect(page.locator('[data-edge="edge:E>router:B"] .way')).toBeVisible();
});

test("the keyboard reaches a router's attributes and connections in the picture", async ({ open, page }) => {
  await open("/topology", "Topology");
  const home = page.getByRole("button", { name: "router A", exact: true });
  await expect(page.getByRole("button", { name: "router C", exact: true })).toBeVisible();
  await home.focus();
  const walked = new Set<string>();
  for (const key of ["ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown", "ArrowRight"]) {
    await page.keyboard.press(key);
    walked.add(await page.evaluate(() => document.activeElement?.getAttribute("data-node") ?? ""));
  }
  expect(walked.size).toBeGreaterThan(2);
  await page.getByRole("button", { name: "router B", exact: true }).focus();
  await expect(page.getByText("A → B, cost 1")).toBeVisible();
  await page.keyboard.press("Enter");
  const panel = page.getByRole("complementary", { name: "Selected" });
  await expect(panel.getByRole("heading", { name: "router B" })).toBeVisible();
  await expect(panel.getByText("workerThreads")).toBeVisible();
  await inspect(page, "topology-router");
  await panel.getByRole("button", { name: /^from edge router E$/ }).press("Enter");
  await expect(page).toHaveURL(/node=edge(:|%3A)E(>|%3E)router/);
  await expect(panel.getByText("isEncrypted")).toBeVisible();
});

test("a click on a group of clients lists them, and a click on a client its links", async ({ open, page }) => {
  await open("/topology?node=clients%3Arouter%3AA%2Fproducer", "Topology");
  const panel = page.getByRole("complementary", { name: "Selected" });
  await expect(panel.getByRole("heading", { name: "2 producers at router A" })).toBeVisible();
  await panel.getByText("writer-orders").click();
  await expect(panel.getByRole("heading", { name: "Links of writer-orders" })).toBeVisible();
  await expect(panel.getByText("orders", { exact: true })).toBeVisible();
  await expect(panel.getByText("sends", { exact: true })).toBeVisible();
  await inspect(page, "topology-clients");
});

test("the list has the same facts as the picture", async ({ open, page }) => {
  await open("/topology?view=list&address=orders", "Topology");
  const nodes = page.getByRole("grid", { name: "Routers, brokers and clients" });
  await expect(nodes.getByText("router C", { exact: true }).first()).toBeVisible();
  await expect(nodes.getByText("2 consumers at router C")).toBeVisible();
  await expect(nodes.getByText("producer", { exact: true })).toBeVisible();
  const edges = page.getByRole("grid", { name: "Connections" });
  await expect(edges.getByText("inter-router", { exact: true }).first()).toBeVisible();
  await inspect(page, "topology-list");
});

test("a killed router is shown as gone until it is back", async ({ open, page, network }) => {
  await open("/topology", "Topology");
  await expect(page.getByRole("button", { name: "router C", exact: true })).toBeVisible();
  const [b, moment] = [page.locator('[data-node="router:B"]'), Date.now()];
  const before = await b.getAttribute("transform");
  await network.c.kill();
  await expect(page.getByRole("button", { name: "router C, gone" })).toBeVisible();
  test.info().annotations.push({ type: "gone after", description: `${String(Date.now() - moment)} ms` });
  await expect(page.getByText(/gone since/)).toBeVisible();
  expect(await b.getAttribute("transform")).toBe(before);
  await inspect(page, "topology-gone");
  await network.restartC();
  await expect(page.getByRole("button", { name: "router C", exact: true })).toBeVisible();
  await expect(page.getByText(/gone since/)).toBeHidden();
});

test("hostile names are shown as text", async ({ open, page, network }) => {
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  const hostile: Connection = await connectTo(network.b.port(), HOSTILE, { product: "qpid-cpp" });
  // The router refuses control characters in an address.
  hostile.open_receiver(HOSTILE.replaceAll("\0", ""));
  await open("/topology", "Topology");
  const mark = page.locator('[data-node^="broker:"]');
  await expect(mark.locator(".label")).toHaveText(/^"><img src=x onerror=/);
  const width = await mark.evaluate((element) => element.getBoundingClientRect().width);
  expect(width).toBeLessThan(400);
  await mark.click();
  const panel = page.getByRole("complementary", { name: "Selected" });
  await expect(panel.getByRole("heading", { level: 2 })).toContainText('broker "><img src=x onerror=alert(1)><U+202E>gnp.exe');
  await inspect(page, "topology-hostile");
  expect(dialogs).toEqual([]);
  hostile.close();
});
