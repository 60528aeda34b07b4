import { memo } from "react";

import type { Point } from "../../model/nearest";
import type { Directions } from "../../model/paths";
import { loadBand } from "../../model/traffic";
import { edgeLabel } from "../../model/words";
import type { TopologyEdge } from "../../model/topology";

interface Props {
  readonly edge: TopologyEdge;
  readonly sourceX: number;
  readonly sourceY: number;
  readonly sourceRadius: number;
  readonly targetX: number;
  readonly targetY: number;
  readonly targetRadius: number;
  readonly isSelected: boolean;
  readonly isDim: boolean;
  /** The directions in which messages of the chosen address go, or the chosen path leads. */
  readonly way: Directions | undefined;
}

/** Room for the head of the arrow and the border of the node, in units of the picture. */
const GAP = 4;

/** Return the width of a line for a rate: about one unit more for ten times the rate. */
const widthFor = (rate: number): number => 1.25 + 1.1 * Math.log10(1 + rate);

function ends(props: Props): { from: Point; to: Point; middle: Point } {
  const [x, y] = [props.targetX - props.sourceX, props.targetY - props.sourceY];
  const length = Math.hypot(x, y) || 1;
  const along = (from: Point, distance: number): Point => ({
    x: Math.round(from.x + (x / length) * distance),
    y: Math.round(from.y + (y / length) * distance),
  });
  const from = along({ x: props.sourceX, y: props.sourceY }, props.sourceRadius + GAP);
  const to = along({ x: props.targetX, y: props.targetY }, -(props.targetRadius + GAP));
  return { from, to, middle: { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 } };
}

const line = (from: Point, to: Point): string => `M${String(from.x)} ${String(from.y)}L${String(to.x)} ${String(to.y)}`;

/** Shows one line of the picture, with an arrow at the end that was dialled. */
export const EdgeMark = memo(function EdgeMark(props: Props) {
  const { edge, isSelected, isDim, way } = props;
  const { from, to, middle } = ends(props);
  const rate = edge.forward + edge.backward;
  const classes = ["topology-edge", edge.kind, `load-${loadBand(edge.load)}`];
  if (edge.goneSince !== null) classes.push("gone");
  if (isSelected) classes.push("selected");
  if (isDim) classes.push("part-dim");
  const label = edge.goneSince === null && edge.kind !== "client" ? edgeLabel(edge) : "";
  return (
    <g className={classes.join(" ")} data-edge={edge.id}>
      <path className="hit" d={line(from, to)} />
      <path className="line" d={line(from, to)} strokeWidth={widthFor(rate)} markerEnd="url(#topology-arrow)" />
      {way?.forward === true && <path className="way" d={line(from, to)} />}
      {way?.backward === true && <path className="way" d={line(to, from)} />}
      {label !== "" && (
        <text className="label" x={middle.x} y={middle.y - 5}>
          {label}
        </text>
      )}
    </g>
  );
});
