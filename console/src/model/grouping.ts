/** Groups: the edge routers of one interior router as one node until the user expands it. Clients of grouped routers are hidden. */

import { addTraffic, type Traffic } from "./traffic";
import type { Topology, TopologyEdge, TopologyNode } from "./topology";

/** Edge routers that an expanded group shows, at most; the others stay in the group. */
export const MAX_EXPANDED = 40;

const fold = (edge: TopologyEdge, source: string, target: string, known: TopologyEdge | undefined): TopologyEdge => {
  const own: Traffic = { out: edge.forward, in: edge.backward, load: edge.load };
  const sum = known === undefined ? own : addTraffic({ out: known.forward, in: known.backward, load: known.load }, own);
  return {
    ...edge,
    id: `${source}>${target}`,
    source,
    target,
    connections: known === undefined ? edge.connections : [...known.connections, ...edge.connections],
    forward: sum.out,
    backward: sum.in,
    load: sum.load,
    // A group's connection counts as gone only if all of its connections are gone.
    goneSince: known === undefined || edge.goneSince === null || known.goneSince === null
      ? (known === undefined ? edge.goneSince : null)
      : Math.max(known.goneSince, edge.goneSince),
  };
};

function groupOf(owner: string, members: readonly TopologyNode[]): TopologyNode {
  const isGone = members.every((member) => member.goneSince !== null);
  return {
    id: `edges:${owner}`,
    kind: "edges",
    name: "",
    owner,
    clientKind: null,
    product: "",
    connections: [],
    members: members.map((member) => member.id),
    error: "",
    goneSince: isGone ? Math.max(...members.map((member) => member.goneSince ?? 0)) : null,
  };
}

/** Return the group of each edge router that is shown as part of one, by node id. */
function foldedInto(topology: Topology, expanded: ReadonlySet<string>): ReadonlyMap<string, string> {
  const byOwner = new Map<string, TopologyNode[]>();
  for (const node of topology.nodes.values())
    if (node.kind === "edge" && node.owner !== null) byOwner.set(node.owner, [...(byOwner.get(node.owner) ?? []), node]);
  const folded = new Map<string, string>();
  for (const [owner, members] of byOwner) {
    if (members.length < 2) continue;
    const group = `edges:${owner}`;
    const rest = expanded.has(group) ? members.slice(MAX_EXPANDED) : members;
    for (const member of rest) folded.set(member.id, group);
  }
  return folded;
}

/** Return the topology with the edge routers of each router as one node, except those of the `expanded` groups (by node id). */
export function groupEdges(topology: Topology, expanded: ReadonlySet<string>): Topology {
  const folded = foldedInto(topology, expanded);
  if (folded.size === 0) return topology;
  const nodes = new Map<string, TopologyNode>();
  const members = new Map<string, TopologyNode[]>();
  for (const node of topology.nodes.values()) {
    const group = folded.get(node.id);
    if (group !== undefined) members.set(group, [...(members.get(group) ?? []), node]);
    else if (node.owner === null || !folded.has(node.owner)) nodes.set(node.id, node);
  }
  for (const [group, inside] of members) nodes.set(group, groupOf(group.slice("edges:".length), inside));
  const edges = new Map<string, TopologyEdge>();
  for (const edge of topology.edges.values()) {
    const source = folded.get(edge.source) ?? edge.source;
    const target = folded.get(edge.target) ?? edge.target;
    if (!nodes.has(source) || !nodes.has(target)) continue;
    const id = `${source}>${target}`;
    edges.set(id, source === edge.source && target === edge.target ? edge : fold(edge, source, target, edges.get(id)));
  }
  const placed = new Map<string, Topology["edgeByConnection"] extends ReadonlyMap<string, infer P> ? P : never>();
  for (const [key, place] of topology.edgeByConnection) {
    const edge = topology.edges.get(place.edge);
    if (edge === undefined) continue;
    const id = `${folded.get(edge.source) ?? edge.source}>${folded.get(edge.target) ?? edge.target}`;
    if (edges.has(id)) placed.set(key, { ...place, edge: id, peer: folded.get(place.peer) ?? place.peer });
  }
  return { nodes, edges, edgeByConnection: placed };
}
