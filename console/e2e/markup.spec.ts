/** Names and texts with HTML and scripts, in every value that a router may answer with, on every page: they stay text. */

import type { Message } from "rhea";

import { expect, openConsole, test, watch } from "./support";
import { startNode, type Answer } from "./support/large";

const PREFIX = "org.apache.qpid.dispatch.";
/** What would set `hit` as an element, an attribute, a link, a style or a template. */
const MARKUP = `<img src=x onerror="window.hit=1"><script>window.hit=1</script><svg onload="window.hit=1">'" onmouseover="window.hit=1" {{window.hit=1}} javascript:window.hit=1//`;
/** The columns of the types that have rows; the router's schema, which the pages read, has the same. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  router: ["identity", "name", "id", "mode", "version", "hostName", "metadata", "uptimeSeconds", "memoryUsage", "duplicateIds"],
  "router.node": ["identity", "id", "name", "nextHop", "address", "cost", "linkState", "linkCosts", "instance"],
  connection: ["identity", "name", "container", "host", "user", "role", "dir", "sasl", "sslCipher", "sslProto", "tenant", "vhost", "properties", "active", "opened"],
  "router.link": ["identity", "name", "linkName", "linkType", "linkDir", "owningAddr", "connectionId", "peer", "capacity", "undeliveredCount", "unsettledCount", "deliveryCount", "settleRate", "operStatus", "adminStatus"],
  "router.address": ["identity", "name", "key", "distribution", "phase", "subscriberCount", "inProcess", "remoteCount", "containerCount", "remoteHostRouters", "deliveriesIngress", "deliveriesEgress"],
  "router.config.address": ["identity", "name", "prefix", "pattern", "distribution"],
  "router.config.linkRoute": ["identity", "name", "prefix", "pattern", "direction", "connection", "containerId", "operStatus"],
  "router.config.autoLink": ["identity", "name", "address", "direction", "connection", "containerId", "linkRef", "operStatus", "lastError"],
  listener: ["identity", "name", "host", "port", "role", "sslProfile", "saslMechanisms"],
  connector: ["identity", "name", "host", "port", "role", "connectionStatus", "connectionMsg", "failoverUrls"],
  sslProfile: ["identity", "name", "certFile"],
  log: ["identity", "name", "module", "enable", "outputFile"],
  logStats: ["identity", "name", "errorCount", "warningCount"],
  policy: ["identity", "name", "enableVhostPolicy", "defaultVhost", "policyDir", "connectionsDenied"],
  vhost: ["identity", "name", "hostname", "aliases", "groups", "maxConnections"],
  vhostStats: ["identity", "name", "hostname", "perUserState", "perHostState", "connectionsDenied"],
  denial: ["identity", "name", "user", "host", "vhost", "rule", "reason", "text", "time"],
  finding: ["identity", "name", "text", "severity", "section", "suggestion", "page"],
  topologyChange: ["identity", "name", "why", "time", "text"],
};
/** What pages compare; all other values are markup, or numbers. */
const FIXED: Readonly<Record<string, unknown>> = {
  identity: "1", mode: "interior", role: "normal", dir: "in", linkType: "endpoint", linkDir: "in", connectionId: "1",
  active: true, enableVhostPolicy: true, owningAddr: `M0${MARKUP}`, key: `M0${MARKUP}`, severity: "problem", peer: null,
  linkState: [MARKUP], linkCosts: { [MARKUP]: 1 }, properties: { [MARKUP]: MARKUP }, remoteHostRouters: [MARKUP], duplicateIds: [MARKUP],
  aliases: [MARKUP], groups: { [MARKUP]: { users: MARKUP, sources: MARKUP, targets: MARKUP, remoteHosts: MARKUP } },
  perUserState: { [MARKUP]: [MARKUP] }, perHostState: { [MARKUP]: [MARKUP] }, identities: [MARKUP],
};
const NUMBER = /Count|Seconds|Usage|cost|capacity|Rate|Denied|deliveries|opened|time|port|phase|instance|maxConnections|inProcess/;

const cell = (column: string): unknown => (column in FIXED ? FIXED[column] : NUMBER.test(column) ? 7 : `${MARKUP}${column}`);

