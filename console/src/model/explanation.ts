/** Why messages for an address flow or not, in sentences: from a router's answer to EXPLAIN, or concluded from its tables. */
import type { AddressView } from "./address";
import { count, duration, numberOf, textOf } from "./numbers";
import { isMap } from "./rows";
import type { Row, Value } from "./types";

/** How urgent a verdict is. */
export type Gravity = "success" | "info" | "warning" | "danger";

/** One router's explanation of an address. */
export interface Explanation {
  readonly verdict: string;
  readonly gravity: Gravity;
  /** The configured rule that the address falls under; "" if the router does not report it. */
  readonly rule: string;
  readonly treatment: string;
  readonly fallback: string;
  /** Sentences about the links that hold deliveries or wait, at most MAX_DETAILS. */
  readonly details: readonly string[];
  /** True if the router answered EXPLAIN, false if the console concluded it from the tables. */
  readonly isReported: boolean;
}

/** Patterns of verdicts; the first that matches decides the gravity. */
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
/** The values of `waitsFor` in EXPLAIN, in words. */
const WAITS: Readonly<Record<string, string>> = {
  credit: "its receiver gives no credit",
  window: "the window of its session is closed",
  output: "its connection takes nothing in",
};
const MAX_DETAILS = 5;

/** Return how urgent a verdict is. */
export function gravityOf(verdict: string): Gravity {
  return GRAVITIES.find(([pattern]) => pattern.test(verdict))?.[1] ?? "info";
}

/** Return the explanation in an answer to EXPLAIN; undefined if the answer has no verdict. */
export function parseExplanation(answer: Value): Explanation | undefined {
  const verdict = isMap(answer) ? textOf(answer["verdict"]) : "";
  if (!isMap(answer) || verdict === "") return undefined;
  return {
    verdict,
    gravity: gravityOf(verdict),
    rule: textOf(answer["rule"]),
    treatment: textOf(answer["treatment"]),
    fallback: textOf(answer["fallback"]),
    details: [...linkSentences(answer["consumers"], "Receiver"), ...linkSentences(answer["senders"], "Sender")].slice(0, MAX_DETAILS),
    isReported: true,
  };
}

function linkSentences(links: Value | undefined, role: string): string[] {
  if (!Array.isArray(links)) return [];
  return (links as readonly Value[]).filter(isMap).flatMap((link) => {
    const conditions = role === "Receiver" ? receiverConditions(link) : senderConditions(link);
    if (conditions.length === 0) return [];
    return [`${role} ${textOf(link["container"]) || "without a container"} (link ${textOf(link["link"])}): ${conditions.join("; ")}`];
  });
}

function receiverConditions(link: Row): string[] {
  const waits = WAITS[textOf(link["waitsFor"])];
  const undelivered = numberOf(link["undelivered"]) ?? 0;
  return [...(waits === undefined ? [] : [`${waits}${durationPhrase(link)}`]), ...loadPhrases(undelivered, link)];
}

function senderConditions(link: Row): string[] {
  const waits = textOf(link["waitsFor"]) === "credit" ? [`the router gives it no credit${durationPhrase(link)}`] : [];
  return [...waits, ...loadPhrases(0, link)];
}

function durationPhrase(link: Row): string {
  const seconds = numberOf(link["zeroCreditSeconds"]) ?? 0;
  return seconds > 0 ? `, for ${duration(seconds)}` : "";
}

function loadPhrases(undelivered: number, link: Row): string[] {
  const unsettled = numberOf(link["unsettled"]) ?? 0;
  const stuck = numberOf(link["stuck"]) ?? 0;
  return [
    ...(undelivered > 0 ? [`${count(undelivered, "delivery")} ${undelivered === 1 ? "waits" : "wait"}`] : []),
    ...(unsettled > 0 ? [`${count(unsettled, "delivery")} unsettled`] : []),
    ...(stuck > 0 ? [`${count(stuck, "delivery")} stuck for more than 10 s`] : []),
  ];
}

/** Return an explanation concluded from the tables, for a router without EXPLAIN and a login that may not call it. */
export function concludeFromTables(view: AddressView): Explanation {
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
  const details = held.slice(0, MAX_DETAILS).map((link) => {
    const names = { undelivered: link.undelivered, unsettled: link.unsettled, stuck: link.stuck };
    return `Receiver ${link.container || link.host} (link ${link.link}): ${loadPhrases(link.undelivered, names).join("; ")}`;
  });
  return { verdict, gravity: gravityOf(verdict), rule: "", treatment: "", fallback: "", details, isReported: false };
}
