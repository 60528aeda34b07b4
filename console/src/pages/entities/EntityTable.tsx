import { useMemo } from "react";

import type { SchemaType } from "../../model/types";
import { DataTable } from "../../parts";
import type { EntityLocation } from "./location";
import { columnsOf, type EntityRow } from "./rows";

interface Props {
  readonly location: EntityLocation;
  readonly type: SchemaType | undefined;
  readonly rows: readonly EntityRow[];
  readonly isLoading: boolean;
  readonly onOpen: (row: EntityRow) => void;
  readonly onFilter: (text: string) => void;
}

/** Shows all entities of one type in a table. */
export function EntityTable({ location, type, rows, isLoading, onOpen, onFilter }: Props) {
  const isOverAll = location.router === "";
  const hasRows = rows.length > 0;
  // The first rows decide which attributes have values, so that columns do not change with each update.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const columns = useMemo(() => columnsOf(type, rows, isOverAll), [type, isOverAll, hasRows]);
  return (
    <>
      {type !== undefined && <p className="console-about">{type.description}</p>}
      <DataTable
        label={location.entity}
        columns={columns}
        rows={rows}
        rowKey={(row) => `${row.router}\n${row.identity}`}
        onOpen={onOpen}
        exportName={`${location.entity}${isOverAll ? "" : `-${location.router}`}`}
        filter={location.filter}
        onFilter={onFilter}
        empty={isLoading ? "Waiting for the routers..." : `There is no ${location.entity}.`}
      />
    </>
  );
}
