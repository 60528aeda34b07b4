import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { Title } from "@patternfly/react-core/dist/esm/components/Title";
import TimesIcon from "@patternfly/react-icons/dist/esm/icons/times-icon";
import { useMemo, type ReactNode } from "react";

import { routersById, tableOf, textAt } from "../../model/rows";
import type { Topology, TopologyEdge, TopologyNode } from "../../model/topology";
import type { LinkSamples } from "../../model/traffic";
import { rateText } from "../../model/traffic";
import type { Snapshot } from "../../model/types";
import { edgeName, loadText, nameText, nodeName, nodeState } from "../../model/words";
import { Ago } from "../../parts";
import { useTables } from "../../store";
import { ClientList } from "./ClientList";
import { Facts } from "./Facts";
import { expand, unpin } from "./state";

interface Props {
  readonly topology: Topology;
  readonly snapshot: Snapshot;
  readonly samples: LinkSamples;
  readonly selected: string;
  readonly isPinned: boolean;
  readonly onSelect: (id: string | null) => void;
}

/** Interval at which all attributes of the selected entity are fetched. */
const DETAILS_MS = 5_000;

/** Return a table of one router with all attributes. */
function useAllAttributes(entity: string, router: string): Snapshot {
  const wanted = useMemo(() => ({ [entity]: "all" as const }), [entity]);
  const only = useMemo(() => [router], [router]);
  return useTables(wanted, DETAILS_MS, only);
}

function RouterFacts({ id }: { id: string }) {
  const row = tableOf(routersById(useAllAttributes("router", id)).get(id), "router")[0];
  return row === undefined ? <p>The router has not answered yet.</p> : <Facts row={row} label="Attributes of the router" />;
}

function ConnectionFacts({ router, identity }: { router: string; identity: string }) {
  const rows = tableOf(routersById(useAllAttributes("connection", router)).get(router), "connection");
  const row = rows.find((connection) => textAt(connection, "identity") === identity);
  return row === undefined ? <p>The connection has been closed.</p> : <Facts row={row} label="Attributes of the connection" />;
}

/** Shows the rates, load and cost of a connection in a sentence. */
function EdgeTraffic({ edge }: { edge: TopologyEdge }) {
  if (edge.goneSince !== null) return <Gone since={edge.goneSince} />;
  return (
    <p>
      {`${rateText(edge.forward)} messages/s forward, ${rateText(edge.backward)} back; links ${loadText(edge.load)}`}
      {edge.cost === null ? "" : `; cost ${String(edge.cost)}`}.
    </p>
  );
}

function Gone({ since }: { since: number }) {
  return (
    <p className="topology-gone">
      Gone since {new Date(since).toLocaleTimeString()} (<Ago ms={since} />)
    </p>
  );
}

/** Lists the connections of a node with buttons that select them. */
function Neighbours({ topology, node, onSelect }: Pick<Props, "topology" | "onSelect"> & { node: TopologyNode }) {
  const edges = [...topology.edges.values()].filter((edge) => edge.source === node.id || edge.target === node.id);
  return (
    <>
      <Title headingLevel="h3" size="md">
        Connections
      </Title>
      <ul className="topology-neighbours">
        {edges.map((edge) => (
          <li key={edge.id}>
            <Button variant="link" isInline onClick={() => onSelect(edge.id)}>
              <bdi>
                {edge.source === node.id ? "to " : "from "}
                {nodeName(topology, topology.nodes.get(edge.source === node.id ? edge.target : edge.source))}
              </bdi>
            </Button>
            <EdgeTraffic edge={edge} />
          </li>
        ))}
      </ul>
    </>
  );
}

function NodeFacts({ topology, node, ...rest }: Omit<Props, "selected"> & { node: TopologyNode }) {
  const { snapshot, samples, onSelect } = rest;
  switch (node.kind) {
    case "clients":
    case "broker":
      return (
        <>
          {node.product !== "" && <p>Product: {nameText(node.product)}</p>}
          <ClientList title={nodeName(topology, node)} connections={node.connections} snapshot={snapshot} samples={samples} />
        </>
      );
    case "edges":
      return (
        <>
          <Button variant="secondary" onClick={() => expand(node.id, true)}>
            Show each edge router
          </Button>
          <ul className="topology-neighbours">
            {node.members.slice(0, 100).map((member) => (
              <li key={member}>
                <bdi>{nameText(member.replace("edge:", ""))}</bdi>
              </li>
            ))}
          </ul>
        </>
      );
    case "edge":
    case "router":
      return (
        <>
          {node.kind === "edge" && node.owner !== null && (
            <Button variant="secondary" onClick={() => expand(`edges:${node.owner ?? ""}`, false)}>
              Fold the edge routers into a group
            </Button>
          )}
          <Neighbours topology={topology} node={node} onSelect={onSelect} />
          <RouterFacts id={node.name} />
        </>
      );
  }
}

function Heading({ children, onClose }: { children: ReactNode; onClose: () => void }) {
  return (
    <div className="topology-panel-heading">
      <Title headingLevel="h2" size="lg">
        <bdi>{children}</bdi>
      </Title>
      <Button variant="plain" aria-label="Close the panel" icon={<TimesIcon />} onClick={onClose} />
    </div>
  );
}

/** Shows the selected node or connection: its state, its connections and its attributes. */
export function Details(props: Props) {
  const { topology, selected, isPinned, onSelect } = props;
  const node = topology.nodes.get(selected);
  const edge = topology.edges.get(selected);
  const close = (): void => onSelect(null);
  if (node !== undefined)
    return (
      <aside className="topology-panel" aria-label="Selected">
        <Heading onClose={close}>{nodeName(topology, node)}</Heading>
        {node.goneSince === null ? node.error !== "" && <p>{nodeState(node)}</p> : <Gone since={node.goneSince} />}
        {isPinned && (
          <Button variant="secondary" onClick={() => unpin(node.id)}>
            Unpin
          </Button>
        )}
        <NodeFacts {...props} node={node} />
      </aside>
    );
  if (edge !== undefined)
    return (
      <aside className="topology-panel" aria-label="Selected">
        <Heading onClose={close}>{edgeName(topology, edge)}</Heading>
        <EdgeTraffic edge={edge} />
        {edge.kind === "client" || edge.connections.length > 3 ? (
          <ClientList title="Connections" connections={edge.connections} snapshot={props.snapshot} samples={props.samples} />
        ) : (
          edge.goneSince === null &&
          edge.connections.map(({ router, row }) => (
            <ConnectionFacts key={`${router}/${textAt(row, "identity")}`} router={router} identity={textAt(row, "identity")} />
          ))
        )}
      </aside>
    );
  return (
    <aside className="topology-panel" aria-label="Selected">
      <Heading onClose={close}>Not in the network</Heading>
      <p>The node or connection in this page's URL is not in the network now.</p>
    </aside>
  );
}
