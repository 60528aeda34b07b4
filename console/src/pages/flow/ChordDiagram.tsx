import { chordDirected, ribbonArrow, type Chord, type ChordGroup, type Ribbon } from "d3-chord";
import { arc } from "d3-shape";
import { useMemo } from "react";

import { chordShape, type FlowBy, type FlowEnd } from "../../model/flowshapes";
import type { Flow } from "../../model/flow";
import { colourOf, endText } from "./ends";

interface Props {
  readonly flows: readonly Flow[];
  readonly by: FlowBy;
  /** Return a value as text with its unit. */
  readonly amount: (value: number) => string;
}

const SIZE = 640;
const OUTER = SIZE / 2 - 90;
/** With more ends than this their names are rotated, so that they do not overlap. */
const MAX_UPRIGHT = 14;
const INNER = OUTER - 14;
const SPACE = 0.04;

const ring = arc<ChordGroup>().innerRadius(INNER).outerRadius(OUTER);
const ribbon = ribbonArrow<unknown, Ribbon, Chord>().radius(INNER - 2).headRadius(14);
const OTHERS: FlowEnd = { kind: "others", name: "" };

function Label({ group, end, isUpright }: { group: ChordGroup; end: FlowEnd; isUpright: boolean }) {
  const angle = (group.startAngle + group.endAngle) / 2;
  const isLeft = angle > Math.PI;
  if (isUpright)
    return (
      <text
        className="flow-label"
        x={(OUTER + 10) * Math.sin(angle)}
        y={-(OUTER + 10) * Math.cos(angle)}
        textAnchor={isLeft ? "end" : "start"}
        dy="0.35em"
      >
        {endText(end)}
      </text>
    );
  const turn = (angle * 180) / Math.PI - 90;
  return (
    <text
      className="flow-label"
      transform={`rotate(${String(turn)}) translate(${String(OUTER + 8)}) ${isLeft ? "rotate(180)" : ""}`}
      textAnchor={isLeft ? "end" : "start"}
      dy="0.35em"
    >
      {endText(end)}
    </text>
  );
}

/** Shows flows as arrows between routers (and addresses) on a ring; the width of an arrow stands for the flow. */
export function ChordDiagram({ flows, by, amount }: Props) {
  const { ends, chords } = useMemo(() => {
    const shape = chordShape(flows, by);
    const matrix = shape.matrix.map((row) => [...row]);
    return { ends: shape.ends, chords: chordDirected().padAngle(Math.min(SPACE, 2 / (matrix.length + 1)))(matrix) };
  }, [flows, by]);
  const endAt = (index: number): FlowEnd => ends[index] ?? OTHERS;
  return (
    <svg className="flow-diagram" viewBox={`${String(-SIZE / 2)} ${String(-SIZE / 2)} ${String(SIZE)} ${String(SIZE)}`} role="img" aria-label="Chord diagram of the flows; the table has the same figures.">
      {chords.map((chord) => {
        const [from, to] = [endAt(chord.source.index), endAt(chord.target.index)];
        return (
          <path
            key={`${String(chord.source.index)}>${String(chord.target.index)}`}
            className={`flow-ribbon ${colourOf(from)}`}
            d={(ribbon as unknown as (chord: Chord) => string)(chord)}
          >
            <title>{`${endText(from)} → ${endText(to)}: ${amount(chord.source.value)}`}</title>
          </path>
        );
      })}
      {chords.groups.map((group) => {
        const end = endAt(group.index);
        return (
          <g key={group.index} className={`flow-end ${end.kind}`}>
            <path className={`flow-ring ${colourOf(end)}`} d={ring(group) ?? ""}>
              <title>{`${endText(end)}: ${amount(group.value)}`}</title>
            </path>
            {group.endAngle > group.startAngle && <Label group={group} end={end} isUpright={ends.length <= MAX_UPRIGHT} />}
          </g>
        );
      })}
    </svg>
  );
}
