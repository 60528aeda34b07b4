import { Title } from "@patternfly/react-core/dist/esm/components/Title";
import { useMemo } from "react";

import type { Lit } from "../../model/lit";
import { loadText } from "../../model/words";
import type { Topology, TopologyEdge, TopologyNode } from "../../model/topology";
import { countOf, nodeName, nodeState } from "../../model/words";
import { DataTable, type Column } from "../../parts";

interface Given {
  readonly topology: Topology;
  readonly lit: Lit | null;
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

function nodeColumns(topology: Topology, lit: Lit | null): readonly Column<TopologyNode>[] {
  const owner = (node: TopologyNode): string =>
    node.owner === null ? "" : nodeName(topology, topology.nodes.get(node.owner));
  const columns: Column<TopologyNode>[] = [
    { key: "name", title: "Name", value: (node) => nodeName(topology, node) },
    { key: "kind", title: "Kind", value: (node) => KINDS[node.kind] },
    { key: "owner", title: "Connected to", value: owner },
    { key: "count", title: "Count", value: countOf },
    { key: "state", title: "State", value: nodeState },
  ];
  if (lit !== null) columns.push({ key: "role", title: "Part", value: (node) => lit.nodes.get(node.id) ?? "" });
  return columns;
}

function edgeColumns(topology: Topology, lit: Lit | null): readonly Column<TopologyEdge>[] {
  const end = (id: string): string => nodeName(topology, topology.nodes.get(id));
  const columns: Column<TopologyEdge>[] = [
    { key: "source", title: "From", value: (edge) => end(edge.source), help: "Who dialled" },
    { key: "target", title: "To", value: (edge) => end(edge.target) },
    { key: "kind", title: "Kind", value: (edge) => edge.kind },
    { key: "cost", title: "Cost", value: (edge) => edge.cost },
    { key: "forward", title: "Messages/s there", value: (edge) => hundredth(edge.forward) },
    { key: "backward", title: "Messages/s back", value: (edge) => hundredth(edge.backward) },
    { key: "load", title: "Load, %", value: (edge) => percent(edge.load), cell: (edge) => loadText(edge.load) },
    { key: "count", title: "Connections", value: (edge) => edge.connections.length },
    { key: "state", title: "State", value: (edge) => (edge.goneSince === null ? "there" : "gone") },
  ];
  if (lit !== null)
    columns.push({
      key: "way",
      title: "Way",
      value: (edge) => {
        const way = lit.edges.get(edge.id);
        return way === undefined ? "" : way.forward && way.backward ? "both ways" : way.forward ? "there" : "back";
      },
    });
  return columns;
}

/** The same facts as the picture in two tables. */
export function NetworkList({ topology, lit, onSelect }: Given) {
  const nodes = useMemo(() => [...topology.nodes.values()], [topology]);
  const edges = useMemo(() => [...topology.edges.values()], [topology]);
  const columnsOfNodes = useMemo(() => nodeColumns(topology, lit), [topology, lit]);
  const columnsOfEdges = useMemo(() => edgeColumns(topology, lit), [topology, lit]);
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
