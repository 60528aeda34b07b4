/** The filter of tables. */

/** The cells of a row: the column's title in lower case maps to the text in lower case. */
export type Searched = ReadonlyMap<string, string>;

/** Return whether each "word" of the filter is in some cell, each "title:word" in that column's cell, and each "-word" in no cell. */
export function matches(filter: string, cells: Searched): boolean {
  return filter
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .every((word) => (word.length > 1 && word.startsWith("-") ? !finds(word.slice(1), cells) : finds(word, cells)));
}

function finds(word: string, cells: Searched): boolean {
  const colon = word.indexOf(":");
  const named = colon > 0 ? cells.get(word.slice(0, colon)) : undefined;
  if (named !== undefined) return named.includes(word.slice(colon + 1));
  for (const text of cells.values()) if (text.includes(word)) return true;
  return false;
}
