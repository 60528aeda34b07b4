import { create } from "zustand";

import { ALL, chartsIn, FIRST_MINUTES, hasRoomForChart, titleOf, type Chart, type Line } from "../../model/charts";

/** Where the choice of charts is kept for the next visit; it holds names of routers, rows and attributes, and no data. */
const KEPT_AS = "trouter-console-charts";

const FIRST: readonly Line[] = ["deliveriesIngress", "deliveriesEgress"].map((attribute) => ({
  router: ALL,
  entity: "router",
  identity: "1",
  attribute,
  isRate: true,
  name: "router",
}));

function kept(): Chart[] {
  try {
    const text = localStorage.getItem(KEPT_AS);
    return text === null ? FIRST.map((line, place) => chartWith(line, `first-${place}`)) : chartsIn(text);
  } catch {
    return []; // A browser that keeps nothing.
  }
}

function chartWith(line: Line, id: string): Chart {
  const isStacked = line.router === ALL;
  return { id, title: titleOf(line), lines: [line], isStacked, isLarge: false, minutes: FIRST_MINUTES, windowSeconds: 1 };
}

const store = create<{ readonly charts: readonly Chart[] }>(() => ({ charts: kept() }));

function change(to: (charts: readonly Chart[]) => readonly Chart[]): void {
  const charts = to(store.getState().charts);
  store.setState({ charts });
  try {
    localStorage.setItem(KEPT_AS, JSON.stringify(charts));
  } catch {
    // Nothing is kept for the next visit.
  }
}

/** Show the charts of a link; they are not kept before the user changes one. */
export const showCharts = (charts: readonly Chart[]): void => store.setState({ charts });

const newId = (): string => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;

/** The charts in their order. */
export const useCharts = (): readonly Chart[] => store((state) => state.charts);

/** Add a chart with one line. */
export const addChart = (line: Line): void =>
  change((charts) => (hasRoomForChart(charts) ? [...charts, chartWith(line, newId())] : charts));

/** Put `chart` in the place of the one with its id. */
export const putChart = (chart: Chart): void =>
  change((charts) => charts.map((each) => (each.id === chart.id ? chart : each)));

/** Add the same chart once more, behind it. */
export const copyChart = (chart: Chart): void =>
  change((charts) =>
    hasRoomForChart(charts) ? charts.flatMap((each) => (each.id === chart.id ? [each, { ...chart, id: newId() }] : [each])) : charts,
  );

/** Remove a chart. */
export const removeChart = (chart: Chart): void => change((charts) => charts.filter((each) => each.id !== chart.id));
