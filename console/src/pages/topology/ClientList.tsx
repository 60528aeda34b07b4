import { Title } from "@patternfly/react-core/dist/esm/components/Title";
import { useMemo, useState } from "react";

import { addressOfKey } from "../../model/keys";
import { routersById, rowsOf, textOf } from "../../model/rows";
import type { ConnectionRef } from "../../model/topology";
import { linkLoad, type LinkSamples } from "../../model/traffic";
import type { Row, Snapshot } from "../../model/types";
import { nameText } from "../../model/words";
import { DataTable, type Column } from "../../parts";

interface Given {
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

const keyOf = ({ router, row }: ConnectionRef): string => `${router}/${textOf(row, "identity")}`;

const CLIENT_COLUMNS: readonly Column<ConnectionRef>[] = [
  { key: "container", title: "Container", value: ({ row }) => row["container"] },
  { key: "host", title: "Host", value: ({ row }) => row["host"] },
  { key: "user", title: "User", value: ({ row }) => row["user"] },
  { key: "router", title: "Router", value: ({ router }) => router, isHidden: true },
  { key: "identity", title: "Connection", value: ({ row }) => row["identity"], isHidden: true },
];

const LINK_COLUMNS: readonly Column<Link>[] = [
  { key: "address", title: "Address", value: ({ row }) => addressOfKey(textOf(row, "owningAddr")) },
  { key: "direction", title: "Direction", value: ({ row }) => (textOf(row, "linkDir") === "in" ? "sends" : "receives") },
  { key: "rate", title: "Messages/s", value: ({ rate }) => Math.round(rate * 10) / 10 },
  { key: "count", title: "Deliveries", value: ({ row }) => row["deliveryCount"] },
  { key: "undelivered", title: "Undelivered", value: ({ row }) => row["undeliveredCount"], isHidden: true },
  { key: "unsettled", title: "Unsettled", value: ({ row }) => row["unsettledCount"], isHidden: true },
  { key: "load", title: "Load, %", value: ({ row }) => Math.round(linkLoad(row) * 100) },
];

function linksOf(given: Given, chosen: ConnectionRef): readonly Link[] {
  const identity = textOf(chosen.row, "identity");
  const rates = given.samples.get(chosen.router)?.rates;
  return rowsOf(routersById(given.snapshot).get(chosen.router), "router.link")
    .filter((row) => textOf(row, "connectionId") === identity)
    .map((row) => ({ router: chosen.router, row, rate: rates?.get(textOf(row, "identity")) ?? 0 }));
}

/** Clients or brokers, and the links of the one that is chosen. */
export function ClientList(given: Given) {
  const [chosenKey, setChosenKey] = useState("");
  const only = given.connections.length === 1 ? given.connections[0] : undefined;
  const chosen = given.connections.find((connection) => keyOf(connection) === chosenKey) ?? only;
  const links = useMemo(() => (chosen === undefined ? [] : linksOf(given, chosen)), [given, chosen]);
  return (
    <>
      <DataTable
        label={given.title}
        columns={CLIENT_COLUMNS}
        rows={given.connections}
        rowKey={keyOf}
        onOpen={(connection) => setChosenKey(keyOf(connection))}
        exportName="clients"
      />
      {chosen === undefined ? (
        <p className="topology-hint">Choose a row to see its links.</p>
      ) : (
        <>
          <Title headingLevel="h3" size="md">
            Links of <bdi>{nameText(textOf(chosen.row, "container"))}</bdi>
          </Title>
          <DataTable
            label="Links"
            columns={LINK_COLUMNS}
            rows={links}
            rowKey={(link) => textOf(link.row, "identity")}
            exportName="links"
          />
        </>
      )}
    </>
  );
}
