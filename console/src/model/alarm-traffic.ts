/** Alarms about links and deliveries. */
import { limitAlarms, totalOf, type Alarm } from "./alarm";
import { isInner, isTemporary, parseKey } from "./addresskey";
import { count, duration, numberOf, textOf } from "./numbers";
import { tableOf } from "./rows";
import { shown } from "./text";
import type { Row, RouterTables } from "./types";

/** A link without credit for this time is blocked, in s; Qpid Dispatch counts blocked links by the same time. */
export const BLOCKED_AFTER_S = 10;

/** Return the route of the page that explains an address. */
export function addressPage(text: string): string {
  return `/address?name=${encodeURIComponent(text)}`;
}

/** Return the links of clients for which `wanted` is true, by the key of their address. */
function linksByAddress(router: RouterTables, wanted: (link: Row) => boolean): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const link of tableOf(router, "router.link")) {
    const key = textOf(link["owningAddr"]);
    if (link["linkType"] !== "endpoint" || key === "" || isInner(key) || isTemporary(key) || !wanted(link)) continue;
    found.set(key, [...(found.get(key) ?? []), link]);
  }
  return found;
}

const maximumOf = (links: readonly Row[], attribute: string): number =>
  links.reduce((maximum, link) => Math.max(maximum, numberOf(link[attribute]) ?? 0), 0);

const isBlocked = (link: Row): boolean => (numberOf(link["zeroCreditSeconds"]) ?? 0) >= BLOCKED_AFTER_S;

/** Return an alarm for each address with links that have had no credit for BLOCKED_AFTER_S. */
export function blockedLinks(router: RouterTables): Alarm[] {
  const found = linksByAddress(router, isBlocked);
  return limitAlarms(router, "blocked", "addresses with links without credit", [...found].map(([key, links]) => {
    const address = parseKey(key).text;
    const receivers = links.filter((link) => link["linkDir"] === "out");
    const waiting = totalOf(receivers, "undeliveredCount");
    const title =
      receivers.length > 0
        ? `${count(receivers.length, "receiver")} of ${shown(address)} ${receivers.length === 1 ? "gives" : "give"} no credit`
        : `${count(links.length, "sender")} to ${shown(address)} ${links.length === 1 ? "gets" : "get"} no credit`;
    const since = `For ${duration(maximumOf(links, "zeroCreditSeconds"))}`;
    return {
      key: `blocked:${router.id}:${key}`,
      severity: "warning",
      router: router.id,
      title,
      detail: waiting > 0 ? `${since}; ${count(waiting, "delivery")} ${waiting === 1 ? "waits" : "wait"}` : since,
      to: addressPage(address),
    };
  }));
}

/** Return an alarm for each address with deliveries that are unsettled for more than 10 s. */
export function stuckDeliveries(router: RouterTables): Alarm[] {
  const found = linksByAddress(router, (link) => (numberOf(link["deliveriesStuck"]) ?? 0) > 0);
  return limitAlarms(router, "stuck", "addresses with stuck deliveries", [...found].map(([key, links]) => {
    const address = parseKey(key).text;
    const stuck = totalOf(links, "deliveriesStuck");
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
