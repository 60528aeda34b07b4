import { useMemo } from "react";

import { shownRate } from "../../model/numbers";
import { activeAddresses, type ActiveAddress } from "../../model/overview";
import type { Snapshot } from "../../model/types";
import { DataTable, type Column } from "../../parts";
import { useTablePairs, useTableAbsence } from "../common/tables";
import { Panel } from "../common/Panel";

const COLUMNS: readonly Column<ActiveAddress>[] = [
  { key: "address", title: "Address", value: (row) => row.text },
  { key: "kind", title: "Class", value: (row) => row.kind },
  { key: "phase", title: "Phase", value: (row) => row.phase, isHidden: true },
  { key: "distribution", title: "Distribution", value: (row) => row.distribution },
  { key: "consumers", title: "Consumers", value: (row) => row.counts.subscriberCount + row.counts.inProcess },
  { key: "ingress", title: "In /s", value: (row) => row.ingress, cell: (row) => shownRate(row.ingress) },
  { key: "egress", title: "Out /s", value: (row) => row.egress, cell: (row) => shownRate(row.egress) },
  { key: "in", title: "In", value: (row) => row.counts.deliveriesIngress },
  { key: "out", title: "Out", value: (row) => row.counts.deliveriesEgress },
  { key: "transit", title: "Transit", value: (row) => row.counts.deliveriesTransit },
  { key: "routers", title: "Routers", value: (row) => row.routers.join(", ") },
];

interface Props {
  readonly snapshot: Snapshot;
  readonly onOpen: (name: string) => void;
}

/** Lists the addresses of clients, each summed over all routers. */
export function AddressList({ snapshot, onOpen }: Props) {
  const pairs = useTablePairs(snapshot, "router.address");
  const absence = useTableAbsence(snapshot, "router.address");
  const rows = useMemo(() => activeAddresses(snapshot, pairs, Infinity), [snapshot, pairs]);
  return (
    <Panel title="Addresses of clients" absence={absence}>
      <DataTable
        label="Addresses"
        columns={COLUMNS}
        rows={rows}
        rowKey={(row) => row.key}
        onOpen={(row) => onOpen(row.text)}
        sortBy={{ key: "address" }}
        exportName="addresses"
        empty="No address is in use."
      />
    </Panel>
  );
}
