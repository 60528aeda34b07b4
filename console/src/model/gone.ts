/** Routers, brokers and connections that were there a moment ago: they stay in the picture, marked. */

import type { Topology, TopologyEdge, TopologyNode } from "./topology";

/** A network that changes all day must not fill the picture: at most so many stay, the newest. */
const MOST_KEPT = 100;

function keepsNode(node: TopologyNode, now: Topology): boolean {
  if (now.nodes.has(node.id)) return false;
  if (node.kind === "router" || node.kind === "edge") return true;
  // No router reports a broker behind a router that is gone, so it is not called gone.
  return node.kind === "broker" && node.owner !== null && now.nodes.has(node.owner);
}

const newest = <T extends { readonly goneSince: number | null }>(gone: T[]): T[] =>
  gone.sort((one, other) => (other.goneSince ?? 0) - (one.goneSince ?? 0)).slice(0, MOST_KEPT);

/** Return `now` with what `before` had and `now` lacks, marked as gone since `at` (ms) or since it was missed first. */
export function withGone(before: Topology, now: Topology, at: number): Topology {
  const gone = [...before.nodes.values()].filter((node) => node.goneSince !== null && !now.nodes.has(node.id));
  const missed = [...before.nodes.values()].filter((node) => node.goneSince === null && keepsNode(node, now));
  const kept = newest([...gone, ...missed.map((node) => ({ ...node, connections: [], error: "", goneSince: at }))]);
  if (kept.length === 0 && before.edges.size === 0) return now;
  const nodes = new Map(now.nodes);
  for (const node of kept) nodes.set(node.id, node);
  const isLost = (edge: TopologyEdge): boolean =>
    edge.kind !== "client" && !now.edges.has(edge.id) && nodes.has(edge.source) && nodes.has(edge.target);
  const lost = newest(
    [...before.edges.values()]
      .filter(isLost)
      .map((edge) => ({ ...edge, forward: 0, backward: 0, load: 0, goneSince: edge.goneSince ?? at })),
  );
  // A connection dialled the other way round, or a move to another router, takes the place of the lost one.
  const replaced = (edge: TopologyEdge): boolean =>
    now.edges.has(`${edge.target}>${edge.source}`) ||
    (edge.kind === "edge" && [...now.edges.values()].some((other) => other.kind === "edge" && other.source === edge.source));
  const edges = new Map(now.edges);
  for (const edge of lost) if (!replaced(edge)) edges.set(edge.id, edge);
  return { nodes, edges, placed: now.placed };
}

/** Return the topology without what is gone. */
export function withoutGone(topology: Topology): Topology {
  const there = <T extends { readonly goneSince: number | null }>(entries: ReadonlyMap<string, T>): Map<string, T> =>
    new Map([...entries].filter(([, entry]) => entry.goneSince === null));
  return { nodes: there(topology.nodes), edges: there(topology.edges), placed: topology.placed };
}
