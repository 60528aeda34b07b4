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

import type { Column } from "./column";
import { matches, type Searched } from "./filter";
import { compare, displayText } from "./format";
import { TableGrid } from "./TableGrid";
import { TableTools } from "./TableTools";

interface Props<T> {
  /** The table's name for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** Return the row's unique key, the same at each rendering. */
  readonly rowKey: (row: T) => string;
  /** Called with the row that the user clicks, or on which the user presses Enter. */
  readonly onOpen?: (row: T) => void;
  /** The name of exported files, without the extension. */
  readonly exportName: string;
  /** The text of the filter, for a page that keeps it itself (in its URL, say); needs onFilter. */
  readonly filter?: string;
  readonly onFilter?: (text: string) => void;
  /** The column that the table is sorted by until the user sorts it. */
  readonly sortBy?: { readonly key: string; readonly isDescending?: boolean };
  /** Shown in place of the rows if there are none. */
  readonly empty?: ReactNode;
  /** Further controls beside the filter. */
  readonly tools?: ReactNode;
}

/**
 * Shows a table of any number of rows. The user sorts it by a click on a heading, filters it by words ("orders in",
 * "role:normal"), chooses columns and exports the visible cells as CSV and JSON. Arrow keys, Home, End, Page up and Page down
 * move through the rows, Enter opens one.
 */
export function DataTable<T>(props: Props<T>) {
  const { columns, rows, rowKey, label, onOpen, empty = "Nothing to show" } = props;
  const [ownFilter, setOwnFilter] = useState("");
  const filter = props.filter ?? ownFilter;
  const setFilter = props.onFilter ?? setOwnFilter;
  const wanted = useDeferredValue(filter);
  const [sorting, setSorting] = useState<SortingState>(
    props.sortBy === undefined ? [] : [{ id: props.sortBy.key, desc: props.sortBy.isDescending === true }],
  );
  const [chosen, setChosen] = useState<VisibilityState>({});
  const visibility = useMemo(
    () => Object.fromEntries(columns.map((column) => [column.key, chosen[column.key] ?? column.isHidden !== true])),
    [columns, chosen],
  );

  // The lower-case texts of each row, kept between renderings.
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
    autoResetAll: false,
    getRowId: rowKey,
    // The table has no pages; resetting their number at each update would draw it once more.
    autoResetPageIndex: false,
    getCoreRowModel: getCoreRowModel(),
    getFilteredRowModel: getFilteredRowModel(),
    getSortedRowModel: getSortedRowModel(),
    // The library calls the filter for each column until one matches: only the first column's call is needed, it checks the row.
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
        exportName={props.exportName}
        exported={() => shownRows.map((row) => shownColumns.map((column) => column.value(row.original)))}
        count={shownRows.length}
        total={rows.length}
      >
        {props.tools}
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
    new Map(columns.map((column) => [column.title.toLowerCase(), displayText(column.value(row)).toLowerCase()]));
  if (typeof row !== "object" || row === null) return make();
  const kept = known.get(row);
  if (kept?.size === columns.length) return kept;
  const made = make();
  known.set(row, made);
  return made;
}
