/** Names and colours of the ends of flows. A name keeps its colour while the page is open. */

import type { FlowEnd } from "../../model/flowshapes";
import { labelText } from "../../model/words";

/** As many colours as can be told apart; the style sheet has them. */
const COLOURS = 10;
const known = new Map<string, number>();
const MOST_KNOWN = 10_000;

/** Return the class that gives an end its colour. */
export function colourOf(end: FlowEnd): string {
  if (end.kind === "others") return "flow-others";
  const key = `${end.kind}\n${end.name}`;
  let colour = known.get(key);
  if (colour === undefined) {
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(key, (colour = known.size % COLOURS));
  }
  return `flow-colour-${String(colour)}`;
}

/** Return the end's name fit for a label. */
export function endText(end: FlowEnd): string {
  if (end.kind === "others") return "others";
  return end.name === "" ? "(internal)" : labelText(end.name);
}
