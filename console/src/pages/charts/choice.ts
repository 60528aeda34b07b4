import { create } from "zustand";

import { ALL, parseCharts, FIRST_MINUTES, hasRoomForChart, titleOf, type Chart, type Line } from "../../model/charts";

/** The key of local storage that keeps the charts; they hold names of routers, rows and attributes, and no samples. */
const STORAGE_KEY = "trouter-console-charts";

const FIRST: readonly Line[] = ["deliveriesIngress", "deliveriesEgress"].map((attribute) => ({
  router: ALL,
  entity: "router",
  identity: "1",
  attribute,
  isRate: true,
  name: "router",
}));

function storedCharts(): Chart[] {
  try {
    const text = localStorage.getItem(STORAGE_KEY);
    return text === null ? FIRST.map((line, place) => chartWith(line, `first-${place}`)) : parseCharts(text);
  } catch {
    return []; // The browser has no local storage.
  }
}

function chartWith(line: Line, id: string): Chart {
  const isStacked = line.router === ALL;
  return { id, title: titleOf(line), lines: [line], isStacked, isLarge: false, minutes: FIRST_MINUTES, windowSeconds: 1 };
}

const store = create<{ readonly charts: readonly Chart[] }>(() => ({ charts: storedCharts() }));

function change(to: (charts: readonly Chart[]) => readonly Chart[]): void {
  const charts = to(store.getState().charts);
  store.setState({ charts });
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(charts));
  } catch {
    // The browser has no local storage: the charts last until the next reload.
  }
}

/** Show the charts of a URL; they are stored when the user changes one. */
export const showCharts = (charts: readonly Chart[]): void => store.setState({ charts });

const newId = (): string => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;

/** Return the charts in their order. */
export const useCharts = (): readonly Chart[] => store((state) => state.charts);

/** Add a chart with one line. */
export const addChart = (line: Line): void =>
  change((charts) => (hasRoomForChart(charts) ? [...charts, chartWith(line, newId())] : charts));

/** Replace the chart that has the same id. */
export const putChart = (chart: Chart): void =>
  change((charts) => charts.map((each) => (each.id === chart.id ? chart : each)));

/** Add a copy of the chart behind it. */
export const copyChart = (chart: Chart): void =>
  change((charts) =>
    hasRoomForChart(charts) ? charts.flatMap((each) => (each.id === chart.id ? [each, { ...chart, id: newId() }] : [each])) : charts,
  );

/** Remove a chart. */
export const removeChart = (chart: Chart): void => change((charts) => charts.filter((each) => each.id !== chart.id));
