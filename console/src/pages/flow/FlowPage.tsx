import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";
import { Switch } from "@patternfly/react-core/dist/esm/components/Switch";
import { useMemo } from "react";
import { useSearchParams } from "react-router-dom";

import { filterFlows, type Flow, type FlowMeasure } from "../../model/flow";
import type { FlowBy } from "../../model/flowshapes";
import { rateText } from "../../model/traffic";
import { nameText } from "../../model/words";
import { Page } from "../../parts";
import { ChordDiagram } from "./ChordDiagram";
import { Choice } from "./Choice";
import { Filters, sumsBy } from "./Filters";
import { FlowTable } from "./FlowTable";
import { SankeyDiagram } from "./SankeyDiagram";
import { useFlows } from "./useFlows";
import "./flow.css";

type View = "chord" | "sankey" | "table";

const VIEWS = [
  ["chord", "Chords"],
  ["sankey", "Sankey"],
  ["table", "Table"],
] as const;
const BY = [
  ["router", "Routers"],
  ["address", "Routers and addresses"],
] as const;
const MEASURES = [
  ["rate", "Per second"],
  ["total", "Total"],
] as const;

const whole = new Intl.NumberFormat();

function chosenOf<T extends string>(choices: readonly (readonly [T, string])[], value: string | null, first: T): T {
  return choices.find(([key]) => key === value)?.[0] ?? first;
}

/** Return the user's choices, which the page's URL holds, and a function that sets one. */
function useUrlChoices() {
  const [params, setParams] = useSearchParams();
  const set = (key: string, values: readonly string[]): void =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        next.delete(key);
        for (const value of values) next.append(key, value);
        return next;
      },
      { replace: true },
    );
  const names = (key: string): ReadonlySet<string> | null => {
    const all = params.getAll(key);
    return all.length === 0 ? null : new Set(all);
  };
  return {
    view: chosenOf<View>(VIEWS, params.get("view"), "chord"),
    by: chosenOf<FlowBy>(BY, params.get("by"), "router"),
    measure: chosenOf<FlowMeasure>(MEASURES, params.get("measure"), "rate"),
    withInternal: params.get("internal") === "yes",
    addresses: names("address"),
    routers: names("router"),
    set,
  };
}

function Diagram({ view, by, flows, measure }: { view: View; by: FlowBy; flows: readonly Flow[]; measure: FlowMeasure }) {
  const amount = useMemo(() => amountFor(measure), [measure]);
  if (view === "table") return <FlowTable flows={flows} measure={measure} />;
  if (flows.length === 0)
    return (
      <EmptyState titleText="Nothing flows" headingLevel="h2">
        <EmptyStateBody>
          {measure === "rate"
            ? "No client has received a message since the page was opened, or the filters hide all flows."
            : "No client that is connected now has received a message, or the filters hide all flows."}
        </EmptyStateBody>
      </EmptyState>
    );
  return view === "chord" ? (
    <ChordDiagram flows={flows} by={by} amount={amount} />
  ) : (
    <SankeyDiagram flows={flows} by={by} amount={amount} />
  );
}

const amountFor =
  (measure: FlowMeasure) =>
  (value: number): string =>
    measure === "rate" ? `${rateText(value)}/s` : whole.format(value);

function statusText(flows: readonly Flow[], measure: FlowMeasure, overMs: number, silent: readonly string[]): string {
  const sum = amountFor(measure)(flows.reduce((all, flow) => all + flow.value, 0));
  const subject =
    measure === "rate"
      ? `${sum} to clients, mean over ${String(Math.round(overMs / 1000))} s`
      : `${sum} messages to the clients that are connected now`;
  const silentText = silent.length === 0 ? "" : ` No answer from: ${silent.slice(0, 5).map(nameText).join(", ")}.`;
  return `${subject}.${silentText}`;
}

/** Shows the operator how many messages flow between which routers by which address: as chords, as a Sankey diagram or in a table. */
export default function FlowPage() {
  const { view, by, measure, withInternal, addresses, routers, set } = useUrlChoices();
  const { flows, overMs, silent } = useFlows(measure);
  const all = useMemo(
    () => filterFlows(flows ?? [], { addresses: null, routers: null, withInternal }),
    [flows, withInternal],
  );
  const shown = filterFlows(all, { addresses, routers, withInternal });
  const amount = amountFor(measure);
  return (
    <Page
      title="Message flow"
      actions={
        <>
          <Choice label="View" choices={VIEWS} chosen={view} onChoose={(value) => set("view", [value])} />
          {view !== "table" && <Choice label="By" choices={BY} chosen={by} onChoose={(value) => set("by", [value])} />}
          <Choice label="Measure" choices={MEASURES} chosen={measure} onChoose={(value) => set("measure", [value])} />
        </>
      }
    >
      <div className="flow">
        <div className="flow-main">
          <p className="flow-status" role="status">
            {flows === null ? "Waiting for the first figures." : statusText(shown, measure, overMs, silent)}
          </p>
          {flows !== null && <Diagram view={view} by={by} flows={shown} measure={measure} />}
        </div>
        <aside className="flow-filters" aria-label="Filters">
          <Filters
            title="Addresses"
            kind="address"
            names={sumsBy(all, "address")}
            chosen={addresses}
            onChoose={(names) => set("address", [...(names ?? [])])}
            amount={amount}
          />
          <Filters
            title="Routers"
            kind="router"
            names={sumsBy(all, "from", "to")}
            chosen={routers}
            onChoose={(names) => set("router", [...(names ?? [])])}
            amount={amount}
          />
          <Switch
            id="flow-internal"
            label="Replies and management too"
            isChecked={withInternal}
            onChange={(_event, isChecked) => set("internal", isChecked ? ["yes"] : [])}
          />
        </aside>
      </div>
    </Page>
  );
}
