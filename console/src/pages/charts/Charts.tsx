import { useEffect, useMemo, useRef, useState } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import { EmptyState, EmptyStateBody } from "@patternfly/react-core/dist/esm/components/EmptyState";

import { useSearchParams } from "react-router-dom";

import { parseChartsLink, chartsLink, type Chart } from "../../model/charts";
import { Page } from "../../parts";
import { follow, followed, unfollow, useSession } from "../../store";
import { Panel } from "../common/Panel";
import { ChartCard } from "./ChartCard";
import { addChart, showCharts, useCharts } from "./choice";
import { LineForm } from "./LineForm";
import { seriesOf } from "./series";

/** Record the series of all charts, also while the user is on other pages; stop those that no chart shows any more. */
function useFollowedSeries(charts: readonly Chart[], routers: readonly string[]): void {
  const wanted = useMemo(
    () => JSON.stringify([...new Set(charts.flatMap((chart) => chart.lines.flatMap((line) => seriesOf(line, routers).map(([, key]) => key))))]),
    [charts, routers],
  );
  useEffect(() => {
    const keys = JSON.parse(wanted) as string[];
    followed().filter((key) => !keys.includes(key)).forEach(unfollow);
    keys.forEach(follow);
  }, [wanted]);
}

/** Keep the charts in the page's URL; a URL that the user opens with charts replaces the stored ones on the page. */
function useChartsInUrl(charts: readonly Chart[]): void {
  const [query, setQuery] = useSearchParams();
  const written = useRef<string | null>(null);
  const openedLink = query.get("charts");
  const currentLink = chartsLink(charts);
  useEffect(() => {
    if (openedLink === currentLink) return;
    const isOpened = openedLink !== null && openedLink !== written.current;
    written.current = isOpened ? openedLink : currentLink;
    if (isOpened) showCharts(parseChartsLink(openedLink));
    else setQuery({ charts: currentLink }, { replace: true });
  }, [openedLink, currentLink, setQuery]);
}

/** Shows the user's charts of numbers and rates over time. */
export default function Charts() {
  const charts = useCharts();
  const session = useSession();
  const routers = useMemo(() => session.routers.map((router) => router.id), [session.routers]);
  const [isAdding, setIsAdding] = useState(false);
  useFollowedSeries(charts, routers);
  useChartsInUrl(charts);
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
          <EmptyStateBody>Add one: any number that a router reports, or its rate.</EmptyStateBody>
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
