import { useId, useMemo, useRef, useState, type CSSProperties, type KeyboardEvent, type MouseEvent, type ReactNode } from "react";
import type { Row as TableRow, SortingState } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";

import type { Column } from "./column";
import { displayText } from "./format";
import { Value } from "./Value";

const ROW_PX = 34;
/** Rows drawn above and below the visible ones, so that scrolling shows no gap. */
const OVERSCAN = 12;
/** The texts of so many rows decide the width of a column. */
const MEASURED_ROWS = 200;
/** The width of a column, in characters. */
const MIN_CHARACTERS = 8;
const MAX_CHARACTERS = 44;

interface Props<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly TableRow<T>[];
  readonly sorting: SortingState;
  readonly onSort: (key: string, isMulti: boolean) => void;
  readonly onOpen: ((row: T) => void) | undefined;
  readonly empty: ReactNode;
}

const clamp = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high);

/** Return the width of a column in characters, by the texts of the first rows. */
function widthOf<T>(column: Column<T>, rows: readonly TableRow<T>[]): number {
  const lengths = rows.slice(0, MEASURED_ROWS).map((row) => displayText(column.value(row.original)).length + 1);
  return clamp(Math.max(column.title.length + 3, ...lengths), MIN_CHARACTERS, MAX_CHARACTERS);
}

/** Shows the rows of a DataTable; only the visible rows are in the document. */
export function TableGrid<T>({ label, columns, rows, sorting, onSort, onOpen, empty }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const id = useId();
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
    initialRect: { width: 800, height: 600 },
  });
  // Widths that followed each update would make the columns jump under the pointer.
  const isEmpty = rows.length === 0;
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const widths = useMemo(() => columns.map((column) => widthOf(column, rows)), [columns.map((column) => column.key).join(), isEmpty]);
  const items = virtual.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const current = clamp(active, 0, Math.max(rows.length - 1, 0));

  const go = (index: number): void => {
    const next = clamp(index, 0, rows.length - 1);
    setActive(next);
    virtual.scrollToIndex(next);
  };
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => go(current + 1),
    ArrowUp: () => go(current - 1),
    PageDown: () => go(current + Math.floor((scroller.current?.clientHeight ?? 340) / ROW_PX) - 1),
    PageUp: () => go(current - Math.floor((scroller.current?.clientHeight ?? 340) / ROW_PX) + 1),
    Home: () => go(0),
    End: () => go(rows.length - 1),
    Enter: () => open(current),
  };
  const open = (index: number): void => {
    const row = rows[index];
    if (row !== undefined) onOpen?.(row.original);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    const act = keys[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  };
  const onClick = (event: MouseEvent<HTMLElement>): void => {
    const target = event.target as HTMLElement;
    // A click on a button, link or field within a cell does not open the row.
    if (target.closest("a, button, input, select") !== null) return;
    const index = target.closest("tr")?.dataset["index"];
    if (index === undefined) return;
    setActive(Number(index));
    open(Number(index));
  };
  return (
    <div ref={scroller} className="console-scroll" style={{ "--rows": Math.min(rows.length + 1, 60) } as CSSProperties}>
      <table
        role="grid"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        aria-activedescendant={rows.length === 0 ? undefined : `${id}-${current}`}
        tabIndex={0}
        onKeyDown={onKey}
        onClick={onClick}
        className={onOpen === undefined ? "console-grid" : "console-grid console-opens"}
        style={{ minWidth: `${widths.reduce((sum, width) => sum + width + 2, 0)}ch` }}
      >
        <colgroup>
          {columns.map((column, index) => (
            <col key={column.key} style={{ width: `${(widths[index] ?? MIN_CHARACTERS) + 2}ch` }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <Heading key={column.key} column={column} sorting={sorting} onSort={onSort} />
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <Spacer height={before} span={columns.length} />}
          {items.map((item) => {
            const row = rows[item.index];
            return row === undefined ? null : (
              <tr
                key={row.id}
                id={`${id}-${item.index}`}
                data-index={item.index}
                aria-rowindex={item.index + 2}
                aria-selected={item.index === current}
                style={{ height: ROW_PX }}
              >
                {columns.map((column) => (
                  <td key={column.key} className={isNumeric(column.value(row.original)) ? "console-number" : undefined}>
                    {column.cell?.(row.original) ?? <Value value={column.value(row.original)} />}
                  </td>
                ))}
              </tr>
            );
          })}
          {after > 0 && <Spacer height={after} span={columns.length} />}
        </tbody>
      </table>
      {isEmpty && <p className="console-empty">{empty}</p>}
    </div>
  );
}

const isNumeric = (value: unknown): boolean => typeof value === "number" || typeof value === "bigint";

function Spacer({ height, span }: { height: number; span: number }) {
  return (
    <tr aria-hidden style={{ height }}>
      <td colSpan={span} />
    </tr>
  );
}

interface HeadingProps<T> {
  readonly column: Column<T>;
  readonly sorting: SortingState;
  readonly onSort: (key: string, isMulti: boolean) => void;
}

function Heading<T>({ column, sorting, onSort }: HeadingProps<T>) {
  const sort = sorting.find((one) => one.id === column.key);
  const order = sort === undefined ? "none" : sort.desc ? "descending" : "ascending";
  return (
    <th scope="col" aria-sort={order} title={column.help}>
      <button type="button" onClick={(event) => onSort(column.key, event.shiftKey)}>
        {column.title}
        <span aria-hidden className="console-sort">
          {sort === undefined ? "" : sort.desc ? " ▼" : " ▲"}
        </span>
      </button>
    </th>
  );
}
