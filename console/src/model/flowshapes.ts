/** Flows in the form that the diagrams need: a matrix for chords, nodes and links for a Sankey diagram. */

import type { Flow } from "./flow";

/** Names in one ring or column, at most; the smallest ones are merged into "others". */
export const MAX_SHOWN = 40;

/** The ring of a chord diagram: routers, or routers and addresses. */
export interface ChordShape {
  readonly ends: readonly FlowEnd[];
  /** The value that flows from the row's end to the column's end. */
  readonly matrix: readonly (readonly number[])[];
}

/** A router or address in a diagram, or all smaller ones together ("others"). */
export interface FlowEnd {
  readonly kind: "router" | "address" | "others";
  readonly name: string;
}

/** The columns of a Sankey diagram and the streams between them. */
export interface SankeyShape {
  readonly nodes: readonly (FlowEnd & { readonly id: string; readonly column: number })[];
  readonly links: readonly { readonly source: string; readonly target: string; readonly value: number }[];
}

/** Whether a diagram shows routers only, or routers and addresses. */
export type FlowBy = "router" | "address";

const OTHERS: FlowEnd = { kind: "others", name: "" };

/** Return the names with the largest sums, at most MAX_SHOWN, in alphabetical order, so that updates do not reorder them. */
function largest(sums: ReadonlyMap<string, number>): readonly string[] {
  const names = [...sums].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  return names.slice(0, MAX_SHOWN).map(([name]) => name).sort();
}

function sums(flows: readonly Flow[], ...keys: readonly ("from" | "to" | "address")[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const flow of flows) for (const key of keys) found.set(flow[key], (found.get(flow[key]) ?? 0) + flow.value);
  return found;
}

/** The places of names in a ring or column; names that are not shown share the last place. */
class Ends {
  readonly ends: FlowEnd[];
  private readonly places: ReadonlyMap<string, number>;

  constructor(kind: "router" | "address", all: ReadonlyMap<string, number>) {
    const names = largest(all);
    this.ends = names.map((name) => ({ kind, name }));
    this.places = new Map(names.map((name, place) => [name, place]));
    if (all.size > names.length) this.ends.push(OTHERS);
  }

  place(name: string): number {
    return this.places.get(name) ?? this.ends.length - 1;
  }
}

/** Return the ring and matrix: from router to router, or from router to address and from address to router. */
export function chordShape(flows: readonly Flow[], by: FlowBy): ChordShape {
  const routers = new Ends("router", sums(flows, "from", "to"));
  const addresses = by === "address" ? new Ends("address", sums(flows, "address")) : undefined;
  const ends = [...routers.ends, ...(addresses?.ends ?? [])];
  const matrix = ends.map(() => ends.map(() => 0));
  const add = (row: number, column: number, value: number): void => {
    const cells = matrix[row];
    if (cells !== undefined) cells[column] = (cells[column] ?? 0) + value;
  };
  for (const flow of flows) {
    const [from, to] = [routers.place(flow.from), routers.place(flow.to)];
    if (addresses === undefined) add(from, to, flow.value);
    else {
      const address = routers.ends.length + addresses.place(flow.address);
      add(from, address, flow.value);
      add(address, to, flow.value);
    }
  }
  return { ends, matrix };
}

/** Return the columns and streams: routers at which messages enter, addresses (for "address"), routers at which they leave. */
export function sankeyShape(flows: readonly Flow[], by: FlowBy): SankeyShape {
  const columns = [new Ends("router", sums(flows, "from"))];
  if (by === "address") columns.push(new Ends("address", sums(flows, "address")));
  columns.push(new Ends("router", sums(flows, "to")));
  const used = new Set<string>();
  const links = new Map<string, { source: string; target: string; value: number }>();
  for (const flow of flows) {
    const names = by === "address" ? [flow.from, flow.address, flow.to] : [flow.from, flow.to];
    const ids = names.map((name, column) => `${String(column)}/${String(columns[column]?.place(name) ?? 0)}`);
    ids.forEach((id) => used.add(id));
    ids.slice(1).forEach((target, index) => {
      const source = ids[index] ?? "";
      const key = `${source}>${target}`;
      links.set(key, { source, target, value: flow.value + (links.get(key)?.value ?? 0) });
    });
  }
  const nodes = columns.flatMap((column, index) =>
    column.ends.map((end, place) => ({ ...end, id: `${String(index)}/${String(place)}`, column: index })),
  );
  return { nodes: nodes.filter((node) => used.has(node.id)), links: [...links.values()] };
}
