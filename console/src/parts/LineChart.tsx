import { useEffect, useMemo, useRef, useState } from "react";
import { Button } from "@patternfly/react-core/dist/esm/components/Button";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { useTheme } from "../app/theme";
import type { History } from "../model/types";
import { momentText } from "./Ago";
import type { Column } from "./column";
import { DataTable } from "./DataTable";

/** One line of a chart: its name and its samples, times in ms since 1970. */
export interface ChartSeries extends History {
  readonly label: string;
}

interface Props {
  /** The chart's name for screen readers, and the name of exported files. */
  readonly label: string;
  readonly series: readonly ChartSeries[];
  /** The unit of the values, appended to each. */
  readonly unit?: string;
  /** In pixels. */
  readonly height?: number;
  /** Fill the area below each line, as for stacked series, the highest first. */
  readonly isFilled?: boolean;
  /** The time that the chart shows, back from the newest sample, in ms; by default all samples. */
  readonly lastMs?: number;
}

const LIGHT = ["#0066cc", "#b1380b", "#3d7317", "#5e40be", "#9f6f00", "#147878", "#a60000", "#4d4d4d"];
const DARK = ["#92c5f9", "#f8ae54", "#afdc8f", "#b6a6e9", "#ffe072", "#9ad8d8", "#f9a8a8", "#c7c7c7"];
const NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1, notation: "compact" });

const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** The distances of labels on the time axis, in seconds: whole ones, so that no two labels are alike. */
const DISTANCES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400];
/** Room for half of the last label, in pixels. */
const RIGHT = 40;

/** Return the labels of the time axis (in seconds); the first label of each day has the date too. */
function timesOf(ticks: readonly number[]): string[] {
  const days = ticks.map((tick) => DATE.format(tick * 1_000));
  return ticks.map((tick, place) => TIME.format(tick * 1_000) + (days[place] === days[place - 1] ? "" : `\n${days[place] ?? ""}`));
}

type Joined = [number[], ...(number | null | undefined)[][]];

/** Return the samples from `since` (ms) on of all series on one time axis in seconds, in uPlot's form. */
function join(series: readonly ChartSeries[], since: number): Joined {
  const tables = series.map((one) => {
    const first = one.times.findIndex((at) => at >= since);
    const from = first < 0 ? one.times.length : first;
    return [one.times.slice(from).map((at) => at / 1_000), one.values.slice(from)] as uPlot.AlignedData;
  });
  return (tables.length === 0 ? [[]] : uPlot.join(tables)) as Joined;
}

function optionsFor(labels: readonly string[], isDark: boolean, isFilled: boolean, unit: string, width: number, height: number): uPlot.Options {
  const colours = isDark ? DARK : LIGHT;
  const axis = {
    stroke: isDark ? "#c7c7c7" : "#4d4d4d",
    grid: { stroke: isDark ? "#4d4d4d" : "#e0e0e0", width: 1 },
    ticks: { stroke: isDark ? "#4d4d4d" : "#e0e0e0", width: 1 },
  };
  return {
    width,
    height,
    series: [
      { label: "Time", value: (_plot: uPlot, at: number | null) => (at === null ? "-" : momentText(at * 1_000)) },
      ...labels.map((label, index) => ({
        label,
        stroke: colours[index % colours.length] ?? "#0066cc",
        width: 2,
        ...(isFilled ? { fill: `${colours[index % colours.length] ?? "#0066cc"}55` } : {}),
        spanGaps: false,
        value: (_plot: uPlot, value: number | null) => (value === null ? "-" : `${NUMBER.format(value)}${unit}`),
      })),
    ],
    padding: [null, RIGHT, null, null],
    axes: [{ ...axis, space: 80, incrs: DISTANCES, values: (_plot, ticks) => timesOf(ticks) }, { ...axis, size: 64, values: (_plot, ticks) => ticks.map((tick) => NUMBER.format(tick) + unit) }],
    scales: { y: { range: (_plot, low, high) => [Math.min(0, low), high > 0 ? high * 1.05 : 1] } },
    cursor: { drag: { x: false, y: false } },
    legend: { live: true },
  };
}

/** Shows lines over time; the user can switch to a table of the same numbers. */
export function LineChart({ label, series, unit = "", height = 220, lastMs, isFilled = false }: Props) {
  const [isTable, setIsTable] = useState(false);
  return (
    <figure className="console-chart" aria-label={label}>
      {isTable ? (
        <ChartTable label={label} series={series} />
      ) : (
        <Canvas label={label} series={series} unit={unit} height={height} lastMs={lastMs} isFilled={isFilled} />
      )}
      <Button variant="link" isInline onClick={() => setIsTable(!isTable)} aria-label={`${isTable ? "Show as picture" : "Show as table"}: ${label}`}>
        {isTable ? "Show as picture" : "Show as table"}
      </Button>
    </figure>
  );
}

function Canvas({ label, series, unit, height, lastMs, isFilled }: Props & { unit: string; height: number; isFilled: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const { isDark } = useTheme();
  const newest = Math.max(0, ...series.map((one) => one.times.at(-1) ?? 0));
  const data = useMemo(() => join(series, lastMs === undefined ? 0 : newest - lastMs), [series, lastMs, newest]);
  const held = useRef(data);
  const names = JSON.stringify(series.map((one) => one.label));
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const labels = JSON.parse(names) as string[];
    const made = new uPlot(optionsFor(labels, isDark, isFilled, unit, element.clientWidth || 600, height), held.current, element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth || 600, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [names, isDark, isFilled, unit, height]);
  useEffect(() => {
    held.current = data;
    plot.current?.setData(data);
  }, [data, names, isDark]);
  return <div ref={place} role="img" aria-label={`${label}, as lines over time; a table has the same numbers`} />;
}

interface Sample {
  readonly at: number;
  readonly values: readonly (number | null | undefined)[];
}

function ChartTable({ label, series }: { label: string; series: readonly ChartSeries[] }) {
  const [times, ...values] = join(series, 0);
  const rows: Sample[] = times.map((at, index) => ({ at: at * 1_000, values: values.map((line) => line[index]) })).reverse();
  const columns: Column<Sample>[] = [
    { key: "time", title: "Time", value: (row) => momentText(row.at) },
    ...series.map((one, index) => ({ key: one.label, title: one.label, value: (row: Sample) => row.values[index] ?? null })),
  ];
  return <DataTable label={label} columns={columns} rows={rows} rowKey={(row) => String(row.at)} exportName={label} />;
}
