import { useMemo } from "react";

import type { SchemaType } from "../../model/types";
import { DataTable } from "../../parts";
import type { Place } from "./place";
import { columnsOf, type EntityRow } from "./rows";

interface Given {
  readonly place: Place;
  readonly type: SchemaType | undefined;
  readonly rows: readonly EntityRow[];
  readonly isLoading: boolean;
  readonly onOpen: (row: EntityRow) => void;
  readonly onFilter: (text: string) => void;
}

/** All entities of one type. */
export function EntityTable({ place, type, rows, isLoading, onOpen, onFilter }: Given) {
  const isOverAll = place.router === "";
  const hasRows = rows.length > 0;
  // Which attributes say something is decided by the first rows, so that no column comes and goes with an update.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const columns = useMemo(() => columnsOf(type, rows, isOverAll), [type, isOverAll, hasRows]);
  return (
    <>
      {type !== undefined && <p className="console-about">{type.description}</p>}
      <DataTable
        label={place.entity}
        columns={columns}
        rows={rows}
        rowKey={(row) => `${row.router}\n${row.identity}`}
        onOpen={onOpen}
        exportName={`${place.entity}${isOverAll ? "" : `-${place.router}`}`}
        filter={place.filter}
        onFilter={onFilter}
        empty={isLoading ? "Asking the routers..." : `There is no ${place.entity}.`}
      />
    </>
  );
}
