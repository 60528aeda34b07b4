import type { Row } from "../../model/types";
import { DataTable, type Column } from "../../parts";
import { useTables } from "../../store";
import { LEVELS } from "./entries";

interface CountRow {
  readonly router: string;
  readonly module: string;
  readonly row: Row;
  /** The levels that the module logs, such as "info+". */
  readonly enabled: string;
}

const text = (row: Row | undefined, name: string): string => (typeof row?.[name] === "string" ? row[name] : "");
const moduleOf = (row: Row): string => text(row, "name").replace(/^logStats\//, "") || text(row, "identity").replace(/^logStats\//, "");

/** The values of `enable` of a module that logs the levels of the module DEFAULT; Qpid Dispatch reports "default". */
const FROM_DEFAULT: ReadonlySet<string> = new Set(["", "default"]);

const COLUMNS: readonly Column<CountRow>[] = [
  { key: "router", title: "router", value: ({ router }) => router },
  { key: "module", title: "module", value: ({ module }) => module },
  { key: "enable", title: "logged", value: ({ enabled }) => enabled },
  ...LEVELS.map((level) => ({
    key: level,
    title: level,
    value: ({ row }: CountRow) => row[`${level}Count`],
  })),
];

interface Props {
  readonly router: string;
  readonly onOpen: (router: string, module: string) => void;
}

/** Shows the number of entries of each module of each router, by level, including entries that were not logged. */
export function Counts({ router, onOpen }: Props) {
  const { routers } = useTables({ log: ["module", "enable"], logStats: "all" }, 5_000, router === "" ? undefined : [router]);
  const rows = routers
    .filter((one) => router === "" || one.id === router)
    .flatMap((one) => {
      const enabled = new Map((one.tables["log"] ?? []).map((row) => [text(row, "module"), text(row, "enable")]));
      return (one.tables["logStats"] ?? []).map((row) => {
        const module = moduleOf(row);
        const own = enabled.get(module) ?? "";
        return { router: one.id, module, row, enabled: FROM_DEFAULT.has(own) ? (enabled.get("DEFAULT") ?? "") : own };
      });
    });
  return (
    <DataTable
      label="Entries by module"
      columns={COLUMNS}
      rows={rows}
      rowKey={(row) => `${row.router}\n${row.module}`}
      onOpen={(row) => onOpen(row.router, row.module)}
      exportName="log-counts"
      sortBy={{ key: "module" }}
    />
  );
}
