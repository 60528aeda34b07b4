import { ExpandableSection } from "@patternfly/react-core/dist/esm/components/ExpandableSection";
import { useState } from "react";

import { LOAD_BANDS } from "../../model/traffic";
import { NodeMark } from "./NodeMark";
import type { TopologyNode } from "../../model/topology";

const PATTERN: TopologyNode = {
  id: "",
  kind: "router",
  name: "",
  owner: null,
  clientKind: null,
  product: "",
  connections: [],
  members: [],
  error: "",
  goneSince: null,
};

type Sample = Pick<TopologyNode, "kind"> & Partial<TopologyNode>;

const SAMPLES: readonly { readonly text: string; readonly sample: Sample; readonly isHome?: boolean }[] = [
  { text: "Router", sample: { kind: "router" } },
  { text: "Router that the console is connected to", sample: { kind: "router" }, isHome: true },
  { text: "Edge router", sample: { kind: "edge" } },
  { text: "Edge routers in a group; double-click or E shows each", sample: { kind: "edges" } },
  { text: "Broker", sample: { kind: "broker" } },
  { text: "Clients that send", sample: { kind: "clients", clientKind: "producer" } },
  { text: "Clients that receive", sample: { kind: "clients", clientKind: "consumer" } },
  { text: "Clients that do both, have no links, or are consoles", sample: { kind: "clients", clientKind: "both" } },
  { text: "Gone", sample: { kind: "router", goneSince: 0 } },
];

function Sign({ sample, isHome }: { sample: Sample; isHome: boolean }) {
  const node = { ...PATTERN, ...sample };
  return (
    <svg className="topology-sign" viewBox="-36 -36 72 72" aria-hidden="true">
      <g className="topology-sign-only">
        <NodeMark node={node} at={{ x: 0, y: 0 }} name="" isHome={isHome} isSelected={false} isPinned={false} isTabStop={false} part="plain" />
      </g>
    </svg>
  );
}

/** Explains the signs, lines and colours of the picture. */
export function Legend() {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <ExpandableSection
      toggleText="Legend"
      className="topology-legend"
      isExpanded={isOpen}
      onToggle={(_event, isExpanded) => setIsOpen(isExpanded)}
    >
      {isOpen && <Signs />}
    </ExpandableSection>
  );
}

function Signs() {
  return (
      <ul>
        {SAMPLES.map(({ text, sample, isHome }) => (
          <li key={text}>
            <Sign sample={sample} isHome={isHome ?? false} />
            {text}
          </li>
        ))}
        {LOAD_BANDS.map((band) => (
          <li key={band.name}>
            <svg className="topology-sign" viewBox="-36 -8 72 16" aria-hidden="true">
              <g className={`topology-edge inter-router load-${band.name}`}>
                <path className="line" d="M-32 0L32 0" strokeWidth={5} />
              </g>
            </svg>
            {`Links are ${band.name}: undelivered and unsettled over capacity from ${String(band.from * 100)} %`}
          </li>
        ))}
        <li>The arrow points to the side that was dialled; the width grows with the messages per second.</li>
      </ul>
  );
}
