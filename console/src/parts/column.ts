import type { ReactNode } from "react";

import type { Value as AmqpValue } from "../model/types";

/** A column of a DataTable. */
export interface Column<T> {
  readonly key: string;
  readonly title: string;
  /** Return the value that the column sorts, filters and exports by, and that it shows unless there is `cell`. */
  readonly value: (row: T) => AmqpValue | undefined;
  /** Return the content of the cell. */
  readonly cell?: (row: T) => ReactNode;
  /** Hidden until the user chooses the column. */
  readonly isHidden?: boolean;
  /** The tooltip of the column's heading. */
  readonly help?: string;
}
