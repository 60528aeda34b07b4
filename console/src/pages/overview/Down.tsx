import { useMemo } from "react";
import { useNavigate } from "react-router-dom";

import { downParts, refusedClients, type DownPart, type Refused } from "../../model/down";
import { shown } from "../../model/text";
import type { Snapshot } from "../../model/types";
import { Ago, DataTable, momentText, Value, type Column } from "../../parts";
import { Panel } from "../common/Panel";
import { useTableAbsence } from "../common/tables";
import { locationPath } from "../entities/location";

const NAME_CHARACTERS = 120;

const COLUMNS: readonly Column<DownPart>[] = [
  { key: "kind", title: "What", value: (row) => row.kind },
  { key: "name", title: "Name", value: (row) => row.name, cell: (row) => <bdi>{shown(row.name, NAME_CHARACTERS)}</bdi> },
  { key: "router", title: "Router", value: (row) => row.router },
  {
    key: "since",
    title: "Down since",
    value: (row) => (row.since === null ? "" : momentText(row.since)),
    cell: (row) => (row.since === null ? "–" : <Ago ms={row.since} />),
  },
  { key: "attempts", title: "Attempts", value: (row) => row.attempts, help: "Attempts to connect, or to attach the link" },
  { key: "reason", title: "Last error", value: (row) => row.reason, cell: (row) => <Value value={row.reason} /> },
  { key: "state", title: "State", value: (row) => row.state, isHidden: true },
];

/** Shows by name what is down of all that the configuration connects: connectors, uplinks, auto links, link routes. */
export function Down({ snapshot }: { snapshot: Snapshot }) {
  const navigate = useNavigate();
  const absence = useTableAbsence(snapshot, "connector");
  const parts = useMemo(() => downParts(snapshot), [snapshot]);
  return (
    <Panel title={parts.length === 0 ? "What is down" : `What is down (${parts.length})`} id="overview-down" absence={absence} isWide>
      {parts.length === 0 ? (
        <p>Nothing is down: every connector, uplink, auto link and link route is up.</p>
      ) : (
        <DataTable
          label="What is down"
          columns={COLUMNS}
          rows={parts}
          rowKey={(row) => row.key}
          exportName="down"
          onOpen={({ entity, router, identity }) => navigate(locationPath({ entity, router, identity }))}
        />
      )}
    </Panel>
  );
}

const REFUSED: readonly Column<Refused>[] = [
  { key: "router", title: "Router", value: (row) => row.router },
  { key: "denied", title: "Logins denied", value: (row) => row.denied, help: "Since the router started" },
  {
    key: "handshakes",
    title: "Handshakes refused",
    value: (row) => row.handshakes,
    help: "Connections refused before their open since the router started, by reason",
  },
  { key: "locked", title: "Locked out", value: (row) => row.locked, help: "Users whose logins are locked now" },
  {
    key: "away",
    title: "Turned away",
    value: (row) => row.turnedAway,
    help: "Connections closed before their handshake since the router started: a decision blocks the host, it connects too fast, or it has too many handshakes open",
  },
];

/** Shows how many clients each router refuses; a row leads to the denials. */
export function RefusedClients({ snapshot }: { snapshot: Snapshot }) {
  const navigate = useNavigate();
  const absence = useTableAbsence(snapshot, "router");
  const rows = useMemo(() => refusedClients(snapshot), [snapshot]);
  return (
    <Panel title="Who is refused" id="overview-refused" absence={absence}>
      <DataTable
        label="Who is refused"
        columns={REFUSED}
        rows={rows}
        rowKey={(row) => row.router}
        exportName="refused"
        onOpen={() => navigate("/policy/denials")}
      />
    </Panel>
  );
}
