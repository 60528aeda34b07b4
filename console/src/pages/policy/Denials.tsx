import { useMemo } from "react";

import { denialsOf, type DenialLine } from "../../model/policy";
import type { Snapshot } from "../../model/types";
import { Ago, DataTable, momentText, type Column } from "../../parts";
import { useMissing } from "../common/known";
import { Panel } from "../common/Panel";

const WHAT: Readonly<Record<string, string>> = {
  login: "Log in",
  accept: "Connect",
  open: "Open a connection",
  begin: "Begin a session",
  attach: "Attach a link",
  send: "Send a message",
  manage: "Manage",
};

const COLUMNS: readonly Column<DenialLine>[] = [
  { key: "at", title: "When", value: (row) => momentText(row.at), cell: (row) => <Ago ms={row.at} /> },
  { key: "count", title: "Times", value: (row) => row.count },
  { key: "operation", title: "What", value: (row) => WHAT[row.operation] ?? row.operation },
  { key: "user", title: "User", value: (row) => row.user || "(no name)" },
  { key: "host", title: "Host", value: (row) => row.host },
  { key: "about", title: "About", value: (row) => row.about },
  { key: "reason", title: "Reason", value: (row) => row.reason },
  { key: "rule", title: "Rule", value: (row) => row.rule },
  { key: "vhost", title: "Vhost", value: (row) => row.vhost, isHidden: true },
  { key: "router", title: "Router", value: (row) => row.router },
];

/** What was denied lately, as it comes, the newest first. */
export function Denials({ snapshot }: { snapshot: Snapshot }) {
  const missing = useMissing(snapshot, "denial");
  const rows = useMemo(() => denialsOf(snapshot), [snapshot]);
  return (
    <Panel title="Denials, the newest first" missing={missing} isWide>
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
