/** Names and colours of the ends of flows. A name keeps its colour until the console is reloaded. */

import type { FlowEnd } from "../../model/flowshapes";
import { labelText } from "../../model/words";

/** The number of colours in flow.css. */
const COLOURS = 10;
const known = new Map<string, number>();
const MAX_KNOWN = 10_000;

/** Return the CSS class with the colour of an end. */
export function colourOf(end: FlowEnd): string {
  if (end.kind === "others") return "flow-others";
  const key = `${end.kind}\n${end.name}`;
  let colour = known.get(key);
  if (colour === undefined) {
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(key, (colour = known.size % COLOURS));
  }
  return `flow-colour-${String(colour)}`;
}

/** Return the name of an end for a label. */
export function endText(end: FlowEnd): string {
  if (end.kind === "others") return "others";
  return end.name === "" ? "(internal)" : labelText(end.name);
}
