/** Text from peers made safe to show: invisible characters and marks that turn the reading direction are written out. */

// Control characters, format characters (marks of direction, zero-width characters, tags), lone surrogates, line and
// paragraph separators, and letters without a shape.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]|\u17b4|\u17b5/gu;

const NAMED: Readonly<Record<string, string>> = { "\n": "<LF>", "\r": "<CR>", "\t": "<TAB>", "\0": "<NUL>" };

/** Return `text` with every control character, direction mark and invisible character written out, such as <U+202E> or <LF>. */
export function visible(text: string): string {
  return text.replace(
    HIDDEN,
    (mark) => NAMED[mark] ?? `<U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`,
  );
}

/** Return a peer's text for use within a sentence: invisible characters written out, cut after `limit` characters with "…". */
export function shown(text: string, limit = 80): string {
  const seen = visible(cut(text, limit + 1));
  return seen.length > limit ? `${cut(seen, limit - 1)}…` : seen;
}

/** Return the first `limit` characters of `text`, never half of a surrogate pair. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const last = text.charCodeAt(limit - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
}
