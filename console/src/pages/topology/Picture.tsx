import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import type { Lit } from "../../model/lit";
import { bounds, pointOf, type Places } from "../../model/layout";
import type { Point } from "../../model/nearest";
import type { Topology, TopologyNode } from "../../model/topology";
import { nodeName, nodeState } from "../../model/words";
import { EdgeMark } from "./EdgeMark";
import { NodeMark, RADIUS } from "./NodeMark";
import { PictureTools } from "./PictureTools";
import { expand, pin, unpin } from "./state";
import { useGestures } from "./useGestures";
import { useZoom } from "./useZoom";

interface Given {
  readonly topology: Topology;
  readonly places: Places;
  /** Node id of the router that the console is connected to. */
  readonly home: string;
  readonly selected: string | null;
  readonly lit: Lit | null;
  readonly onSelect: (id: string) => void;
  /** The node below the pointer or with the focus. */
  readonly onPoint: (node: string | null) => void;
}

function partOf(lit: Lit | null, id: string): "plain" | "dim" | "producer" | "consumer" | "both" | "way" {
  return lit === null ? "plain" : (lit.nodes.get(id) ?? "dim");
}

const NOWHERE: Point = { x: 0, y: 0 };

function usePoints(topology: Topology, places: Places): ReadonlyMap<string, Point> {
  return useMemo(
    () => new Map([...topology.nodes.keys()].map((id) => [id, pointOf(topology, places, id)])),
    [topology, places],
  );
}

/** Open what a group stands for, or fold it again. */
function open(topology: Topology, id: string): void {
  const node = topology.nodes.get(id);
  if (node?.kind === "edges") expand(id, true);
  else if (node?.kind === "edge" && node.owner !== null) expand(`edges:${node.owner}`, false);
}

function Lines({ topology, points, selected, lit }: Pick<Given, "topology" | "selected" | "lit"> & { points: ReadonlyMap<string, Point> }) {
  return [...topology.edges.values()].map((edge) => {
    const [source, target] = [topology.nodes.get(edge.source), topology.nodes.get(edge.target)];
    if (source === undefined || target === undefined) return null;
    const [from, to] = [points.get(source.id) ?? NOWHERE, points.get(target.id) ?? NOWHERE];
    return (
      <EdgeMark
        key={edge.id}
        edge={edge}
        sourceX={from.x}
        sourceY={from.y}
        sourceRadius={RADIUS[source.kind]}
        targetX={to.x}
        targetY={to.y}
        targetRadius={RADIUS[target.kind]}
        isSelected={edge.id === selected}
        isDim={lit !== null && !lit.edges.has(edge.id)}
        way={lit?.edges.get(edge.id)}
      />
    );
  });
}

/** The picture of the network: pointer, touch and keyboard; see the list for the same in a table. */
export function Picture({ topology, places, home, selected, lit, onSelect, onPoint }: Given) {
  const svg = useRef<SVGSVGElement>(null);
  const group = useRef<SVGGElement>(null);
  const points = usePoints(topology, places);
  const zoom = useZoom(svg, group);
  const [focused, setFocused] = useState<string | null>(null);
  const routers = [...topology.nodes.values()].filter((node) => node.owner === null).length;
  const latest = useRef({ topology, places });
  latest.current = { topology, places };
  const onFit = useCallback(() => zoom.fit(bounds(latest.current.topology, latest.current.places)), [zoom]);
  // The network arrives router by router: show all of it until the user has chosen a part.
  const { size } = topology.nodes;
  useEffect(() => {
    if (!zoom.isMoved()) onFit();
  }, [routers, size, zoom, onFit]);
  useEffect(() => {
    const watching = new ResizeObserver(() => {
      if (!zoom.isMoved()) onFit();
    });
    if (svg.current !== null) watching.observe(svg.current);
    return () => watching.disconnect();
  }, [zoom, onFit]);
  const onDrag = (id: string, by: Point): void => {
    const place = places.get(id);
    if (place !== undefined) pin(id, { x: place.x + by.x, y: place.y + by.y, from: place.from });
  };
  const onTogglePin = (id: string): void => {
    const place = places.get(id);
    if (place?.pinned === true) unpin(id);
    else if (place !== undefined) pin(id, place);
  };
  const onPointed = (id: string | null): void => {
    if (id !== null && svg.current?.contains(document.activeElement) === true) setFocused(id);
    onPoint(id);
  };
  useGestures(svg, {
    points,
    zoom,
    onSelect,
    onOpen: (id) => open(topology, id),
    onPoint: onPointed,
    onDrag,
    onTogglePin,
    onFit,
  });
  const tabStop = focused !== null && topology.nodes.has(focused) ? focused : home;
  const described = (node: TopologyNode): string =>
    nodeState(node) === "there" ? nodeName(topology, node) : `${nodeName(topology, node)}, ${nodeState(node)}`;
  return (
    <div className="topology-picture">
      <svg
        ref={svg}
        role="group"
        aria-label="Picture of the network. Arrow keys go from node to node, Enter shows what one is, P pins it, plus and minus zoom."
        data-detail="full"
      >
        <defs>
          <marker id="topology-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
            <path className="topology-arrow" d="M0 0.5L8 4L0 7.5z" />
          </marker>
        </defs>
        <g ref={group}>
          <Lines topology={topology} points={points} selected={selected} lit={lit} />
          {[...topology.nodes.values()].map((node) => (
            <NodeMark
              key={node.id}
              node={node}
              at={points.get(node.id) ?? NOWHERE}
              name={described(node)}
              isHome={node.id === home}
              isSelected={node.id === selected}
              isPinned={places.get(node.id)?.pinned ?? false}
              isTabStop={node.id === tabStop}
              part={partOf(lit, node.id)}
            />
          ))}
        </g>
      </svg>
      <PictureTools zoom={zoom} onFit={onFit} />
    </div>
  );
}
