/** Keys of addresses as management writes them: a letter for the class, a phase for some, and the text. */

/** An address, told from its key. */
export interface Key {
  /** "mobile", "local", "router", "topological", "temporary", "edge", "exchange", "link route in", ... or "" if unknown. */
  readonly kind: string;
  /** The phase of an address of clients; null where there is none. */
  readonly phase: number | null;
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

/** Return what the key of an address says. */
export function parseKey(key: string): Key {
  const kind = KINDS[key.charAt(0)] ?? "";
  if (kind !== "mobile") return { kind, phase: null, text: kind === "" ? key : key.slice(1) };
  const phase = key.charAt(1);
  const counted = phase >= "0" && phase <= "9";
  return { kind, phase: counted ? Number(phase) : null, text: key.slice(counted ? 2 : 1) };
}

/** Return whether the address is one of routers and not of clients: management, hello, a router's own. */
export function isInner(key: string): boolean {
  return INNER.test(key);
}

/** Return whether the address is a temporary one, made for the answers to one client. */
export function isTemporary(key: string): boolean {
  const { kind, text } = parseKey(key);
  return kind === "local" ? text.startsWith("temp.") : /^_(?:topo|edge)\/.*\/temp\./.test(text);
}
