import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { EmptyState } from "@patternfly/react-core/dist/esm/components/EmptyState";
import { ToggleGroup, ToggleGroupItem } from "@patternfly/react-core/dist/esm/components/ToggleGroup";
import { useCallback, useEffect, useMemo, useState } from "react";
import { useSearchParams } from "react-router-dom";

import { highlightAddress, highlightPath, type Highlight } from "../../model/highlight";
import { knownAddresses } from "../../model/paths";
import type { Topology } from "../../model/topology";
import type { Snapshot } from "../../model/types";
import { plural } from "../../model/words";
import { Page } from "../../parts";
import { AddressSearch } from "./AddressSearch";
import { Details } from "./Details";
import { Legend } from "./Legend";
import { NetworkList } from "./NetworkList";
import { Picture } from "./Picture";
import { expand, forgetGone, useNetworkState } from "./state";
import { useNetwork } from "./useNetwork";
import "./topology.css";
import "./marks.css";
import "./panel.css";

/** Addresses that the search offers, at most; the user can type any other. */
const MAX_OFFERED = 200;

/** Watches the network without drawing anything, so that the page is redrawn only when the picture changes. */
function NetworkWatch() {
  useNetwork();
  return null;
}

/** Return the user's choice `key` (node, address, view), which the page's URL holds, and a function that sets it. */
function useUrlChoice(key: string): readonly [string | null, (value: string | null) => void] {
  const [params, setParams] = useSearchParams();
  const set = useCallback(
    (value: string | null) =>
      setParams(
        (before) => {
          const next = new URLSearchParams(before);
          if (value === null || value === "") next.delete(key);
          else next.set(key, value);
          return next;
        },
        { replace: true },
      ),
    [key, setParams],
  );
  return [params.get(key), set];
}

/** Return the node id of the connected router. */
function homeOf(topology: Topology, snapshot: Snapshot): string {
  const home = snapshot.routers.find((router) => router.address === "")?.id ?? "";
  return topology.nodes.has(`router:${home}`) ? `router:${home}` : `edge:${home}`;
}

const idOf = (node: string | null): string | null => (node?.startsWith("router:") === true ? node.slice(7) : null);

interface Chosen {
  readonly address: string | null;
  readonly selected: string | null;
  readonly pointed: string | null;
  readonly home: string;
}

/** Return the highlight: the path from the selected or connected router to the pointed one, else the searched address. */
function useHighlight(drawn: Topology, snapshot: Snapshot, { address, selected, pointed, home }: Chosen): Highlight | null {
  return useMemo(() => {
    const [from, to] = [idOf(selected) ?? idOf(home), idOf(pointed)];
    if (to !== null && from !== null && to !== from && drawn.nodes.get(`router:${to}`)?.goneSince === null)
      return highlightPath(drawn, snapshot, from, to);
    return address === null ? null : highlightAddress(drawn, snapshot, address);
  }, [drawn, snapshot, address, selected, pointed, home]);
}

/** Expand the group of an edge router that the page's URL names. */
function useUnfolded(whole: Topology, drawn: Topology, selected: string | null): void {
  useEffect(() => {
    const node = selected === null ? undefined : whole.nodes.get(selected);
    const edge = node?.owner?.startsWith("edge:") === true ? whole.nodes.get(node.owner) : node;
    if (edge?.kind === "edge" && edge.owner !== null && !drawn.nodes.has(edge.id)) expand(`edges:${edge.owner}`, true);
  }, [whole, drawn, selected]);
}

function summary(topology: Topology): string {
  const nodes = [...topology.nodes.values()];
  const count = (kind: string): number => nodes.filter((node) => node.kind === kind && node.goneSince === null).length;
  const clients = nodes.reduce((sum, node) => sum + (node.kind === "clients" ? node.connections.length : 0), 0);
  const goneCount = nodes.filter((node) => node.goneSince !== null).length;
  const parts = [
    [count("router"), "router"],
    [count("edge"), "edge router"],
    [count("broker"), "broker"],
    [clients, "client"],
  ] as const;
  const text = parts.filter(([number]) => number > 0).map(([number, word]) => plural(number, word));
  return [...text, ...(goneCount > 0 ? [`${String(goneCount)} gone`] : [])].join(", ");
}

/** Shows the operator a live picture of routers, edge routers, brokers and clients, or the same facts in tables. */
export default function TopologyPage() {
  const { whole, drawn, places, snapshot, samples } = useNetworkState();
  const [selected, setSelected] = useUrlChoice("node");
  const [address, setAddress] = useUrlChoice("address");
  const [view, setView] = useUrlChoice("view");
  const [pointed, setPointed] = useState<string | null>(null);
  const home = homeOf(drawn, snapshot);
  useUnfolded(whole, drawn, selected);
  const highlight = useHighlight(drawn, snapshot, { address, selected, pointed, home });
  const offered = useMemo(() => knownAddresses(snapshot, MAX_OFFERED), [snapshot]);
  const hasGone = [...drawn.nodes.values(), ...drawn.edges.values()].some((entry) => entry.goneSince !== null);
  const isList = view === "list";
  return (
    <Page
      title="Topology"
      actions={
        <>
          <AddressSearch address={address} offered={offered} onAddress={setAddress} />
          {hasGone && (
            <Button variant="secondary" onClick={forgetGone}>
              Remove gone entries
            </Button>
          )}
          <ToggleGroup aria-label="View">
            <ToggleGroupItem text="Picture" isSelected={!isList} onChange={() => setView(null)} />
            <ToggleGroupItem text="List" isSelected={isList} onChange={() => setView("list")} />
          </ToggleGroup>
        </>
      }
    >
      <NetworkWatch />
      {drawn.nodes.size === 0 ? (
        <EmptyState titleText="No router has answered yet" headingLevel="h2" />
      ) : (
        <div className={selected === null ? "topology" : "topology with-panel"}>
          <div className="topology-main">
            <p className="topology-status" role="status">
              {highlight?.text ?? summary(whole)}
            </p>
            {isList ? (
              <NetworkList topology={drawn} highlight={highlight} onSelect={setSelected} />
            ) : (
              <Picture
                topology={drawn}
                places={places}
                home={home}
                selected={selected}
                highlight={highlight}
                onSelect={setSelected}
                onPoint={setPointed}
              />
            )}
            {!isList && <Legend />}
          </div>
          {selected !== null && (
            <Details
              key={selected}
              topology={drawn}
              snapshot={snapshot}
              samples={samples}
              selected={selected}
              isPinned={places.get(selected)?.pinned ?? false}
              onSelect={setSelected}
            />
          )}
        </div>
      )}
    </Page>
  );
}
