import { useMemo } from "react";
import { Label } from "@patternfly/react-core/dist/esm/components/Label";
import { useNavigate } from "react-router-dom";

import type { OpenChange } from "../../model/changes";
import { NETWORK_TABLES, policiesOf, routerStates, SEVERITIES, type RouterState } from "../../model/network";
import { count, duration } from "../../model/numbers";
import { shown } from "../../model/text";
import { agoText, DataTable, momentText, Page, useNow, Value, type Column } from "../../parts";
import { Panel } from "../common/Panel";
import { useSupportedTables, useTableAbsence } from "../common/tables";
import { locationPath } from "../entities/location";
import { useOpenChanges } from "./useOpenChanges";

const EVERY_MS = 4_000;
/** Characters of a digest, as `trouter network status` shows it. */
const DIGEST_CHARACTERS = 8;
/** How long before its end a certificate is a warning. */
const SOON_MS = 7 * 86_400_000;

/** Shows every router of the network with its state, findings, version, policy and drain, and the changes that are open; `trouter network` makes them. */
export default function Network() {
  const snapshot = useSupportedTables(NETWORK_TABLES, EVERY_MS);
  const absence = useTableAbsence(snapshot, "router");
  const navigate = useNavigate();
  const now = Math.floor(useNow() / 60_000) * 60_000;
  const states = useMemo(() => routerStates(snapshot), [snapshot]);
  const columns = useMemo(() => columnsOf(now), [now]);
  const policies = policiesOf(states);
  const answering = snapshot.routers.filter((router) => router.isSilent !== true && router.tables["router"] !== undefined);
  const changes = useOpenChanges(answering, EVERY_MS);
  const answered = states.filter(({ state }) => state !== "" && state !== "no answer").length;
  return (
    <Page title="Network">
      <div className="console-panels">
        <Panel title={`${answered} of ${count(states.length, "router")} answered`} absence={absence} isWide>
          {policies.length > 1 && (
            <p role="status">
              <Label status="warning" isCompact>
                Warning
              </Label>{" "}
              The routers have {policies.length} policies:{" "}
              <bdi>
                {policies.map(([digest, routers]) => `${shown(digest, DIGEST_CHARACTERS)} at ${routers.map((id) => shown(id)).join(", ")}`).join("; ")}
              </bdi>
            </p>
          )}
          {changes.map((change) => (
            <Unfinished key={change.id} change={change} />
          ))}
          <DataTable
            label="Routers of the network"
            columns={columns}
            rows={states}
            rowKey={(row) => row.id}
            exportName="network"
            onOpen={({ id }) => navigate(locationPath({ entity: "finding", router: id, identity: "" }))}
          />
        </Panel>
      </div>
    </Page>
  );
}

function Unfinished({ change }: { change: OpenChange }) {
  return (
    <p role="status">
      <Label status="warning" isCompact>
        Warning
      </Label>{" "}
      The change {change.id} by <bdi>{shown(change.by)}</bdi>, of {momentText(change.at)}, is not finished: <bdi>{change.places}</bdi>.{" "}
      <code>{change.resume}</code> goes on with it, <code>{change.abandon}</code> takes it back.
    </p>
  );
}

function columnsOf(now: number): readonly Column<RouterState>[] {
  return [
    { key: "id", title: "Router", value: (row) => row.id, cell: (row) => <bdi>{shown(row.id)}</bdi> },
    { key: "mode", title: "Mode", value: (row) => row.mode },
    { key: "state", title: "State", value: (row) => row.state, cell: (row) => <State state={row.state} /> },
    { key: "version", title: "Version", value: (row) => row.version, cell: (row) => <bdi>{shown(row.version)}</bdi> },
    { key: "uptime", title: "Uptime", value: (row) => row.uptime, cell: (row) => (row.uptime === null ? "–" : duration(row.uptime)) },
    { key: "workers", title: "Workers", value: (row) => row.workers },
    { key: "connections", title: "Connections", value: (row) => row.connections },
    { key: "blocked", title: "Blocked links", value: (row) => row.blocked },
    { key: "stuck", title: "Stuck deliveries", value: (row) => row.stuck },
    {
      key: "findings",
      title: "Findings",
      help: "What the router finds in its configuration; the row leads to them",
      value: (row) => findingsText(row),
      cell: (row) => <Findings row={row} />,
    },
    {
      key: "certificate",
      title: "Certificate ends",
      help: "The first of its certificates to expire",
      value: (row) => row.certificateEnds,
      cell: (row) => <Certificate ends={row.certificateEnds} now={now} />,
    },
    {
      key: "policy",
      title: "Policy",
      help: "The digest of its policy: routers with the same one decide alike",
      value: (row) => row.policy,
      cell: (row) => <code>{shown(row.policy, DIGEST_CHARACTERS)}</code>,
    },
    { key: "fault", title: "Fault", value: (row) => row.fault, cell: (row) => <Value value={row.fault} /> },
  ];
}

function State({ state }: { state: string }) {
  if (state === "") return "–";
  const status = state === "up" ? "success" : state === "no answer" ? "danger" : "warning";
  return (
    <Label status={status} isCompact>
      {state}
    </Label>
  );
}

function findingsText({ findings }: RouterState): string {
  if (findings === null) return "";
  const told = SEVERITIES.filter((severity) => findings[severity] > 0).map((severity) => `${findings[severity]} ${severity}`);
  return told.join(", ") || "none";
}

function Findings({ row }: { row: RouterState }) {
  const { findings } = row;
  if (findings === null) return "–";
  if (findings.problem + findings.unsafe === 0) return findingsText(row);
  return (
    <Label status={findings.problem > 0 ? "danger" : "warning"} isCompact>
      {findingsText(row)}
    </Label>
  );
}

function Certificate({ ends, now }: { ends: number | null; now: number }) {
  if (ends === null) return "–";
  const text = <span title={momentText(ends)}>{agoText(ends, now)}</span>;
  if (ends - now > SOON_MS) return text;
  return (
    <Label status={ends <= now ? "danger" : "warning"} isCompact>
      {text}
    </Label>
  );
}
