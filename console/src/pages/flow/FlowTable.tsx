import { useMemo } from "react";

import type { Flow, FlowMeasure } from "../../model/flow";
import { DataTable, type Column } from "../../parts";

function columnsFor(measure: FlowMeasure): readonly Column<Flow>[] {
  return [
    { key: "from", title: "Entered at", value: (flow) => flow.from, help: "The router that the sender is connected to" },
    { key: "address", title: "Address", value: (flow) => flow.address || "(internal)" },
    { key: "to", title: "Left at", value: (flow) => flow.to, help: "The router that the receiver is connected to" },
    {
      key: "value",
      title: measure === "rate" ? "Messages/s" : "Messages",
      value: (flow) => (measure === "rate" ? Math.round(flow.value * 100) / 100 : flow.value),
    },
  ];
}

/** Shows the flows in a table. */
export function FlowTable({ flows, measure }: { flows: readonly Flow[]; measure: FlowMeasure }) {
  const columns = useMemo(() => columnsFor(measure), [measure]);
  return (
    <DataTable
      label="Flows"
      columns={columns}
      rows={flows}
      rowKey={(flow) => [flow.from, flow.address, flow.to].join("\n")}
      exportName="flows"
      sortBy={{ key: "value", isDescending: true }}
    />
  );
}
