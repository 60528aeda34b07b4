/** Parts that pages are made of. */

export { Ago, agoText, momentText, useNow } from "./Ago";
export { DataTable, type Column } from "./DataTable";
export { compare, csvOf, jsonOf, textOf } from "./format";
export { LineChart, type ChartSeries } from "./LineChart";
export { Page } from "./Page";
export { save } from "./save";
export { Value, WholeValue } from "./Value";
