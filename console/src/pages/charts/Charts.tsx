import { useEffect, useMemo, useRef, useState } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";

import { useSearchParams } from "react-router-dom";

import { ALL, chartsOfLink, linkOf, type Chart, type Line } from "../../model/charts";
import { Page } from "../../parts";
import { follow, followed, historyKey, unfollow, useSession } from "../../store";
import { Panel } from "../common/Panel";
import { ChartCard } from "./ChartCard";
import { addChart, showCharts, useCharts } from "./choice";
import { LineForm } from "./LineForm";

/** Return the series that a line stands for, as the store's history knows them: [router, key]. */
export function keysOf(line: Line, routers: readonly string[]): [string, string][] {
  const chosen = line.router === ALL ? routers : [line.router];
  return chosen.map((router) => [
    router,
    historyKey({ router, entity: line.entity, identity: line.identity, attribute: line.attribute, rate: line.isRate }),
  ]);
}

/** Series go on while other pages are looked at; they end when no chart shows them any more. */
function useFollowed(charts: readonly Chart[], routers: readonly string[]): void {
  const wanted = useMemo(
    () => JSON.stringify([...new Set(charts.flatMap((chart) => chart.lines.flatMap((line) => keysOf(line, routers).map(([, key]) => key))))]),
    [charts, routers],
  );
  useEffect(() => {
    const keys = JSON.parse(wanted) as string[];
    followed().filter((key) => !keys.includes(key)).forEach(unfollow);
    keys.forEach(follow);
  }, [wanted]);
}

/** Keep the charts in the page's address: one that is opened with charts shows those. */
function useLinked(charts: readonly Chart[]): void {
  const [query, setQuery] = useSearchParams();
  const written = useRef<string | null>(null);
  const given = query.get("charts");
  const own = linkOf(charts);
  useEffect(() => {
    if (given === own) return;
    const isOpened = given !== null && given !== written.current;
    written.current = isOpened ? given : own;
    if (isOpened) showCharts(chartsOfLink(given));
    else setQuery({ charts: own }, { replace: true });
  }, [given, own, setQuery]);
}

/** Numbers over time: the charts that the user collected. */
export default function Charts() {
  const charts = useCharts();
  const session = useSession();
  const routers = useMemo(() => session.routers.map((router) => router.id), [session.routers]);
  const [isAdding, setIsAdding] = useState(false);
  useFollowed(charts, routers);
  useLinked(charts);
  return (
    <Page
      title="Charts"
      actions={
        <Button onClick={() => setIsAdding(!isAdding)} aria-expanded={isAdding}>
          Add a chart
        </Button>
      }
    >
      {isAdding && (
        <Panel title="New chart" isWide>
          <LineForm
            action="Add"
            onChoose={(line) => {
              addChart(line);
              setIsAdding(false);
            }}
            onCancel={() => setIsAdding(false)}
          />
        </Panel>
      )}
      {charts.length === 0 && !isAdding && (
        <EmptyState titleText="No chart yet" headingLevel="h2">
          <EmptyStateBody>Add one: any number that a router tells, or how fast it grows.</EmptyStateBody>
        </EmptyState>
      )}
      <div className="console-charts">
        {charts.map((chart) => (
          <ChartCard key={chart.id} chart={chart} routers={routers} />
        ))}
      </div>
    </Page>
  );
}
