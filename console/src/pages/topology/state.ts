/** The state of the Topology page between updates and visits: the network as last received, gone nodes, and the layout. */

import { create } from "zustand";

import { withGone, withoutGone } from "../../model/gone";
import { groupEdges } from "../../model/grouping";
import { placeNodes, type Place, type Places } from "../../model/layout";
import { EMPTY, buildTopology, type Topology } from "../../model/topology";
import { NO_SAMPLES, sampleLinks, type LinkSamples } from "../../model/traffic";
import type { Snapshot } from "../../model/types";

/** Places of absent nodes are kept until there are more places than this. */
const MAX_PLACES = 5_000;

interface State {
  /** The user whose network this is. */
  readonly user: string;
  readonly snapshot: Snapshot;
  readonly samples: LinkSamples;
  /** The network with gone nodes and without groups of edge routers. */
  readonly whole: Topology;
  /** The network that the picture shows, with groups. */
  readonly drawn: Topology;
  readonly places: Places;
  /** Every router has answered or failed to. Until then only pinned nodes keep their places, because some lines are unknown. */
  readonly isSettled: boolean;
  /** The node ids of expanded groups. */
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

function layOut(whole: Topology, expanded: ReadonlySet<string>, known: Places): Pick<State, "drawn" | "places"> {
  const drawn = groupEdges(whole, expanded);
  const placed = placeNodes(drawn, known);
  // Nodes that are not drawn now get their places again when they return.
  const places = known.size > MAX_PLACES ? placed : new Map([...known, ...placed]);
  return { drawn, places };
}

const pinnedOf = (places: Places): Places => new Map([...places].filter(([, place]) => place.pinned));

/** Return whether each router has answered with its connections and nodes, or failed. */
const hasAnswered = ({ routers }: Snapshot): boolean =>
  routers.every(
    ({ error, tables }) =>
      error !== undefined || (tables["connection"] !== undefined && tables["router.node"] !== undefined),
  );

/** Update the state by a snapshot; the state of another user is dropped first. */
export function observe(snapshot: Snapshot, user: string): void {
  store.setState((state) => {
    const before = state.user === user ? state : { ...NOTHING, user };
    if (snapshot.at === 0) return before;
    const samples = sampleLinks(before.samples, snapshot);
    const whole = withGone(before.whole, buildTopology(snapshot, samples), snapshot.at);
    const known = before.isSettled ? before.places : pinnedOf(before.places);
    const isSettled = before.isSettled || hasAnswered(snapshot);
    return { ...before, snapshot, samples, whole, isSettled, ...layOut(whole, before.expanded, known) };
  });
}

/** Expand a group of edge routers, or collapse it. */
export function expand(group: string, isExpanded: boolean): void {
  store.setState((state) => {
    const expanded = new Set(state.expanded);
    if (isExpanded) expanded.add(group);
    else expanded.delete(group);
    return { expanded, ...layOut(state.whole, expanded, state.places) };
  });
}

/** Pin a node at the place to which the user dragged it. */
export function pin(id: string, place: Omit<Place, "pinned">): void {
  store.setState(({ places }) => ({ places: new Map(places).set(id, { ...place, pinned: true }) }));
}

/** Unpin a node and place it anew. */
export function unpin(id: string): void {
  store.setState((state) => {
    const places = new Map(state.places);
    places.delete(id);
    return layOut(state.whole, state.expanded, places);
  });
}

/** Place all nodes anew, except pinned ones. */
export function arrange(): void {
  store.setState((state) => {
    return layOut(state.whole, state.expanded, pinnedOf(state.places));
  });
}

/** Remove gone nodes and connections from the picture. */
export function forgetGone(): void {
  store.setState((state) => {
    const whole = withoutGone(state.whole);
    return { whole, ...layOut(whole, state.expanded, state.places) };
  });
}

/** Return the state of the page, and redraw the component when it changes. */
export const useNetworkState = (): State => store();
