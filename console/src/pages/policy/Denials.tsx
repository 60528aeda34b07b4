import { useMemo } from "react";

import { denialsOf, type Denial } from "../../model/policy";
import type { Snapshot } from "../../model/types";
import { Ago, DataTable, momentText, type Column } from "../../parts";
import { useTableAbsence } from "../common/tables";
import { Panel } from "../common/Panel";

const OPERATIONS: Readonly<Record<string, string>> = {
  login: "Log in",
  accept: "Connect",
  open: "Open a connection",
  begin: "Begin a session",
  attach: "Attach a link",
  send: "Send a message",
  manage: "Manage",
};

const COLUMNS: readonly Column<Denial>[] = [
  { key: "at", title: "When", value: (row) => momentText(row.at), cell: (row) => <Ago ms={row.at} /> },
  { key: "count", title: "Count", value: (row) => row.count },
  { key: "operation", title: "Operation", value: (row) => OPERATIONS[row.operation] ?? row.operation },
  { key: "user", title: "User", value: (row) => row.user || "(no name)" },
  { key: "host", title: "Host", value: (row) => row.host },
  { key: "about", title: "About", value: (row) => row.about },
  { key: "reason", title: "Reason", value: (row) => row.reason },
  { key: "rule", title: "Rule", value: (row) => row.rule },
  { key: "vhost", title: "Vhost", value: (row) => row.vhost, isHidden: true },
  { key: "router", title: "Router", value: (row) => row.router },
];

/** Shows the denials of all routers as they arrive, the newest first. */
export function Denials({ snapshot }: { snapshot: Snapshot }) {
  const absence = useTableAbsence(snapshot, "denial");
  const rows = useMemo(() => denialsOf(snapshot), [snapshot]);
  return (
    <Panel title="Denials, the newest first" absence={absence} isWide>
      <DataTable
        label="Denials"
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => row.key}
        exportName="denials"
        empty="Nothing was denied since the routers started."
      />
    </Panel>
  );
}
