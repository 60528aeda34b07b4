import { useDeferredValue, useMemo, useRef, useState, type ReactNode } from "react";
import {
  getCoreRowModel,
  getFilteredRowModel,
  getSortedRowModel,
  useReactTable,
  type ColumnDef,
  type SortingState,
  type VisibilityState,
} from "@tanstack/react-table";

import type { Value as AmqpValue } from "../model/types";
import { matches, type Searched } from "./filter";
import { compare, textOf } from "./format";
import { TableGrid } from "./TableGrid";
import { TableTools } from "./TableTools";

/** A column of a DataTable. */
export interface Column<T> {
  readonly key: string;
  readonly title: string;
  /** What the column sorts, filters and exports by, and shows unless `cell` does. */
  readonly value: (row: T) => AmqpValue | undefined;
  readonly cell?: (row: T) => ReactNode;
  /** Hidden until it is chosen. */
  readonly isHidden?: boolean;
  /** What the column's title means, shown when the pointer rests on it. */
  readonly help?: string;
}

interface Given<T> {
  /** What the table lists, for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** Return what tells a row from all others, the same at each rendering. */
  readonly rowKey: (row: T) => string;
  /** Called with the row that was clicked, or on which Enter was pressed. */
  readonly onOpen?: (row: T) => void;
  /** The name of exported files, without its ending. */
  readonly exportName: string;
  /** The text of the filter, where the page keeps it (in its address, say); with onFilter. */
  readonly filter?: string;
  readonly onFilter?: (text: string) => void;
  /** The column to sort by at first. */
  readonly sortBy?: { readonly key: string; readonly isDescending?: boolean };
  /** What stands in place of the rows when there are none. */
  readonly empty?: ReactNode;
  /** Further choices beside the filter. */
  readonly tools?: ReactNode;
}

/**
 * A table of any number of rows: sorted by a click on a heading, filtered by words ("orders in", "role:normal"), with a
 * choice of columns and export of what is shown as CSV and JSON. Arrow keys, Home, End, Page up and Page down move, Enter opens.
 */
export function DataTable<T>(given: Given<T>) {
  const { columns, rows, rowKey, label, onOpen, empty = "Nothing to show" } = given;
  const [ownFilter, setOwnFilter] = useState("");
  const filter = given.filter ?? ownFilter;
  const setFilter = given.onFilter ?? setOwnFilter;
  const wanted = useDeferredValue(filter);
  const [sorting, setSorting] = useState<SortingState>(
    given.sortBy === undefined ? [] : [{ id: given.sortBy.key, desc: given.sortBy.isDescending === true }],
  );
  const [chosen, setChosen] = useState<VisibilityState>({});
  const visibility = useMemo(
    () => Object.fromEntries(columns.map((column) => [column.key, chosen[column.key] ?? column.isHidden !== true])),
    [columns, chosen],
  );

  // Kept between renderings while neither the columns nor what a row is change.
  const searched = useRef(new WeakMap<object, Searched>());
  const definitions = useMemo<ColumnDef<T>[]>(
    () =>
      columns.map((column) => ({
        id: column.key,
        accessorFn: column.value,
        header: column.title,
        sortingFn: (one, other) => compare(column.value(one.original), column.value(other.original)),
        sortDescFirst: false,
      })),
    [columns],
  );
  const data = useMemo(() => [...rows], [rows]);
  const sortable = useMemo(
    () => sorting.filter((sort) => columns.some((column) => column.key === sort.id)),
    [sorting, columns],
  );
  const table = useReactTable<T>({
    data,
    columns: definitions,
    state: { sorting: sortable, globalFilter: wanted, columnVisibility: visibility },
    onSortingChange: setSorting,
    // There are no pages to go back to the first of.
    autoResetAll: false,
    getRowId: rowKey,
    // There are no pages; setting their number anew for each update would draw the table once more.
    autoResetPageIndex: false,
    getCoreRowModel: getCoreRowModel(),
    getFilteredRowModel: getFilteredRowModel(),
    getSortedRowModel: getSortedRowModel(),
    // Called for each column until one matches: the first call answers for the whole row.
    getColumnCanGlobalFilter: (column) => column.id === columns[0]?.key,
    globalFilterFn: (row, _column, text: string) => matches(text, searchedOf(row.original, columns, searched.current)),
  });
  const shownRows = table.getRowModel().rows;
  const shownColumns = columns.filter((column) => visibility[column.key] === true);
  return (
    <div className="console-table">
      <TableTools
        label={label}
        filter={filter}
        onFilter={setFilter}
        columns={columns}
        visibility={visibility}
        onVisibility={(key, isShown) => setChosen({ ...chosen, [key]: isShown })}
        exportName={given.exportName}
        exported={() => shownRows.map((row) => shownColumns.map((column) => column.value(row.original)))}
        count={shownRows.length}
        total={rows.length}
      >
        {given.tools}
      </TableTools>
      <TableGrid
        label={label}
        columns={shownColumns}
        rows={shownRows}
        sorting={sortable}
        onSort={(key, isMulti) => table.getColumn(key)?.toggleSorting(undefined, isMulti)}
        onOpen={onOpen}
        empty={empty}
      />
    </div>
  );
}

function searchedOf<T>(row: T, columns: readonly Column<T>[], known: WeakMap<object, Searched>): Searched {
  const make = (): Searched =>
    new Map(columns.map((column) => [column.title.toLowerCase(), textOf(column.value(row)).toLowerCase()]));
  if (typeof row !== "object" || row === null) return make();
  const kept = known.get(row);
  if (kept?.size === columns.length) return kept;
  const made = make();
  known.set(row, made);
  return made;
}
