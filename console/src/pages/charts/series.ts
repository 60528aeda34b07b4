import { ALL, type Line } from "../../model/charts";
import { historyKey } from "../../store";

/** Return the series of a line as pairs of router id and key of the store's history: one for each router if the line is for all. */
export function seriesOf(line: Line, routers: readonly string[]): [string, string][] {
  const chosen = line.router === ALL ? routers : [line.router];
  return chosen.map((router) => [
    router,
    historyKey({ router, entity: line.entity, identity: line.identity, attribute: line.attribute, rate: line.isRate }),
  ]);
}
