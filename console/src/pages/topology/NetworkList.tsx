import { Title } from "@patternfly/react-core/dist/esm/components/Title";
import { useMemo } from "react";

import type { Highlight } from "../../model/highlight";
import { loadText } from "../../model/words";
import type { Topology, TopologyEdge, TopologyNode } from "../../model/topology";
import { countOf, nodeName, nodeState } from "../../model/words";
import { DataTable, type Column } from "../../parts";

interface Props {
  readonly topology: Topology;
  readonly highlight: Highlight | null;
  readonly onSelect: (id: string) => void;
}

const KINDS: Readonly<Record<TopologyNode["kind"], string>> = {
  router: "router",
  edge: "edge router",
  edges: "edge routers",
  broker: "broker",
  clients: "clients",
};

const hundredth = (value: number): number => Math.round(value * 100) / 100;
const percent = (load: number): number => Math.round(load * 100);

function nodeColumns(topology: Topology, highlight: Highlight | null): readonly Column<TopologyNode>[] {
  const owner = (node: TopologyNode): string =>
    node.owner === null ? "" : nodeName(topology, topology.nodes.get(node.owner));
  const columns: Column<TopologyNode>[] = [
    { key: "name", title: "Name", value: (node) => nodeName(topology, node) },
    { key: "kind", title: "Kind", value: (node) => KINDS[node.kind] },
    { key: "owner", title: "Connected to", value: owner },
    { key: "count", title: "Count", value: countOf },
    { key: "state", title: "State", value: nodeState },
  ];
  if (highlight !== null) columns.push({ key: "role", title: "Role", value: (node) => highlight.nodes.get(node.id) ?? "" });
  return columns;
}

function edgeColumns(topology: Topology, highlight: Highlight | null): readonly Column<TopologyEdge>[] {
  const end = (id: string): string => nodeName(topology, topology.nodes.get(id));
  const columns: Column<TopologyEdge>[] = [
    { key: "source", title: "From", value: (edge) => end(edge.source), help: "The end that dialled" },
    { key: "target", title: "To", value: (edge) => end(edge.target) },
    { key: "kind", title: "Kind", value: (edge) => edge.kind },
    { key: "cost", title: "Cost", value: (edge) => edge.cost },
    { key: "forward", title: "Messages/s forward", value: (edge) => hundredth(edge.forward) },
    { key: "backward", title: "Messages/s back", value: (edge) => hundredth(edge.backward) },
    { key: "load", title: "Load, %", value: (edge) => percent(edge.load), cell: (edge) => loadText(edge.load) },
    { key: "count", title: "Connections", value: (edge) => edge.connections.length },
    { key: "state", title: "State", value: (edge) => (edge.goneSince === null ? "present" : "gone") },
  ];
  if (highlight !== null)
    columns.push({
      key: "way",
      title: "Direction",
      value: (edge) => {
        const way = highlight.edges.get(edge.id);
        return way === undefined ? "" : way.forward && way.backward ? "both" : way.forward ? "forward" : "back";
      },
    });
  return columns;
}

/** Shows the facts of the picture in two tables: nodes and connections. */
export function NetworkList({ topology, highlight, onSelect }: Props) {
  const nodes = useMemo(() => [...topology.nodes.values()], [topology]);
  const edges = useMemo(() => [...topology.edges.values()], [topology]);
  const columnsOfNodes = useMemo(() => nodeColumns(topology, highlight), [topology, highlight]);
  const columnsOfEdges = useMemo(() => edgeColumns(topology, highlight), [topology, highlight]);
  return (
    <div className="topology-lists">
      <Title headingLevel="h2" size="lg">
        Routers, brokers and clients
      </Title>
      <DataTable
        label="Routers, brokers and clients"
        columns={columnsOfNodes}
        rows={nodes}
        rowKey={(node) => node.id}
        onOpen={(node) => onSelect(node.id)}
        exportName="topology"
      />
      <Title headingLevel="h2" size="lg">
        Connections
      </Title>
      <DataTable
        label="Connections"
        columns={columnsOfEdges}
        rows={edges}
        rowKey={(edge) => edge.id}
        onOpen={(edge) => onSelect(edge.id)}
        exportName="connections"
      />
    </div>
  );
}
