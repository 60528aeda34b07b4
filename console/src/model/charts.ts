/** The definitions of the user's charts, which the browser stores and URLs carry; they hold no samples. */

/** One line of a chart, or one line for each router if `router` is ALL. */
export interface Line {
  readonly router: string;
  readonly entity: string;
  readonly identity: string;
  readonly attribute: string;
  readonly isRate: boolean;
  /** The name of the row, for the legend. */
  readonly name: string;
}

/** One chart. */
export interface Chart {
  readonly id: string;
  readonly title: string;
  readonly lines: readonly Line[];
  readonly isStacked: boolean;
  readonly isLarge: boolean;
  /** The time that the chart shows, back from now. */
  readonly minutes: number;
  /** The window over which values are averaged. */
  readonly windowSeconds: number;
}

/** Stands for every router of the network. */
export const ALL = "*";
/** The choices for `minutes`. */
export const DURATIONS: readonly number[] = [1, 5, 10, 30, 60];
/** The choices for `windowSeconds`. */
export const WINDOWS: readonly number[] = [1, 5, 10, 60];
/** `minutes` of a new chart. */
export const FIRST_MINUTES = 10;
const MAX_CHARTS = 24;
const MAX_LINES = 8;
const MAX_CHARACTERS = 1_024;

/** Return the charts in a stored text, without entries that are no valid chart or line; none if the text is no JSON list. */
export function parseCharts(text: string | null): Chart[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  const charts = Array.isArray(parsed) ? parsed.slice(0, MAX_CHARTS).flatMap(parseChart) : [];
  return charts.filter((chart, place) => charts.findIndex((other) => other.id === chart.id) === place);
}

/** Return the charts as text for the page's URL, without their ids. */
export const chartsLink = (charts: readonly Chart[]): string => JSON.stringify(charts.map((chart) => ({ ...chart, id: undefined })));

/** Return the charts in the text of a URL; see parseCharts. */
export function parseChartsLink(text: string): Chart[] {
  try {
    const parsed: unknown = JSON.parse(text);
    const charts = Array.isArray(parsed) ? (parsed as readonly unknown[]) : [];
    return parseCharts(JSON.stringify(charts.map((each, place) => (isRecord(each) ? { ...each, id: `link-${place}` } : each))));
  } catch {
    return [];
  }
}

function parseChart(parsed: unknown): Chart[] {
  if (!isRecord(parsed)) return [];
  const { id, title, lines, isStacked, isLarge, minutes, windowSeconds } = parsed;
  if (!isShort(id) || !isShort(title) || !Array.isArray(lines)) return [];
  return [
    {
      id,
      title,
      lines: lines.slice(0, MAX_LINES).flatMap(parseLine),
      isStacked: isStacked === true,
      isLarge: isLarge === true,
      minutes: DURATIONS.find((each) => each === minutes) ?? FIRST_MINUTES,
      windowSeconds: WINDOWS.find((each) => each === windowSeconds) ?? 1,
    },
  ];
}

function parseLine(parsed: unknown): Line[] {
  if (!isRecord(parsed)) return [];
  const { router, entity, identity, attribute, isRate, name } = parsed;
  if (!isShort(router) || !isShort(entity) || !isShort(identity) || !isShort(attribute) || !isShort(name)) return [];
  return [{ router, entity, identity, attribute, isRate: isRate === true, name }];
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
const isShort = (value: unknown): value is string => typeof value === "string" && value.length <= MAX_CHARACTERS;

/** Return whether the user may add a chart. */
export const hasRoomForChart = (charts: readonly Chart[]): boolean => charts.length < MAX_CHARTS;
/** Return whether the user may add a line to the chart. */
export const hasRoomForLine = (chart: Chart): boolean => chart.lines.length < MAX_LINES;

/** Return the default title of a chart with this line. */
export function titleOf(line: Line): string {
  const subject = line.entity === "router" ? line.attribute : `${line.attribute} of ${line.name}`;
  return `${subject}${line.isRate ? " per second" : ""}`.slice(0, MAX_CHARACTERS);
}
