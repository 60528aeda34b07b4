/** Routers, brokers and connections that left the network: the picture keeps them, marked as gone. */

import type { Topology, TopologyEdge, TopologyNode } from "./topology";

/** Nodes and connections that are kept after they left, the newest ones: a network that changes all day must not fill the picture. */
const MAX_KEPT = 100;

function keepsNode(node: TopologyNode, now: Topology): boolean {
  if (now.nodes.has(node.id)) return false;
  if (node.kind === "router" || node.kind === "edge") return true;
  // A broker behind a router that is gone may still be there: no router can report it.
  return node.kind === "broker" && node.owner !== null && now.nodes.has(node.owner);
}

const newest = <T extends { readonly goneSince: number | null }>(remaining: T[]): T[] =>
  remaining.sort((one, other) => (other.goneSince ?? 0) - (one.goneSince ?? 0)).slice(0, MAX_KEPT);

/** Return `now` with the nodes and connections that only `before` has, marked as gone since `at` (ms since 1970) or earlier. */
export function withGone(before: Topology, now: Topology, at: number): Topology {
  const alreadyGone = [...before.nodes.values()].filter((node) => node.goneSince !== null && !now.nodes.has(node.id));
  const missed = [...before.nodes.values()].filter((node) => node.goneSince === null && keepsNode(node, now));
  const kept = newest([...alreadyGone, ...missed.map((node) => ({ ...node, connections: [], error: "", goneSince: at }))]);
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
  // A connection that the other end dialled, or an edge router's move to another router, replaces the lost connection.
  const replaced = (edge: TopologyEdge): boolean =>
    now.edges.has(`${edge.target}>${edge.source}`) ||
    (edge.kind === "edge" && [...now.edges.values()].some((other) => other.kind === "edge" && other.source === edge.source));
  const edges = new Map(now.edges);
  for (const edge of lost) if (!replaced(edge)) edges.set(edge.id, edge);
  return { nodes, edges, edgeByConnection: now.edgeByConnection };
}

/** Return the topology without the nodes and connections that are gone. */
export function withoutGone(topology: Topology): Topology {
  const there = <T extends { readonly goneSince: number | null }>(entries: ReadonlyMap<string, T>): Map<string, T> =>
    new Map([...entries].filter(([, entry]) => entry.goneSince === null));
  return { nodes: there(topology.nodes), edges: there(topology.edges), edgeByConnection: topology.edgeByConnection };
}
