/** The layout of the picture. A node keeps its place; only new nodes are placed. */

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationNodeDatum } from "d3-force";

import type { Topology, TopologyNode } from "./topology";

/** The place of a node, in units of the picture. */
export interface Place {
  readonly x: number;
  readonly y: number;
  /** The id of the node that x and y are relative to; null if they are relative to the picture. */
  readonly from: string | null;
  /** The user pinned the node there. */
  readonly pinned: boolean;
}

/** The places of nodes, by node id. */
export type Places = ReadonlyMap<string, Place>;

const ROUTER_DISTANCE = 230;
/** Rings around a router for its clients, brokers and edge routers: radius and number of places. */
const RINGS = [
  { radius: 88, places: 10 },
  { radius: 134, places: 16 },
  { radius: 180, places: 24 },
] as const;
/** The ring around an edge router or a group. */
const SMALL_RING = { radius: 62, places: 8 };
const TICKS = 300;
/** Ticks of the simulation if some routers already have a place. */
const TICKS_FOR_NEW = 80;

interface Body extends SimulationNodeDatum {
  readonly id: string;
}

function placeRouters(topology: Topology, routers: readonly TopologyNode[], known: Places): Map<string, Place> {
  const kept = new Map<string, Place>();
  for (const router of routers) {
    const place = known.get(router.id);
    if (place?.from === null) kept.set(router.id, place);
  }
  if (kept.size === routers.length) return kept;
  const bodies: Body[] = routers.map(({ id }) => {
    const place = kept.get(id);
    return place === undefined ? { id } : { id, x: place.x, y: place.y, fx: place.x, fy: place.y };
  });
  const links = [...topology.edges.values()]
    .filter((edge) => edge.kind === "inter-router")
    .map((edge) => ({ source: edge.source, target: edge.target }));
  startBeside(bodies, links);
  forceSimulation(bodies)
    .force("link", forceLink<Body, { source: string; target: string }>(links).id((body) => body.id).distance(ROUTER_DISTANCE).strength(0.5))
    .force("charge", forceManyBody().strength(-1400).distanceMax(1400))
    .force("x", forceX(0).strength(0.03))
    .force("y", forceY(0).strength(0.05))
    .force("collide", forceCollide(105))
    .stop()
    .tick(kept.size === 0 ? TICKS : TICKS_FOR_NEW);
  return new Map(bodies.map((body) => [body.id, kept.get(body.id) ?? { x: body.x ?? 0, y: body.y ?? 0, from: null, pinned: false }]));
}

/** Put each new router beside a neighbour that has a place, so that few ticks suffice. */
function startBeside(bodies: readonly Body[], links: readonly { source: string; target: string }[]): void {
  const byId = new Map(bodies.map((body) => [body.id, body]));
  links.forEach(({ source, target }, index) => {
    for (const [one, other] of [[source, target], [target, source]] as const) {
      const [body, neighbour] = [byId.get(one), byId.get(other)];
      const [x, y] = [neighbour?.fx ?? null, neighbour?.fy ?? null];
      if (body === undefined || body.x !== undefined || x === null || y === null) continue;
      body.x = x + ROUTER_DISTANCE * Math.cos(index);
      body.y = y + ROUTER_DISTANCE * Math.sin(index);
    }
  });
}

/** Return the smaller angle between two directions, in radians. */
const angleBetween = (one: number, other: number): number => Math.abs(((one - other + 3 * Math.PI) % (2 * Math.PI)) - Math.PI);