/** The pages that show texts of the router as they open. */
const WITH_TEXTS: ReadonlySet<string> = new Set(["Overview", "Network", "Topology", "Charts", "Address", "Policy", "Schema"]);

/** Answer every request with markup wherever a router could. */
const marked: Answer = (_address, message: Message) => {
  const properties = (message.application_properties ?? {}) as Readonly<Record<string, unknown>>;
  switch (properties["operation"]) {
    case "GET-MGMT-NODES":
      return { status: 200, body: [`amqp:/_topo/0/${encodeURIComponent(MARKUP)}/$management`] };
    case "GET-SCHEMA": {
      const attributes = (columns: readonly string[]): unknown =>
        Object.fromEntries(columns.map((name) => [name, { type: "string", description: MARKUP, default: MARKUP }]));
      const types = Object.entries(COLUMNS).map(([name, columns]): [string, unknown] => [
        name,
        { fullyQualifiedType: PREFIX + name, description: MARKUP, operations: ["CREATE", "READ", "UPDATE", "DELETE"], attributes: attributes(columns) },
      ]);
      return { status: 200, body: { prefix: PREFIX.slice(0, -1), description: MARKUP, entityTypes: Object.fromEntries(types) } };
    }
    case "GET-LOG":
      return { status: 200, body: [[MARKUP, "error", MARKUP, MARKUP, 1, 1_700_000_000], ["SERVER", MARKUP, MARKUP, null, null, 1_700_000_001]] };
    case "QUERY": {
      const known = COLUMNS[String(properties["entityType"]).replace(PREFIX, "")];
      if (known === undefined) return { status: 404, body: {}, description: MARKUP };
      const { attributeNames: wanted } = message.body as { attributeNames: readonly string[] };
      const columns = wanted.length > 0 ? wanted.filter((name) => known.includes(name)) : known;
      return { status: 200, body: { attributeNames: columns, results: Number(properties["offset"] ?? 0) > 0 ? [] : [columns.map(cell)] } };
    }
    default:
      return { status: 400, body: {}, description: MARKUP };
  }
};

test("markup in any answer of a router is shown as text, on every page, and runs nothing", async ({ page }) => {
  const wrong = watch(page);
  const node = await startNode(marked);
  const evil = encodeURIComponent(MARKUP);
  const nothingRan = async (): Promise<void> => {
    // Hovering and clicking would run the handlers of an element or a link that markup had made.
    const links = page.locator(`img[src="x"], svg[onload], [onmouseover], [onerror], script:not([src]), a[href^="javascript:" i]`);
    expect(await links.count(), page.url()).toBe(0);
    expect(await page.evaluate(() => "hit" in window), page.url()).toBe(false);
  };
  await page.goto(node.url);
  await expect(page.getByRole("navigation").getByRole("link").first()).toBeVisible();
  const shown: string[] = [];
  for (const link of await page.getByRole("navigation").getByRole("link").all()) {
    await link.click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText((await link.textContent()) ?? "");
    const name = (await link.textContent()) ?? "";
    if (WITH_TEXTS.has(name)) {
      await expect(page.locator("main").getByText("<img src=x onerror=", { exact: false }).first()).toBeVisible();
      shown.push(name);
    }
    await nothingRan();
  }
  expect(shown).toHaveLength(WITH_TEXTS.size);
  for (const entity of Object.keys(COLUMNS)) {
    await openConsole(page, node.url, `/entities/${entity}`, "Entities");
    const grid = page.getByRole("grid", { name: entity, exact: true });
    await grid.getByRole("row").nth(1).click();
    await expect(page.getByRole("definition").filter({ hasText: "<img src=x onerror=" }).first()).toBeVisible();
    await nothingRan();
  }
  for (const route of [`/address?name=${evil}`, `/entities/${evil}?router=${evil}&identity=${evil}`, `/logs?router=${evil}&filter=${evil}`, `/topology?router=${evil}`]) {
    await page.goto(`${node.url}#${route}`);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await nothingRan();
  }
  await node.stop();
  expect(wrong).toEqual([]);
});

test("the same markup runs where a page takes it for HTML", async ({ page }) => {
  await page.setContent(`<main>${MARKUP}</main>`);
  await expect.poll(() => page.evaluate(() => "hit" in window)).toBe(true);
});
