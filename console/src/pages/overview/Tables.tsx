import { useMemo, useState } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Link, useNavigate } from "react-router-dom";

import { addressPage } from "../../model/alarms";
import { duration, numberOf, shownRate, textOf } from "../../model/numbers";
import type { ActiveAddress, DelayedConnection } from "../../model/overview";
import { singleRow, rateOf, type TablePairs } from "../../model/rates";
import { shown } from "../../model/text";
import type { Snapshot } from "../../model/types";
import { DataTable, Value, type Column } from "../../parts";
import { useSession } from "../../store";
import { Destroy } from "../common/Destroy";

const NAME_CHARACTERS = 120;

const ADDRESSES: readonly Column<ActiveAddress>[] = [
  {
    key: "address",
    title: "Address",
    value: (row) => row.text,
    cell: (row) => (
      <Link to={addressPage(row.text)}>
        <bdi>{shown(row.text, NAME_CHARACTERS)}</bdi>
      </Link>
    ),
  },
  { key: "in", title: "In /s", value: (row) => row.ingress, cell: (row) => shownRate(row.ingress) },
  { key: "out", title: "Out /s", value: (row) => row.egress, cell: (row) => shownRate(row.egress) },
  { key: "consumers", title: "Consumers", value: (row) => row.counts.subscriberCount },
];

/** Shows the addresses with the most deliveries per second. */
export function Active({ addresses }: { addresses: readonly ActiveAddress[] }) {
  return (
    <DataTable
      label="Most active addresses"
      columns={ADDRESSES}
      rows={addresses}
      rowKey={(row) => row.key}
      exportName="active-addresses"
      empty="No address is in use."
    />
  );
}

const DELAYED: readonly Column<DelayedConnection>[] = [
  { key: "container", title: "Container", value: (row) => row.container },
  { key: "host", title: "Host", value: (row) => row.host },
  { key: "router", title: "Router", value: (row) => row.router },
  { key: "rate", title: "Delayed /s", value: (row) => row.rate, cell: (row) => shownRate(row.rate) },
  { key: "delayed", title: "Delayed", value: (row) => row.delayed, help: "Deliveries settled later than after a second" },
  { key: "stuck", title: "Stuck", value: (row) => row.stuck, help: "Deliveries unsettled for more than ten seconds now" },
];

/** Shows the connections with delayed deliveries; a login that may close connections gets a button for each. */
export function Delayed({ connections }: { connections: readonly DelayedConnection[] }) {
  const { can, routers } = useSession();
  const [toClose, setToClose] = useState<DelayedConnection>();
  const mayClose = can("UPDATE", "connection");
  const columns = useMemo(() => (mayClose ? [...DELAYED, closeColumn(setToClose)] : DELAYED), [mayClose]);
  const router = routers.find((one) => one.id === toClose?.router);
  return (
    <>
      <DataTable
        label="Connections with delayed deliveries"
        columns={columns}
        rows={connections}
        rowKey={(row) => row.key}
        exportName="delayed-connections"
        empty="No delivery is late."
      />
      {toClose !== undefined && router !== undefined && (
        <Destroy
          entity="connection"
          name={shown(toClose.container, 200)}
          identity={toClose.id}
          router={router.id}
          address={router.address}
          isClose
          onEnd={() => setToClose(undefined)}
        />
      )}
    </>
  );
}

/** Return the column of buttons that close the connections of clients. Routers and brokers would reconnect at once. */
const closeColumn = (onClose: (row: DelayedConnection) => void): Column<DelayedConnection> => ({
  key: "close",
  title: "Close",
  value: () => "",
  cell: (row) =>
    row.role === "normal" && (
      <Button variant="link" isInline aria-label={`Close ${shown(row.container, 200)}`} onClick={() => onClose(row)}>
        Close
      </Button>
    ),
});

interface RouterLine {
  readonly id: string;
  readonly error: string;
  readonly mode: string;
  readonly version: string;
  readonly uptime: number | null;
  readonly ingress: number | null;
  readonly egress: number | null;
  readonly connections: number | null;
  readonly links: number | null;
  readonly addresses: number | null;
  readonly stuck: number | null;
  readonly blocked: number | null;
}

const ROUTERS: readonly Column<RouterLine>[] = [
  { key: "id", title: "Router", value: (row) => row.id },
  {
    key: "state",
    title: "State",
    value: (row) => (row.error === "" ? "answers" : row.error),
    cell: (row) => (row.error === "" ? "answers" : <Value value={row.error} />),
  },
  { key: "mode", title: "Mode", value: (row) => row.mode },
  { key: "version", title: "Version", value: (row) => row.version },
  { key: "uptime", title: "Uptime", value: (row) => row.uptime, cell: (row) => (row.uptime === null ? "" : duration(row.uptime)) },
  { key: "in", title: "In /s", value: (row) => row.ingress, cell: (row) => shownRate(row.ingress) },
  { key: "out", title: "Out /s", value: (row) => row.egress, cell: (row) => shownRate(row.egress) },
  { key: "connections", title: "Connections", value: (row) => row.connections },
  { key: "links", title: "Links", value: (row) => row.links },
  { key: "addresses", title: "Addresses", value: (row) => row.addresses },
  { key: "stuck", title: "Stuck", value: (row) => row.stuck, help: "Deliveries unsettled for more than ten seconds now" },
  { key: "blocked", title: "Blocked links", value: (row) => row.blocked, help: "Links without credit for ten seconds" },
];

/** Shows each router with its state and figures. */
export function Routers({ snapshot, pairs }: { snapshot: Snapshot; pairs: TablePairs }) {
  const navigate = useNavigate();
  const rows = useMemo(
    () =>
      snapshot.routers.map((router): RouterLine => {
        const row = singleRow(router, "router") ?? {};
        const number = (name: string): number | null => numberOf(row[name]);
        return {
          id: router.id,
          error: router.error ?? "",
          mode: textOf(row["mode"]),
          version: textOf(row["version"]),
          uptime: number("uptimeSeconds"),
          ingress: rateOf(pairs.get(router.id), "deliveriesIngress"),
          egress: rateOf(pairs.get(router.id), "deliveriesEgress"),
          connections: number("connectionCount"),
          links: number("linkCount"),
          addresses: number("addrCount"),
          stuck: number("deliveriesStuck"),
          blocked: number("blockedLinkCount"),
        };
      }),
    [snapshot, pairs],
  );
  return (
    <DataTable
      label="Routers"
      columns={ROUTERS}
      rows={rows}
      rowKey={(row) => row.id}
      exportName="routers"
      onOpen={() => navigate("/topology")}
    />
  );
}
