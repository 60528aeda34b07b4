import { useMemo } from "react";

import { OUTCOMES, addressView, type AddressLink, type AddressOnRouter, type Outcome } from "../../model/address";
import { duration, numberOf, textOf } from "../../model/numbers";
import type { Snapshot } from "../../model/types";
import { DataTable, type Column } from "../../parts";
import { useTableAbsence } from "../common/tables";
import { Panel } from "../common/Panel";
import { Explanations } from "./Explanations";

const outcomes = Object.entries(OUTCOMES) as [Outcome, string][];

const common: readonly Column<AddressLink>[] = [
  { key: "container", title: "Container", value: (row) => row.container },
  { key: "user", title: "User", value: (row) => row.user, isHidden: true },
  { key: "host", title: "Host", value: (row) => row.host },
  { key: "router", title: "Router", value: (row) => row.router },
  { key: "link", title: "Link", value: (row) => row.link, isHidden: true },
  { key: "name", title: "Name", value: (row) => row.name, isHidden: true },
  { key: "connection", title: "Connection", value: (row) => row.connection, isHidden: true },
  { key: "credit", title: "Credit", value: (row) => row.credit },
  {
    key: "blocked",
    title: "No credit for",
    value: (row) => row.noCreditSeconds,
    cell: (row) => (row.noCreditSeconds > 0 ? duration(row.noCreditSeconds) : ""),
  },
];

const load: readonly Column<AddressLink>[] = [
  { key: "unsettled", title: "Unsettled", value: (row) => row.unsettled },
  { key: "stuck", title: "Stuck", value: (row) => row.stuck, help: "Unsettled for more than ten seconds now" },
  { key: "rate", title: "Settled /s", value: (row) => row.settleRate },
  { key: "deliveries", title: "Deliveries", value: (row) => row.deliveries },
  ...outcomes.map(([name, title]) => ({
    key: name,
    title: title.charAt(0).toUpperCase() + title.slice(1),
    value: (row: AddressLink) => row.outcomes[name],
    isHidden: name === "droppedPresettledCount" || name === "presettledCount",
  })),
];

const CONSUMERS: readonly Column<AddressLink>[] = [
  ...common,
  { key: "undelivered", title: "Waiting", value: (row) => row.undelivered, help: "Deliveries that wait to be sent" },
  ...load,
];
const PRODUCERS: readonly Column<AddressLink>[] = [...common, ...load];

const cell = (name: string) => (row: AddressOnRouter) => (row.row === undefined ? null : numberOf(row.row[name]));

const ROUTERS: readonly Column<AddressOnRouter>[] = [
  { key: "router", title: "Router", value: (row) => row.router },
  { key: "known", title: "Distribution", value: (row) => (row.row === undefined ? "not in use" : textOf(row.row["distribution"])) },
  { key: "consumers", title: "Receivers", value: (row) => row.consumers },
  { key: "producers", title: "Senders", value: (row) => row.producers },
  { key: "remote", title: "Remote", value: cell("remoteCount"), help: "Other routers with consumers" },
  { key: "in", title: "In", value: cell("deliveriesIngress") },
  { key: "out", title: "Out", value: cell("deliveriesEgress") },
  { key: "transit", title: "Transit", value: cell("deliveriesTransit") },
  { key: "fallback", title: "To fallback", value: cell("deliveriesRedirectedToFallback"), isHidden: true },
  ...outcomes.map(([name, title]) => ({
    key: name,
    title: title.charAt(0).toUpperCase() + title.slice(1),
    value: (row: AddressOnRouter) => row.outcomes[name],
  })),
];

const keyOf = (row: AddressLink): string => `${row.router} ${row.link}`;

/** Shows one address: the explanation of each router, its links, and the outcomes by router. */
export function Details({ snapshot, name }: { snapshot: Snapshot; name: string }) {
  const view = useMemo(() => addressView(snapshot, name), [snapshot, name]);
  const linksAbsence = useTableAbsence(snapshot, "router.link");
  const addressesAbsence = useTableAbsence(snapshot, "router.address");
  return (
    <div className="console-panels">
      <Explanations name={name} view={view} routers={snapshot.routers} />
      <Panel title={`Consumers (${view.consumers.length})`} absence={linksAbsence} isWide>
        <DataTable
          label="Consumers"
          columns={CONSUMERS}
          rows={view.consumers}
          rowKey={keyOf}
          exportName="consumers"
          empty="No client receives from it."
        />
      </Panel>
      <Panel title={`Producers (${view.producers.length})`} absence={linksAbsence} isWide>
        <DataTable
          label="Producers"
          columns={PRODUCERS}
          rows={view.producers}
          rowKey={keyOf}
          exportName="producers"
          empty="No client sends to it."
        />
      </Panel>
      <Panel title="Deliveries and outcomes by router" absence={addressesAbsence} isWide>
        <DataTable
          label="Outcomes by router"
          columns={ROUTERS}
          rows={view.routers}
          rowKey={(row) => row.router}
          exportName="outcomes"
        />
      </Panel>
    </div>
  );
}
