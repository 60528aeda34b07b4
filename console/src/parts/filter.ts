/** What the words in a table's filter find. */

/** The cells of a row: lower-case title of the column, lower-case text. */
export type Searched = ReadonlyMap<string, string>;

/** Whether each word of `filter` is in some cell, "title:word" in the cell of that column, and "-word" in none. */
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
