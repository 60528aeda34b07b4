/** Changes of configurations over the network that are neither confirmed nor taken back, as `trouter network status` names them. */

import { isMap, numberAt, textAt, textsAt } from "./rows";
import { shown } from "./text";
import type { Value } from "./types";

/** The id of a change: what an operator copies into a shell. */
const CHANGE_ID = /^[0-9A-Za-z-]{1,64}$/;
/** How the id of a change begins that is one of the policy alone. */
const POLICY_CHANGE = "policy-";
/** Routers of one change that are named. */
const MAX_NAMED = 20;

/** A change that is open at one router, as its operation GET-CHANGE answers. */
export interface RouterChange {
  readonly id: string;
  /** Who ordered it, as the command said; else the user of the connection that ordered it. */
  readonly by: string;
  /** When it was ordered, in ms since 1970. */
  readonly at: number;
  /** The ids of all routers that it is of. */
  readonly routers: readonly string[];
  /** "begun": the file is the old one; "made"; "edited": the file is another one since. */
  readonly state: string;
}

/** A change, and how far it is at which routers. */
export interface OpenChange {
  readonly id: string;
  readonly by: string;
  readonly at: number;
  /** Such as "made at A, B; not open at C". */
  readonly places: string;
  /** The commands that go on with it, and that take it back. */
  readonly resume: string;
  readonly abandon: string;
}

/** Return the change in an answer to GET-CHANGE; null if none is open, or if its id is none that a command makes. */
export function changeOf(answer: Value): RouterChange | null {
  if (!isMap(answer) || !CHANGE_ID.test(textAt(answer, "id"))) return null;
  return {
    id: textAt(answer, "id"),
    by: textAt(answer, "by") || textAt(answer, "user") || "unknown",
    at: numberAt(answer, "at") * 1000,
    routers: textsAt(answer, "routers"),
    state: textAt(answer, "state"),
  };
}

/** Return each change that is open at some router, from the changes by the ids of the routers. */
export function openChanges(changes: ReadonlyMap<string, RouterChange>): OpenChange[] {
  const known = new Map([...changes.values()].reverse().map((change) => [change.id, change]));
  return [...known.values()].map(({ id, by, at, routers }) => {
    const states = new Map<string, string[]>();
    for (const [router, change] of changes) if (change.id === id) states.set(change.state, [...(states.get(change.state) ?? []), router]);
    const without = routers.filter((router) => changes.get(router)?.id !== id);
    const places = [...states].map(([state, ids]) => `${shown(state)} at ${named(ids)}`);
    const again = id.startsWith(POLICY_CHANGE) ? "trouter network policy push" : "trouter network apply";
    return {
      id,
      by,
      at,
      places: [...places, ...(without.length > 0 ? [`not open at ${named(without)}`] : [])].join("; "),
      resume: `${again} FOLDER --resume ${id}`,
      abandon: `trouter network apply --abandon ${id}`,
    };
  });
}

function named(ids: readonly string[]): string {
  const names = [...ids].sort().slice(0, MAX_NAMED).map((id) => shown(id));
  return ids.length > MAX_NAMED ? `${names.join(", ")} and ${ids.length - MAX_NAMED} more` : names.join(", ");
}
