import { memo } from "react";

import type { Point } from "../../model/nearest";
import { countOf, nodeLabel } from "../../model/words";
import type { HighlightRole } from "../../model/highlight";
import type { TopologyNode } from "../../model/topology";

/** Half the size of each kind of node, in units of the picture. */
export const RADIUS: Readonly<Record<TopologyNode["kind"], number>> = {
  router: 26,
  edges: 20,
  edge: 17,
  broker: 17,
  clients: 14,
};

interface Props {
  readonly node: TopologyNode;
  readonly at: Point;
  /** The name for screen readers. */
  readonly name: string;
  /** Whether the console is connected to this router. */
  readonly isHome: boolean;
  readonly isSelected: boolean;
  readonly isPinned: boolean;
  readonly isTabStop: boolean;
  readonly part: HighlightRole | "dim" | "plain";
}

function hexagon(radius: number): string {
  const corner = (index: number): string => {
    const angle = (Math.PI / 3) * index;
    return `${String(Math.round(radius * Math.cos(angle)))},${String(Math.round(radius * Math.sin(angle)))}`;
  };
  return Array.from({ length: 6 }, (_, index) => corner(index)).join(" ");
}

function Shape({ node }: { node: TopologyNode }) {
  const radius = RADIUS[node.kind];
  switch (node.kind) {
    case "router":
      return <circle className="shape" r={radius} />;
    case "edge":
      return <polygon className="shape" points={hexagon(radius)} />;
    case "edges":
      return (
        <>
          <polygon className="shape behind" points={hexagon(radius)} transform="translate(6 -5)" />
          <polygon className="shape" points={hexagon(radius)} />
        </>
      );
    case "broker":
      return <rect className="shape" x={-radius} y={-radius} width={2 * radius} height={2 * radius} rx={4} />;
    case "clients":
      return <circle className="shape" r={radius} />;
  }
}

const INITIALS: Partial<Record<TopologyNode["kind"], string>> = { router: "R", edge: "E", broker: "B" };

function insideText(node: TopologyNode): string {
  const count = countOf(node);
  return INITIALS[node.kind] ?? (count < 1000 ? String(count) : `${String(Math.round(count / 100) / 10)}k`);
}

/** Shows one node of the picture; it is redrawn only when its properties change. */
export const NodeMark = memo(function NodeMark(props: Props) {
  const { node, at, name, isHome, isSelected, isPinned, isTabStop, part } = props;
  const radius = RADIUS[node.kind];
  const classes = ["topology-node", node.kind, node.clientKind ?? "", `part-${part}`];
  if (node.goneSince !== null) classes.push("gone");
  if (node.error !== "") classes.push("late");
  if (isSelected) classes.push("selected");
  return (
    <g
      className={classes.join(" ")}
      transform={`translate(${String(Math.round(at.x))} ${String(Math.round(at.y))})`}
      data-node={node.id}
      data-drag=""
      role="button"
      tabIndex={isTabStop ? 0 : -1}
      aria-label={name}
      aria-pressed={isSelected}
    >
      <circle className="halo" r={radius + 6} />
      {isHome && <circle className="home" r={radius + 4} />}
      <Shape node={node} />
      <text className="inside" dy="0.35em">
        {insideText(node)}
      </text>
      <text className="label" y={radius + 14}>
        {nodeLabel(node)}
      </text>
      {node.goneSince !== null && (
        <text className="label note" y={radius + 27}>
          gone since {new Date(node.goneSince).toLocaleTimeString()}
        </text>
      )}
      {node.goneSince === null && node.error !== "" && (
        <text className="label note" y={radius + 27}>
          does not answer
        </text>
      )}
      {isPinned && <circle className="pin" cx={radius * 0.8} cy={-radius * 0.8} r={4} />}
    </g>
  );
});
