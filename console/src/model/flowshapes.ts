/** Flows as the shapes that diagrams are drawn from: a matrix for chords, nodes and links for a Sankey. */

import type { Flow } from "./flow";

/** More than this in one ring or column is not readable: the smallest become one. */
export const MOST_SHOWN = 40;

/** Rings of ends: routers, or routers and addresses. */
export interface ChordShape {
  readonly ends: readonly FlowEnd[];
  /** What goes from the row's end to the column's end. */
  readonly matrix: readonly (readonly number[])[];
}

export interface FlowEnd {
  readonly kind: "router" | "address" | "others";
  readonly name: string;
}

export interface SankeyShape {
  readonly nodes: readonly (FlowEnd & { readonly id: string; readonly column: number })[];
  readonly links: readonly { readonly source: string; readonly target: string; readonly value: number }[];
}

export type FlowBy = "router" | "address";

const OTHERS: FlowEnd = { kind: "others", name: "" };

/** Return the names with the largest sums, at most MOST_SHOWN, in alphabetical order so that they keep their places. */
function largest(sums: ReadonlyMap<string, number>): readonly string[] {
  const names = [...sums].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
  return names.slice(0, MOST_SHOWN).map(([name]) => name).sort();
}

function sums(flows: readonly Flow[], ...keys: readonly ("from" | "to" | "address")[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const flow of flows) for (const key of keys) found.set(flow[key], (found.get(flow[key]) ?? 0) + flow.value);
  return found;
}

/** Knows the place of each name in a ring or column; those that are not shown share the last one. */
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

/** Return the chord matrix: router to router, or router to address and address to router. */
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

/** Return the Sankey's columns: routers where messages come in, addresses (if asked for), routers where they leave. */
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
