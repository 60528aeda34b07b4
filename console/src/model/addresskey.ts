/** Keys of addresses in management: a letter for the class, a phase for mobile addresses, and the text of the address. */

/** The parts of a key. */
export interface Key {
  /** "mobile", "local", "router", "topological", "area", "edge", "exchange", "link route in" or "... out"; "" if unknown. */
  readonly kind: string;
  /** The phase of a mobile address, "F" for a fallback; null for other classes. */
  readonly phase: number | "F" | null;
  /** The address as clients write it. */
  readonly text: string;
}

const KINDS: Readonly<Record<string, string>> = {
  M: "mobile",
  L: "local",
  T: "topological",
  R: "router",
  A: "area",
  H: "edge",
  X: "exchange",
  C: "link route in",
  D: "link route out",
  E: "link route in",
  F: "link route out",
};

/** Keys of addresses that only routers use among each other, and of routed links. */
const INNER = /^(?:M\d_?\$|L[_$]|Lqd|Lrouter|[RATHCDEF])/;

/** Return the parts of a key such as "M0queue.1" or "Ltemp.x". */
export function parseKey(key: string): Key {
  const kind = KINDS[key.charAt(0)] ?? "";
  if (kind !== "mobile") return { kind, phase: null, text: kind === "" ? key : key.slice(1) };
  const phase = key.charAt(1);
  return { kind, phase: phase === "F" ? phase : Number(phase), text: key.slice(2) };
}

/** Return the address of a key; "" for an absent key. */
export const addressOfKey = (key: string): string => parseKey(key).text;

/** Return whether clients use the address, directly or by a link route; false for addresses of replies and of routers. */
export const isUserKey = (key: string): boolean => /^(?:M(?!0_?\$)|[CDEF])/.test(key);

/** Return whether only routers use the address: management, hello, the addresses of routers and of routed links. */
export function isInner(key: string): boolean {
  return INNER.test(key);
}

/** Return whether the address is temporary: made by a router for the replies to one client. */
export function isTemporary(key: string): boolean {
  const { kind, text } = parseKey(key);
  return kind === "local" ? text.startsWith("temp.") : /^_(?:topo|edge)\/.*\/temp\./.test(text);
}
