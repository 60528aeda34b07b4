/** Alarms about links and deliveries. */
import { bounded, rows, type Alarm } from "./alarm";
import { isInner, isTemporary, parseKey } from "./addresskey";
import { count, duration, numberOf, textOf } from "./numbers";
import { shown } from "./text";
import type { Row, RouterTables } from "./types";

/** No credit for so long makes a link blocked, in seconds; the older router counts so too. */
export const BLOCKED_AFTER_S = 10;

/** Return the page that explains an address. */
export function addressPage(text: string): string {
  return `/address?name=${encodeURIComponent(text)}`;
}

/** Clients' links by the key of their address. */
function linksByAddress(router: RouterTables, wanted: (link: Row) => boolean): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const link of rows(router, "router.link")) {
    const key = textOf(link["owningAddr"]);
    if (link["linkType"] !== "endpoint" || key === "" || isInner(key) || isTemporary(key) || !wanted(link)) continue;
    found.set(key, [...(found.get(key) ?? []), link]);
  }
  return found;
}

const greatest = (links: readonly Row[], attribute: string): number =>
  links.reduce((most, link) => Math.max(most, numberOf(link[attribute]) ?? 0), 0);

const total = (links: readonly Row[], attribute: string): number =>
  links.reduce((all, link) => all + (numberOf(link[attribute]) ?? 0), 0);

const isBlocked = (link: Row): boolean => (numberOf(link["zeroCreditSeconds"]) ?? 0) >= BLOCKED_AFTER_S;

/** Tell of links that have had no credit for BLOCKED_AFTER_S. */
export function blockedLinks(router: RouterTables): Alarm[] {
  const found = linksByAddress(router, isBlocked);
  return bounded(router, "blocked", "addresses with links without credit", [...found].map(([key, links]) => {
    const address = parseKey(key).text;
    const receivers = links.filter((link) => link["linkDir"] === "out");
    const waiting = total(receivers, "undeliveredCount");
    const who =
      receivers.length > 0
        ? `${count(receivers.length, "receiver")} of ${shown(address)} ${receivers.length === 1 ? "gives" : "give"} no credit`
        : `${count(links.length, "sender")} to ${shown(address)} ${links.length === 1 ? "gets" : "get"} no credit`;
    const since = `For ${duration(greatest(links, "zeroCreditSeconds"))}`;
    return {
      key: `blocked:${router.id}:${key}`,
      severity: "warning",
      router: router.id,
      title: who,
      detail: waiting > 0 ? `${since}; ${count(waiting, "delivery")} ${waiting === 1 ? "waits" : "wait"}` : since,
      to: addressPage(address),
    };
  }));
}

/** Tell of deliveries that are unsettled for more than 10 s. */
export function stuckDeliveries(router: RouterTables): Alarm[] {
  const found = linksByAddress(router, (link) => (numberOf(link["deliveriesStuck"]) ?? 0) > 0);
  return bounded(router, "stuck", "addresses with stuck deliveries", [...found].map(([key, links]) => {
    const address = parseKey(key).text;
    const stuck = total(links, "deliveriesStuck");
    return {
      key: `stuck:${router.id}:${key}`,
      severity: "warning",
      router: router.id,
      title: `${count(stuck, "delivery")} of ${shown(address)} ${stuck === 1 ? "is" : "are"} stuck`,
      detail: `Unsettled for more than 10 s on ${count(links.length, "link")}`,
      to: addressPage(address),
    };
  }));
}
