import { sankey } from "d3-sankey";
import { area, curveBumpX } from "d3-shape";
import { useEffect, useMemo, useRef, useState } from "react";

import { sankeyShape, type FlowBy, type FlowEnd, type SankeyShape } from "../../model/flowshapes";
import type { Flow } from "../../model/flow";
import { shown } from "../../model/text";
import { colourOf, endText } from "./ends";

interface Props {
  readonly flows: readonly Flow[];
  readonly by: FlowBy;
  readonly amount: (value: number) => string;
}

type Node = FlowEnd & { readonly id: string; readonly column: number };
type Placed = Node & { readonly x0: number; readonly x1: number };
type Link = SankeyShape["links"][number];

const FIRST_WIDTH = 900;
/** Below this width in pixels names are cut shorter, so that the diagram fits a phone. */
const NARROW = 600;
/** Height of each end in the longest column, in pixels. */
const ROW = 34;
const MIN_HEIGHT = 320;
const LABELS = { wide: 150, narrow: 96 };
/** Characters of a name that fit these widths. */
const NAMES = { wide: 18, narrow: 9 };

interface Edge {
  readonly x: number;
  /** The middle of the stream, and half its height. */
  readonly y: number;
  readonly half: number;
}

const stream = area<Edge>()
  .x((edge) => edge.x)
  .y0((edge) => edge.y - edge.half)
  .y1((edge) => edge.y + edge.half)
  .curve(curveBumpX);

function laidOut(flows: readonly Flow[], by: FlowBy, width: number) {
  const labels = width < NARROW ? LABELS.narrow : LABELS.wide;
  const shape = sankeyShape(flows, by);
  const columns = by === "address" ? 3 : 2;
  const longest = Math.max(...Array.from({ length: columns }, (_, at) => shape.nodes.filter((node) => node.column === at).length));
  const height = Math.max(MIN_HEIGHT, longest * ROW);
  const layout = sankey<Node, Link>()
    .nodeId((node) => node.id)
    .nodeAlign((node) => node.column)
    .nodeSort((one, other) => (one.name < other.name ? -1 : 1))
    .nodeWidth(14)
    .nodePadding(14)
    .extent([
      [labels, 8],
      [width - labels, height - 8],
    ]);
  const graph = layout({ nodes: shape.nodes.map((node) => ({ ...node })), links: shape.links.map((link) => ({ ...link })) });
  return { ...graph, height };
}

/** Shows flows as streams between columns of routers (and addresses); the height of a stream stands for the flow. */
export function SankeyDiagram({ flows, by, amount }: Props) {
  const svg = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(FIRST_WIDTH);
  useEffect(() => {
    const watching = new ResizeObserver(([entry]) => setWidth(Math.max(300, Math.round(entry?.contentRect.width ?? FIRST_WIDTH))));
    if (svg.current !== null) watching.observe(svg.current);
    return () => watching.disconnect();
  }, []);
  const { nodes, links, height } = useMemo(() => laidOut(flows, by, width), [flows, by, width]);
  const maxCharacters = width < NARROW ? NAMES.narrow : NAMES.wide;
  const last = by === "address" ? 2 : 1;
  return (
    <svg
      ref={svg}
      className="flow-diagram wide"
      style={{ height }}
      viewBox={`0 0 ${String(width)} ${String(height)}`}
      role="img"
      aria-label="Sankey diagram of the flows; the table has the same figures."
    >
      {links.map((link) => {
        // The layout has replaced the ids by the nodes.
        const [source, target] = [link.source, link.target] as unknown as [Placed, Placed];
        const half = Math.max(1, link.width ?? 1) / 2;
        return (
          <path
            key={`${source.id}>${target.id}`}
            className={`flow-stream ${colourOf(source)}`}
            d={stream([{ x: source.x1, y: link.y0 ?? 0, half }, { x: target.x0, y: link.y1 ?? 0, half }]) ?? ""}
          >
            <title>{`${endText(source)} → ${endText(target)}: ${amount(link.value)}`}</title>
          </path>
        );
      })}
      {nodes.map((node) => {
        const [left, right, top, bottom] = [node.x0 ?? 0, node.x1 ?? 0, node.y0 ?? 0, node.y1 ?? 0];
        const isFirst = node.column === 0;
        const isOuter = isFirst || node.column === last;
        const x = isFirst ? left - 6 : right + 6;
        return (
          <g key={node.id} className={`flow-end ${node.kind}`}>
            <rect className={`flow-ring ${colourOf(node)}`} x={left} y={top} width={right - left} height={Math.max(1, bottom - top)}>
              <title>{`${endText(node)}: ${amount(node.value ?? 0)}`}</title>
            </rect>
            <text
              className="flow-label"
              x={x}
              y={(top + bottom) / 2}
              dy={isOuter ? "-0.25em" : "0.35em"}
              textAnchor={isFirst ? "end" : "start"}
            >
              {shown(endText(node), maxCharacters)}
              {isOuter && (
                <tspan className="flow-amount" x={x} dy="1.2em">
                  {amount(node.value ?? 0)}
                </tspan>
              )}
            </text>
          </g>
        );
      })}
    </svg>
  );
}
