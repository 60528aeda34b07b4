import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import type { Highlight } from "../../model/highlight";
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

interface Props {
  readonly topology: Topology;
  readonly places: Places;
  /** The node id of the connected router. */
  readonly home: string;
  readonly selected: string | null;
  readonly highlight: Highlight | null;
  readonly onSelect: (id: string) => void;
  /** Called with the id of the node below the pointer or with the focus; null for none. */
  readonly onPoint: (node: string | null) => void;
}

function partOf(highlight: Highlight | null, id: string): "plain" | "dim" | "producer" | "consumer" | "both" | "way" {
  return highlight === null ? "plain" : (highlight.nodes.get(id) ?? "dim");
}

const NOWHERE: Point = { x: 0, y: 0 };

function usePoints(topology: Topology, places: Places): ReadonlyMap<string, Point> {
  return useMemo(
    () => new Map([...topology.nodes.keys()].map((id) => [id, pointOf(topology, places, id)])),
    [topology, places],
  );
}

/** Expand a group of edge routers, or collapse the group of an edge router. */
function open(topology: Topology, id: string): void {
  const node = topology.nodes.get(id);
  if (node?.kind === "edges") expand(id, true);
  else if (node?.kind === "edge" && node.owner !== null) expand(`edges:${node.owner}`, false);
}

function Lines({ topology, points, selected, highlight }: Pick<Props, "topology" | "selected" | "highlight"> & { points: ReadonlyMap<string, Point> }) {
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
        isDim={highlight !== null && !highlight.edges.has(edge.id)}
        way={highlight?.edges.get(edge.id)}
      />
    );
  });
}

/** Shows the picture of the network, which the user controls by pointer, touch and keyboard; NetworkList has the same facts. */
export function Picture({ topology, places, home, selected, highlight, onSelect, onPoint }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const group = useRef<SVGGElement>(null);
  const points = usePoints(topology, places);
  const zoom = useZoom(svg, group);
  const [focused, setFocused] = useState<string | null>(null);
  const routers = [...topology.nodes.values()].filter((node) => node.owner === null).length;
  const latest = useRef({ topology, places });
  latest.current = { topology, places };
  const onFit = useCallback(() => zoom.fit(bounds(latest.current.topology, latest.current.places)), [zoom]);
  // The routers answer one after the other: show the whole picture until the user moves it.
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
  const accessibleName = (node: TopologyNode): string =>
    nodeState(node) === "present" ? nodeName(topology, node) : `${nodeName(topology, node)}, ${nodeState(node)}`;
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
          <Lines topology={topology} points={points} selected={selected} highlight={highlight} />
          {[...topology.nodes.values()].map((node) => (
            <NodeMark
              key={node.id}
              node={node}
              at={points.get(node.id) ?? NOWHERE}
              name={accessibleName(node)}
              isHome={node.id === home}
              isSelected={node.id === selected}
              isPinned={places.get(node.id)?.pinned ?? false}
              isTabStop={node.id === tabStop}
              part={partOf(highlight, node.id)}
            />
          ))}
        </g>
      </svg>
      <PictureTools zoom={zoom} onFit={onFit} />
    </div>
  );
}
