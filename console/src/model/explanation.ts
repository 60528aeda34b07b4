/** Why messages for an address flow or do not, in words: from a router's EXPLAIN, or from its tables where it has none. */
import type { AddressView } from "./address";
import { count, duration, numberOf, textOf } from "./numbers";
import type { Row, Value } from "./types";

/** How grave a verdict is. */
export type Gravity = "success" | "info" | "warning" | "danger";

/** What one router says of an address. */
export interface Explanation {
  readonly verdict: string;
  readonly gravity: Gravity;
  /** The configured rule that the address falls under; "" where it is not told. */
  readonly rule: string;
  readonly treatment: string;
  readonly fallback: string;
  /** Sentences that say more, the most useful first. */
  readonly details: readonly string[];
  /** Whether the router said it itself, or it is concluded from its tables. */
  readonly isTold: boolean;
}

/** Beginnings of verdicts, the first that fits tells how grave it is. */
const GRAVITIES: readonly (readonly [RegExp, Gravity])[] = [
  [/^(?:on fallback: )?flowing, but/, "warning"],
  [/^(?:on fallback: )?flowing/, "success"],
  [/^(?:on fallback: )?ready/, "info"],
  [/^taken by exchange .*no client/, "warning"],
  [/^(?:taken by exchange|(?:senders|receivers) are routed)/, "info"],
  [/^(?:unknown address|elsewhere|closed to clients)/, "info"],
  [/held by|without credit|are refused|unavailable|no address/, "danger"],
  [/no consumer/, "warning"],
];
/** What a link waits for, as EXPLAIN calls it. */
const WAITS: Readonly<Record<string, string>> = {
  credit: "its receiver gives no credit",
  window: "the window of its session is closed",
  output: "its connection takes nothing in",
};
const SENTENCES = 5;

/** Return how grave a verdict is. */
export function gravityOf(verdict: string): Gravity {
  return GRAVITIES.find(([pattern]) => pattern.test(verdict))?.[1] ?? "info";
}

/** Return what the answer to EXPLAIN says; undefined if it is none. */
export function explanationOf(answer: Value): Explanation | undefined {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer) || answer instanceof Uint8Array) return undefined;
  const told = answer as Row;
  const verdict = textOf(told["verdict"]);
  if (verdict === "") return undefined;
  return {
    verdict,
    gravity: gravityOf(verdict),
    rule: textOf(told["rule"]),
    treatment: textOf(told["treatment"]),
    fallback: textOf(told["fallback"]),
    details: [...sentences(told["consumers"], "Receiver"), ...sentences(told["senders"], "Sender")].slice(0, SENTENCES),
    isTold: true,
  };
}

function sentences(links: Value | undefined, what: string): string[] {
  if (!Array.isArray(links)) return [];
  return (links as readonly Value[]).flatMap((each) => {
    if (typeof each !== "object" || each === null || Array.isArray(each) || each instanceof Uint8Array) return [];
    const link = each as Row;
    const said = what === "Receiver" ? ofReceiver(link) : ofSender(link);
    if (said.length === 0) return [];
    return [`${what} ${textOf(link["container"]) || "without a container"} (link ${textOf(link["link"])}): ${said.join("; ")}`];
  });
}

function ofReceiver(link: Row): string[] {
  const waits = WAITS[textOf(link["waitsFor"])];
  const undelivered = numberOf(link["undelivered"]) ?? 0;
  return [...(waits === undefined ? [] : [`${waits}${forSeconds(link)}`]), ...load(undelivered, link)];
}

function ofSender(link: Row): string[] {
  const waits = textOf(link["waitsFor"]) === "credit" ? [`the router gives it no credit${forSeconds(link)}`] : [];
  return [...waits, ...load(0, link)];
}

function forSeconds(link: Row): string {
  const seconds = numberOf(link["zeroCreditSeconds"]) ?? 0;
  return seconds > 0 ? `, for ${duration(seconds)}` : "";
}

function load(undelivered: number, link: Row): string[] {
  const unsettled = numberOf(link["unsettled"]) ?? 0;
  const stuck = numberOf(link["stuck"]) ?? 0;
  return [
    ...(undelivered > 0 ? [`${count(undelivered, "delivery")} ${undelivered === 1 ? "waits" : "wait"}`] : []),
    ...(unsettled > 0 ? [`${count(unsettled, "delivery")} unsettled`] : []),
    ...(stuck > 0 ? [`${count(stuck, "delivery")} stuck for more than 10 s`] : []),
  ];
}

/** Conclude from the tables of all routers, as for a router that has no EXPLAIN or a login that may not ask for it. */
export function concluded(view: AddressView): Explanation {
  const { consumers, producers } = view;
  const without = consumers.filter((link) => link.credit === 0);
  const held = consumers.filter((link) => link.undelivered > 0 || link.stuck > 0);
  const verdict =
    consumers.length === 0 && producers.length === 0
      ? "unknown address: no client sends to it or receives from it"
      : consumers.length === 0
        ? "no consumer: no client receives from it"
        : without.length === consumers.length
          ? `consumers without credit: ${count(without.length, "receiver")}`
          : held.length > 0
            ? `flowing, but ${count(held.length, "receiver")} ${held.length === 1 ? "is" : "are"} behind`
            : producers.length === 0
              ? "ready: no client sends to it"
              : "flowing";
  const details = held.slice(0, SENTENCES).map((link) => {
    const names = { undelivered: link.undelivered, unsettled: link.unsettled, stuck: link.stuck };
    return `Receiver ${link.container || link.host} (link ${link.link}): ${load(link.undelivered, names).join("; ")}`;
  });
  return { verdict, gravity: gravityOf(verdict), rule: "", treatment: "", fallback: "", details, isTold: false };
}
