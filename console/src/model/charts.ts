/** Which charts there are: the choice that is kept for the next visit, without any of the data. */

/** One line of a chart, or one for each router where `router` is ALL. */
export interface Line {
  readonly router: string;
  readonly entity: string;
  readonly identity: string;
  readonly attribute: string;
  readonly isRate: boolean;
  /** What the row is called, for the legend. */
  readonly name: string;
}

/** One chart. */
export interface Chart {
  readonly id: string;
  readonly title: string;
  readonly lines: readonly Line[];
  readonly isStacked: boolean;
  readonly isLarge: boolean;
  /** How much of the past it shows. */
  readonly minutes: number;
  /** The time that a rate is the mean of. */
  readonly windowSeconds: number;
}

/** Stands for every router of the network. */
export const ALL = "*";
export const DURATIONS: readonly number[] = [1, 5, 10, 30, 60];
export const WINDOWS: readonly number[] = [1, 5, 10, 60];
export const FIRST_MINUTES = 10;
const MAX_CHARTS = 24;
const MAX_LINES = 8;
const MAX_CHARACTERS = 1_024;

/** Return the charts in a text that was kept; none where it is damaged. Whatever does not fit is left out. */
export function chartsIn(text: string | null): Chart[] {
  let told: unknown;
  try {
    told = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  const charts = Array.isArray(told) ? told.slice(0, MAX_CHARTS).flatMap(chartOf) : [];
  return charts.filter((chart, place) => charts.findIndex((other) => other.id === chart.id) === place);
}

/** Return the charts as an address of the page carries them: without ids. */
export const linkOf = (charts: readonly Chart[]): string => JSON.stringify(charts.map((chart) => ({ ...chart, id: undefined })));

/** Return the charts that an address of the page carries; see chartsIn. */
export function chartsOfLink(text: string): Chart[] {
  try {
    const told: unknown = JSON.parse(text);
    const charts = Array.isArray(told) ? (told as readonly unknown[]) : [];
    return chartsIn(JSON.stringify(charts.map((each, place) => (isRecord(each) ? { ...each, id: `link-${place}` } : each))));
  } catch {
    return [];
  }
}

function chartOf(told: unknown): Chart[] {
  if (!isRecord(told)) return [];
  const { id, title, lines, isStacked, isLarge, minutes, windowSeconds } = told;
  if (!isShort(id) || !isShort(title) || !Array.isArray(lines)) return [];
  return [
    {
      id,
      title,
      lines: lines.slice(0, MAX_LINES).flatMap(lineOf),
      isStacked: isStacked === true,
      isLarge: isLarge === true,
      minutes: DURATIONS.find((each) => each === minutes) ?? FIRST_MINUTES,
      windowSeconds: WINDOWS.find((each) => each === windowSeconds) ?? 1,
    },
  ];
}

function lineOf(told: unknown): Line[] {
  if (!isRecord(told)) return [];
  const { router, entity, identity, attribute, isRate, name } = told;
  if (!isShort(router) || !isShort(entity) || !isShort(identity) || !isShort(attribute) || !isShort(name)) return [];
  return [{ router, entity, identity, attribute, isRate: isRate === true, name }];
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
const isShort = (value: unknown): value is string => typeof value === "string" && value.length <= MAX_CHARACTERS;

/** Return whether one more chart, or one more line, has room. */
export const hasRoomForChart = (charts: readonly Chart[]): boolean => charts.length < MAX_CHARTS;
export const hasRoomForLine = (chart: Chart): boolean => chart.lines.length < MAX_LINES;

/** Return what a chart without a title of its own is called. */
export function titleOf(line: Line): string {
  const what = line.entity === "router" ? line.attribute : `${line.attribute} of ${line.name}`;
  return `${what}${line.isRate ? " per second" : ""}`.slice(0, MAX_CHARACTERS);
}
