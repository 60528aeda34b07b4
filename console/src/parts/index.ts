/** The components and formats that all pages share. */

export { Ago, agoText, momentText, useNow } from "./Ago";
export type { Column } from "./column";
export { DataTable } from "./DataTable";
export { compare, csvOf, jsonOf, displayText } from "./format";
export { LineChart, type ChartSeries } from "./LineChart";
export { Page } from "./Page";
export { save } from "./save";
export { Value, WholeValue } from "./Value";