/** Return the free place on the rings whose direction is farthest from the `taken` places and the `busy` angles. */
function freePlace(owner: TopologyNode, taken: readonly Place[], busy: readonly number[]): Place {
  const rings = owner.kind === "router" ? RINGS : [SMALL_RING];
  for (const { radius, places } of rings) {
    let best: { place: Place; room: number } | undefined;
    for (let slot = 0; slot < places; slot += 1) {
      const angle = (2 * Math.PI * slot) / places - Math.PI / 2;
      const place = { x: radius * Math.cos(angle), y: radius * Math.sin(angle), from: owner.id, pinned: false };
      if (taken.some((other) => Math.hypot(other.x - place.x, other.y - place.y) < 40)) continue;
      const angles = [...busy, ...taken.map((other) => Math.atan2(other.y, other.x))];
      const room = angles.reduce((smallest, other) => Math.min(smallest, angleBetween(angle, other)), Math.PI);
      if (best === undefined || room > best.room + 1e-6) best = { place, room };
    }
    if (best !== undefined) return best.place;
  }
  // The rings are full: a spiral outside of them, on which nodes do not overlap.
  const turn = taken.length * 0.4;
  const radius = (rings.at(-1)?.radius ?? SMALL_RING.radius) + 46 + taken.length;
  return { x: radius * Math.cos(turn), y: radius * Math.sin(turn), from: owner.id, pinned: false };
}

/** Return the place of every node: nodes in `known` keep theirs, new nodes get free places. */
export function placeNodes(topology: Topology, known: Places): Places {
  const nodes = [...topology.nodes.values()];
  const places = placeRouters(topology, nodes.filter((node) => node.owner === null), known);
  const children = new Map<string, TopologyNode[]>();
  for (const node of nodes) {
    if (node.owner === null) continue;
    const siblings = children.get(node.owner);
    if (siblings === undefined) children.set(node.owner, [node]);
    else siblings.push(node);
  }
  // An owner is placed before its nodes, because they avoid the direction to the owner's own owner.
  const place = (owner: TopologyNode): void => {
    const busy = directions(topology, owner, places);
    const siblings = children.get(owner.id) ?? [];
    const taken: Place[] = [];
    for (const node of siblings) {
      const kept = known.get(node.id);
      if (kept?.from !== owner.id) continue;
      places.set(node.id, kept);
      taken.push(kept);
    }
    for (const node of siblings) {
      if (places.has(node.id)) continue;
      const free = freePlace(owner, taken, busy);
      places.set(node.id, free);
      taken.push(free);
    }
    for (const node of siblings) place(node);
  };
  for (const node of nodes) if (node.owner === null) place(node);
  return places;
}

/** The direction of a node's name, in radians: below the node. */
const BELOW = Math.PI / 2;

/** Return the directions of the node's name and of its lines to other routers or to its owner, in radians. */
function directions(topology: Topology, owner: TopologyNode, places: Places): readonly number[] {
  const self = places.get(owner.id);
  if (self === undefined) return [];
  if (owner.owner !== null) return [BELOW, Math.atan2(-self.y, -self.x)];
  const angles = [BELOW];
  for (const edge of topology.edges.values()) {
    if (edge.kind !== "inter-router" || (edge.source !== owner.id && edge.target !== owner.id)) continue;
    const other = places.get(edge.source === owner.id ? edge.target : edge.source);
    if (other !== undefined) angles.push(Math.atan2(other.y - self.y, other.x - self.x));
  }
  return angles;
}

/** Return the point of a node in the picture: the sum of its place and those of its owners. */
export function pointOf(topology: Topology, places: Places, id: string): { readonly x: number; readonly y: number } {
  let [x, y] = [0, 0];
  for (let at: string | null = id, hops = 0; at !== null && hops < 8; hops += 1) {
    const place = places.get(at);
    x += place?.x ?? 0;
    y += place?.y ?? 0;
    at = topology.nodes.get(at)?.owner ?? null;
  }
  return { x, y };
}

/** Return the box around all nodes, with a margin. */
export function bounds(topology: Topology, places: Places): { x: number; y: number; width: number; height: number } {
  const points = [...topology.nodes.keys()].map((id) => pointOf(topology, places, id));
  if (points.length === 0) return { x: -200, y: -200, width: 400, height: 400 };
  const [xs, ys] = [points.map((point) => point.x), points.map((point) => point.y)];
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const margin = 70;
  return {
    x: left - margin,
    y: top - margin,
    width: Math.max(...xs) - left + 2 * margin,
    height: Math.max(...ys) - top + 2 * margin,
  };
}
