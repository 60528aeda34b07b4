import { Title } from "@patternfly/react-core/dist/esm/components/Title";
import { useMemo, useState } from "react";

import { addressOfKey } from "../../model/addresskey";
import { routersById, tableOf, textAt } from "../../model/rows";
import type { ConnectionRef } from "../../model/topology";
import { linkLoad, type LinkSamples } from "../../model/traffic";
import type { Row, Snapshot } from "../../model/types";
import { nameText } from "../../model/words";
import { DataTable, type Column } from "../../parts";

interface Props {
  readonly title: string;
  readonly connections: readonly ConnectionRef[];
  readonly snapshot: Snapshot;
  readonly samples: LinkSamples;
}

interface Link {
  readonly router: string;
  readonly row: Row;
  readonly rate: number;
}

const keyOf = ({ router, row }: ConnectionRef): string => `${router}/${textAt(row, "identity")}`;

const CLIENT_COLUMNS: readonly Column<ConnectionRef>[] = [
  { key: "container", title: "Container", value: ({ row }) => row["container"] },
  { key: "host", title: "Host", value: ({ row }) => row["host"] },
  { key: "user", title: "User", value: ({ row }) => row["user"] },
  { key: "router", title: "Router", value: ({ router }) => router, isHidden: true },
  { key: "identity", title: "Connection", value: ({ row }) => row["identity"], isHidden: true },
];

const WORKER_COLUMN: Column<ConnectionRef> = { key: "worker", title: "Worker", value: ({ row }) => row["worker"] };

const LINK_COLUMNS: readonly Column<Link>[] = [
  { key: "address", title: "Address", value: ({ row }) => addressOfKey(textAt(row, "owningAddr")) },
  { key: "direction", title: "Direction", value: ({ row }) => (textAt(row, "linkDir") === "in" ? "sends" : "receives") },
  { key: "rate", title: "Messages/s", value: ({ rate }) => Math.round(rate * 10) / 10 },
  { key: "count", title: "Deliveries", value: ({ row }) => row["deliveryCount"] },
  { key: "undelivered", title: "Undelivered", value: ({ row }) => row["undeliveredCount"], isHidden: true },
  { key: "unsettled", title: "Unsettled", value: ({ row }) => row["unsettledCount"], isHidden: true },
  { key: "load", title: "Load, %", value: ({ row }) => Math.round(linkLoad(row) * 100) },
];

function linksOf(props: Props, chosen: ConnectionRef): readonly Link[] {
  const identity = textAt(chosen.row, "identity");
  const rates = props.samples.get(chosen.router)?.rates;
  return tableOf(routersById(props.snapshot).get(chosen.router), "router.link")
    .filter((row) => textAt(row, "connectionId") === identity)
    .map((row) => ({ router: chosen.router, row, rate: rates?.get(textAt(row, "identity")) ?? 0 }));
}

/** Lists clients or brokers, and the links of the chosen one. */
export function ClientList(props: Props) {
  const [chosenKey, setChosenKey] = useState("");
  const only = props.connections.length === 1 ? props.connections[0] : undefined;
  const chosen = props.connections.find((connection) => keyOf(connection) === chosenKey) ?? only;
  const hasWorkers = props.connections.some(({ row }) => row["worker"] !== undefined);
  const columns = useMemo(() => (hasWorkers ? [...CLIENT_COLUMNS, WORKER_COLUMN] : CLIENT_COLUMNS), [hasWorkers]);
  const links = useMemo(() => (chosen === undefined ? [] : linksOf(props, chosen)), [props, chosen]);
  return (
    <>
      <DataTable
        label={props.title}
        columns={columns}
        rows={props.connections}
        rowKey={keyOf}
        onOpen={(connection) => setChosenKey(keyOf(connection))}
        exportName="clients"
      />
      {chosen === undefined ? (
        <p className="topology-hint">Choose a row to see its links.</p>
      ) : (
        <>
          <Title headingLevel="h3" size="md">
            Links of <bdi>{nameText(textAt(chosen.row, "container"))}</bdi>
          </Title>
          <DataTable
            label="Links"
            columns={LINK_COLUMNS}
            rows={links}
            rowKey={(link) => textAt(link.row, "identity")}
            exportName="links"
          />
        </>
      )}
    </>
  );
}
