/** What the page remembers between updates and visits: the network as last seen, what is gone, and where all of it stands. */

import { create } from "zustand";

import { withGone, withoutGone } from "../../model/gone";
import { groupEdges } from "../../model/grouping";
import { placeNodes, type Place, type Places } from "../../model/layout";
import { EMPTY, buildTopology, type Topology } from "../../model/topology";
import { NO_SAMPLES, sampleLinks, type LinkSamples } from "../../model/traffic";
import type { Snapshot } from "../../model/types";

/** Places of nodes that are no longer there are kept up to this many, so that a network that changes all day stays small. */
const MOST_PLACES = 5_000;

interface State {
  /** The login whose network this is. */
  readonly user: string;
  readonly snapshot: Snapshot;
  readonly samples: LinkSamples;
  /** Everything that was seen, each edge router for itself. */
  readonly whole: Topology;
  /** What the picture shows. */
  readonly drawn: Topology;
  readonly places: Places;
  /** Every router has answered or failed to: from now on places are kept. Before, the lines are not all known. */
  readonly isSettled: boolean;
  /** Node ids of groups whose edge routers are shown one by one. */
  readonly expanded: ReadonlySet<string>;
}

const NOTHING: State = {
  user: "",
  snapshot: { at: 0, routers: [] },
  samples: NO_SAMPLES,
  whole: EMPTY,
  drawn: EMPTY,
  places: new Map(),
  isSettled: false,
  expanded: new Set(),
};

const store = create<State>(() => NOTHING);

function shown(whole: Topology, expanded: ReadonlySet<string>, known: Places): Pick<State, "drawn" | "places"> {
  const drawn = groupEdges(whole, expanded);
  const placed = placeNodes(drawn, known);
  // Those that are not drawn now find their places again when they come back.
  const places = known.size > MOST_PLACES ? placed : new Map([...known, ...placed]);
  return { drawn, places };
}

const pinnedOf = (places: Places): Places => new Map([...places].filter(([, place]) => place.pinned));

/** Return whether each router has answered with its connections and the network, or does not answer. */
const hasAnswered = ({ routers }: Snapshot): boolean =>
  routers.every(
    ({ error, tables }) =>
      error !== undefined || (tables["connection"] !== undefined && tables["router.node"] !== undefined),
  );

/** Take in a snapshot of the network of `user`; another user's is forgotten. */
export function observe(snapshot: Snapshot, user: string): void {
  store.setState((state) => {
    const before = state.user === user ? state : { ...NOTHING, user };
    if (snapshot.at === 0) return before;
    const samples = sampleLinks(before.samples, snapshot);
    const whole = withGone(before.whole, buildTopology(snapshot, samples), snapshot.at);
    const known = before.isSettled ? before.places : pinnedOf(before.places);
    const isSettled = before.isSettled || hasAnswered(snapshot);
    return { ...before, snapshot, samples, whole, isSettled, ...shown(whole, before.expanded, known) };
  });
}

/** Show the edge routers of a group one by one, or as a group again. */
export function expand(group: string, isExpanded: boolean): void {
  store.setState((state) => {
    const expanded = new Set(state.expanded);
    if (isExpanded) expanded.add(group);
    else expanded.delete(group);
    return { expanded, ...shown(state.whole, expanded, state.places) };
  });
}

/** Put a node where the user dragged it; it stays there. */
export function pin(id: string, place: Omit<Place, "pinned">): void {
  store.setState(({ places }) => ({ places: new Map(places).set(id, { ...place, pinned: true }) }));
}

/** Let a node find its own place again. */
export function unpin(id: string): void {
  store.setState((state) => {
    const places = new Map(state.places);
    places.delete(id);
    return shown(state.whole, state.expanded, places);
  });
}

/** Place everything anew, except what the user pinned. */
export function arrange(): void {
  store.setState((state) => {
    return shown(state.whole, state.expanded, pinnedOf(state.places));
  });
}

/** Take what is gone off the picture. */
export function forgetGone(): void {
  store.setState((state) => {
    const whole = withoutGone(state.whole);
    return { whole, ...shown(whole, state.expanded, state.places) };
  });
}

/** The network, drawn anew whenever it changes. */
export const useNetworkState = (): State => store();
