import { useState, type ReactNode } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { MenuToggle } from "@patternfly/react-core/dist/esm/components/MenuToggle";
import { SearchInput } from "@patternfly/react-core/dist/esm/components/SearchInput";
import { Select, SelectList, SelectOption } from "@patternfly/react-core/dist/esm/components/Select";

import type { Value } from "../model/types";
import { csvOf, jsonOf } from "./format";
import { save } from "./save";

interface Named {
  readonly key: string;
  readonly title: string;
}

interface Props {
  readonly label: string;
  readonly filter: string;
  readonly onFilter: (text: string) => void;
  readonly columns: readonly Named[];
  readonly visibility: Readonly<Record<string, boolean>>;
  readonly onVisibility: (key: string, isShown: boolean) => void;
  readonly exportName: string;
  /** Return the cells of the visible rows and columns. */
  readonly exported: () => (Value | undefined)[][];
  readonly count: number;
  readonly total: number;
  readonly children?: ReactNode;
}

/** Shows the filter, the choice of columns, the export buttons and the count of rows above a table. */
export function TableTools(props: Props) {
  const { label, filter, onFilter, count, total } = props;
  const shown = props.columns.filter((column) => props.visibility[column.key] === true);
  const exportCsv = (): void =>
    save(`${props.exportName}.csv`, "text/csv", csvOf(shown.map((column) => column.key), props.exported()));
  const exportJson = (): void => {
    const rows = props.exported().map((cells) => Object.fromEntries(shown.map((column, at) => [column.key, cells[at] ?? null])));
    save(`${props.exportName}.json`, "application/json", jsonOf(rows, 2));
  };
  return (
    <div className="console-table-tools">
      <SearchInput
        aria-label={`Filter: ${label}`}
        placeholder="Filter, such as in role:normal -edge"
        value={filter}
        onChange={(_event, text) => onFilter(text)}
        onClear={() => onFilter("")}
      />
      {props.children}
      <ColumnChoice {...props} />
      <Button variant="secondary" onClick={exportCsv}>
        CSV
      </Button>
      <Button variant="secondary" onClick={exportJson}>
        JSON
      </Button>
      <span role="status" className="console-count">
        {`${count === total ? "" : `${count} of `}${total} ${total === 1 ? "row" : "rows"}`}
      </span>
    </div>
  );
}

function ColumnChoice({ columns, visibility, onVisibility }: Props) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <Select
      isOpen={isOpen}
      onOpenChange={setIsOpen}
      onSelect={(_event, key) => onVisibility(String(key), visibility[String(key)] !== true)}
      maxMenuHeight="24rem"
      isScrollable
      toggle={(toggle) => (
        <MenuToggle ref={toggle} isExpanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
          Columns
        </MenuToggle>
      )}
    >
      <SelectList aria-label="Columns to show">
        {columns.map((column) => (
          <SelectOption key={column.key} value={column.key} hasCheckbox isSelected={visibility[column.key] === true}>
            {column.title}
          </SelectOption>
        ))}
      </SelectList>
    </Select>
  );
}
