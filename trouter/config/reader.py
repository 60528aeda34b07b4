"""The part of the language that the `.conf` and the JSON form share: blanks, comments, quotes, maps and lists.

A mistake is reported and stepped over: `NoValue` goes up to the nearest place that can go on, `TooDeep` ends the text.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from trouter.config.escapes import unescaped
from trouter.config.nodes import Entry, Items, Map, Node, Scalar
from trouter.config.problems import Findings, SourcePosition

MAX_DEPTH = 32
UNKNOWN_ESCAPE = "JSON has no such escape, so this backslash is taken literally; write \\\\ for a backslash"
CONTROL_ESCAPE = "this escape makes a control character; write \\\\ for a backslash"
QUOTED = r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'"
BARE_KEY = r"[^\s:{}\[\],\"'#]+"

_SKIPPED = {also: re.compile(rf"(?:[\s{also}]+|#[^\n]*)*") for also in ("", ",", ",;")}
# A string on its line, which needs no second look when there is no backslash in it.
_DOUBLE_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# The next entry whose name and value are such strings, and the next item that is one: what most of a policy is made of.
# By what may stand before them: with commas as you like, first in JSON, and behind another in JSON.
_BEFORE = {"": r"[\s,]*", "first": r"\s*", "next": r"\s*,\s*"}
_TEXT_ENTRY = {
    name: re.compile(before + r'"([^"\\\n]*)"[ \t]*:[ \t]*"([^"\\\n]*)"') for name, before in _BEFORE.items()
}
_TEXT_ITEM = {name: re.compile(before + r'"([^"\\\n]*)"') for name, before in _BEFORE.items()}
_BLANK = frozenset(" \t\r\f\v")
_BLANKS = re.compile(r"[ \t\r\f\v]*")
_REST_IS_EMPTY = re.compile(r"[ \t\r\f\v]*(?:#[^\n]*)?(?=\n|\Z)")
_KEY = re.compile(BARE_KEY)
# The manual of Qpid Dispatch prints maps and sections so, and the program reads none of them.
_EQUALS = re.compile(r"[ \t]*=[ \t]*\{")
_ITEM = re.compile(r"[^,\]\n#]+")
# `{` opens a map when a name and a colon follow, or `}`; `{user}` is text.
_MAP_AHEAD = re.compile(rf"\{{\s*(?:#[^\n]*\n\s*)*(?:\}}|(?:{QUOTED}|{BARE_KEY})[ \t]*:)")


class NoValue(Exception):
    """A value could not be read; this is reported already, and the reader stands where it can go on."""


class TooDeep(Exception):
    """Maps and lists are nested too deep; this is reported already, and the rest of the text is not read."""


class TextReader(ABC):
    """A text and an offset in it."""

    #: Whether values without quotes are JSON scalars, and a brace is always a map.
    json = False

    def __init__(self, text: str, file: str, findings: Findings) -> None:
        self.text = text.replace("\r\n", "\n")
        self.file = file
        self.findings = findings
        self.offset = 0
        self.section = ""
        self._lines = [0, *accumulate(len(line) + 1 for line in self.text.split("\n"))]
        #: The line of the last place; places are asked for in the order of the text, nearly always.
        self._line = 1

    @abstractmethod
    def bare(self, key: str, by_line: bool) -> Scalar:
        """Return a value without quotes; `by_line` when the map it stands in has one entry a line."""

    # ---------------------------------------------------------------- where we are
    def place(self, offset: int | None = None) -> SourcePosition:
        at = self.offset if offset is None else offset
        lines, line = self._lines, self._line
        if not lines[line - 1] <= at < lines[line]:
            line = self._line = bisect_right(lines, at)
        return SourcePosition(self.file, line, at - lines[line - 1] + 1)

    def line_end(self) -> int:
        end = self.text.find("\n", self.offset)
        return len(self.text) if end < 0 else end

    def wrong(self, message: str, suggestion: str, *, at: int | None = None, end: int = 0, key: str = "") -> None:
        """Report a mistake at an offset, or where we are; the text from there up to ``end``, if given, is shown."""
        place, text = self.place(at), self.text[self.offset if at is None else at : end].strip()
        self.findings.error(place, message, section=self.section, key=key, text=text, suggestion=suggestion)

    def warn(self, message: str, *, at: int, key: str, end: int = 0) -> None:
        text = self.text[at:end].strip()
        self.findings.warning(self.place(at), message, section=self.section, key=key, text=text)

    def empty(self, key: str, at: int) -> NoValue:
        """Report a missing value; to be raised."""
        self.warn("no value: taken as not given", at=at, key=key)
        return NoValue()

    # ---------------------------------------------------------------- blanks and comments
    def skip(self, also: str = "") -> str:
        """Pass blanks, comments, newlines and the characters of `also`; the character then reached, "" at the end.

        also: one of the keys of _SKIPPED.
        """
        if match := _SKIPPED[also].match(self.text, self.offset):
            self.offset = match.end()
        return self.text[self.offset : self.offset + 1]

    def skip_blanks(self) -> str:
        """Pass blanks within the line; the character then reached, a newline included, "" at the end."""
        char = self.text[self.offset : self.offset + 1]
        if char in _BLANK and (match := _BLANKS.match(self.text, self.offset)):
            self.offset = match.end()
            char = self.text[self.offset : self.offset + 1]
        return char

    def rest_is_empty(self) -> bool:
        """Return whether only blanks and a comment are left in this line."""
        return _REST_IS_EMPTY.match(self.text, self.offset) is not None

    def brace_follows(self) -> bool:
        """Return whether a brace is next, newlines and comments apart: it may stand on the line after its name."""
        start = self.offset
        found = self.skip() == "{"
        self.offset = start
        return found

    # ---------------------------------------------------------------- escapes and quotes
    def unquoted(self, text: str, start: int, key: str) -> Scalar:
        """Return a value without quotes that begins at an offset, with its escapes applied."""
        value = unescaped(text)
        if value.unknown >= 0:
            self.warn(UNKNOWN_ESCAPE, at=start + value.unknown, key=key)
        if value.control >= 0:
            self.warn(CONTROL_ESCAPE, at=start + value.control, key=key)
        return Scalar(value.text, self.place(start))

    def double_quoted(self, key: str) -> str:
        """Return the text of a string in double quotes, JSON escapes applied."""
        start = self.offset
        match = _DOUBLE_QUOTED.match(self.text, start)
        if match is None:
            self.offset = end = self.line_end()
            self.wrong("quotes are opened but not closed in this line", "close them", at=start, end=end, key=key)
            raise NoValue
        self.offset = match.end()
        if "\\" not in match[1]:
            return match[1]
        try:
            return str(json.loads(match[0], strict=False))
        except ValueError:
            cure = "write \\\\ for a backslash, or use single quotes"
            self.wrong("not a valid escape sequence in double quotes", cure, at=start, end=match.end(), key=key)
            raise NoValue from None

    def single_quoted(self) -> str | None:
        """Read a string in single quotes, '' being a quote; None, and no step, when it is not closed here."""
        start, end = self.offset, self.line_end()
        at = start + 1
        while (at := self.text.find("'", at, end)) >= 0:
            if self.text[at + 1 : at + 2] != "'":
                self.offset = at + 1
                return self.text[start + 1 : at].replace("''", "'")
            at += 2
        return None

    # ---------------------------------------------------------------- maps and lists
    def map(self, depth: int) -> Map:
        """Return a map, the offset at its brace."""
        start, place = self.offset, self.place()
        self.offset += 1
        by_line = self.rest_is_empty()
        entries = [*self.text_entries(behind=False)]
        behind = bool(entries)
        while (char := self.next_part("}", behind=behind)) != "}":
            if not char:
                self.wrong("this brace is never closed", "add a }", at=start)
                break
            try:
                entries.append(self.entry(by_line, depth))
            except NoValue:
                behind = False
                continue
            behind = True
            entries += self.text_entries(behind=True)
        self.offset = min(self.offset + 1, len(self.text))
        return Map(tuple(entries), place)

    def next_part(self, closing: str, *, behind: bool) -> str:
        """Pass what stands before the next part of a map or list; return its first character.

        ``behind``: a part stands before it, so that JSON needs a comma. The `.conf` form takes commas as they come.
        """
        if not self.json:
            return self.skip(also=",")
        char = self.skip()
        if char == "," and behind:
            self.offset += 1
            char = self.skip()
        elif behind and char and char != closing:
            self.wrong("a comma is missing before this", "put a comma between two values", end=self.line_end())
        while char == ",":
            self.wrong("nothing stands before this comma", "remove it", end=self.offset + 1)
            self.offset += 1
            char = self.skip()
        return char

    def text_entries(self, *, behind: bool) -> Iterator[Entry]:
        """Yield the entries that follow, as far as their names and values are plain strings; ``behind`` another."""
        before = ("next" if behind else "first") if self.json else ""
        while match := _TEXT_ENTRY[before].match(self.text, self.offset):
            before = "next" if self.json else ""
            self.offset = match.end()
            key, value = match.start(1), match.start(2)
            place = self.place(key - 1)
            beside = SourcePosition(place.file, place.line, place.column + value - key)
            yield Entry(match[1], place, Scalar(match[2], beside, quoted=True))

    def entry(self, by_line: bool, depth: int) -> Entry:
        """Read one `key: value` of a map."""
        start = self.offset
        key = self.map_key()
        equals = self.pass_equals(key, f"{key}: {{")
        char = self.skip_blanks()
        if equals:
            pass
        elif char == "{" and not self.json:
            self.wrong("a colon is missing before the brace", f"write: {key}: {{", key=key)
        elif char == ":":
            self.offset += 1
        else:
            self.offset = end = self.line_end()
            self.wrong("a colon must follow the name", "write: name: value", at=start, end=end, key=key)
            raise NoValue
        return Entry(key, self.place(start), self.value(key, by_line, depth))

    def pass_equals(self, key: str, instead: str) -> bool:
        """Pass the `=` of `name = {`, with an error that says to remove it; whether there was one."""
        match = None if self.json else _EQUALS.match(self.text, self.offset)
        if match is None:
            return False
        self.wrong("no `=` stands before a brace", f"remove the `=`: write {instead}", key=key)
        self.offset = match.end() - 1
        return True

    def map_key(self) -> str:
        char = self.text[self.offset]
        if char == '"':
            return self.double_quoted("")
        if char == "'" and (quoted := self.single_quoted()) is not None:
            return quoted
        if match := _KEY.match(self.text, self.offset):
            self.offset = match.end()
            return match.group()
        start, self.offset = self.offset, self.line_end()
        self.wrong("expected 'name: value' or '}'", "write: name: value", at=start, end=self.offset)
        raise NoValue

    def value(self, key: str, by_line: bool, depth: int) -> Node:
        """Return the value of a map's entry or a list's item."""
        char = self.skip_blanks()
        if char in {"", "\n", "#"} and (self.json or self.brace_follows()):
            char = self.skip()
        start = self.offset
        if char in {"{", "["} and depth >= MAX_DEPTH:
            self.wrong(f"maps and lists are nested more than {MAX_DEPTH} deep", "nest them less", key=key)
            raise TooDeep
        if char == "{" and (self.json or _MAP_AHEAD.match(self.text, start)):
            return self.map(depth + 1)
        if char == "[":
            return self.list(key, depth + 1)
        if char == '"':
            return Scalar(self.double_quoted(key), self.place(start), quoted=True)
        if char == "'" and not self.json and (quoted := self.single_quoted()) is not None:
            return Scalar(quoted, self.place(start), quoted=True)
        return self.bare(key, by_line)

    def list(self, key: str, depth: int) -> Items:
        """Return a list, the offset at its bracket."""
        start, place = self.offset, self.place()
        self.offset += 1
        items: list[Node] = []
        form = "first" if self.json else ""
        while match := _TEXT_ITEM[form].match(self.text, self.offset):
            form = "next" if self.json else ""
            self.offset = match.end()
            items.append(Scalar(match[1], self.place(match.start(1) - 1), quoted=True))
        behind = bool(items)
        while (char := self.next_part("]", behind=behind)) != "]":
            if not char:
                self.wrong("this bracket is never closed", "add a ]", at=start, key=key)
                break
            before = self.offset
            behind = True
            try:
                items.append(self.item(key, depth, char))
            except NoValue:
                behind = False
                self.offset = max(self.offset, before + 1)  # a brace closes nothing here
        self.offset = min(self.offset + 1, len(self.text))
        return Items(tuple(items), place)

    def item(self, key: str, depth: int, char: str) -> Node:
        """Read one item of a list, `char` being its first character."""
        if self.json or char in "[\"'" or _MAP_AHEAD.match(self.text, self.offset):
            return self.value(key, False, depth)
        start = self.offset
        if match := _ITEM.match(self.text, start):
            self.offset = match.end()
        return self.unquoted(self.text[start : self.offset].strip(), start, key)
