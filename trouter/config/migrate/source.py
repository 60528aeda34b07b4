"""A configuration text with the extent of each of its parts, so that one part can change and the rest stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from trouter.config.conf_form import ConfReader
from trouter.config.escapes import unescaped
from trouter.config.json_form import JsonReader
from trouter.config.nodes import Entry, Items, Node, Scalar, Section
from trouter.config.problems import Findings, SourcePosition
from trouter.config.reader import QUOTED, TextReader

_QUOTED: Final = re.compile(QUOTED)
#: From the name of a section to the end of its brace.
_TO_BRACE: Final = re.compile(r"(?:[\s,]|#[^\n]*)*\{")
#: Texts that need quotes in the `.conf` form.
_NEEDS_QUOTES: Final = re.compile(r"[#{}\[\],;\"'\\\x00-\x1f]|^\s|\s$|^$")
#: A text in quotes, or a comment, which is the group.
_COMMENTS: Final = re.compile(rf"(?:{QUOTED})|(#[^\n]*)")
_TO_BRACKET: Final = re.compile(r"(?:\s|#[^\n]*)*\[")
_SEPARATOR: Final = re.compile(r"[ \t]*[,;][ \t]*")
_CLOSES: Final = re.compile(r"\s*[}\]]")
_REST: Final = re.compile(r"[ \t]*,?[ \t]*(?:#[^\n]*)?(?:\n|\Z)")


class _Traced(TextReader):
    """A reader that records the end of its entries, by the offset at which they begin."""

    def __init__(self, text: str, file: str, findings: Findings) -> None:
        super().__init__(text, file, findings)
        self.ends: dict[SourcePosition, int] = {}

    def entry(self, by_line: bool, depth: int) -> Entry:
        entry = super().entry(by_line, depth)
        self.ends[entry.place] = self.offset
        return entry

    def text_entries(self, *, behind: bool) -> Iterator[Entry]:
        for entry in super().text_entries(behind=behind):
            self.ends[entry.place] = self.offset
            yield entry


class _TracedConf(_Traced, ConfReader):
    """The `.conf` form."""

    def one_section(self) -> Section | None:
        section = super().one_section()
        if section is not None:
            self.ends[section.place] = self.offset
        return section

    def attribute(self, by_line: bool) -> Entry:
        entry = super().attribute(by_line)
        self.ends[entry.place] = self.offset
        return entry


class _TracedJson(_Traced, JsonReader):
    """The JSON form; `begins` has where the pair of a section begins, by the place of its name."""

    def __init__(self, text: str, file: str, findings: Findings) -> None:
        super().__init__(text, file, findings)
        self.begins: dict[SourcePosition, SourcePosition] = {}
        self._lists: dict[SourcePosition, int] = {}

    def list(self, key: str, depth: int) -> Items:
        items = super().list(key, depth)
        self._lists[items.place] = self.offset
        return items

    def one_section(self, pair: Node) -> Section | None:
        section = super().one_section(pair)
        if section is not None:
            self.begins[section.place] = pair.place
            self.ends[section.place] = self._lists[pair.place]
        return section


class SourceText:
    """A text, its sections, and the requested changes, which ``edited`` applies."""

    def __init__(self, text: str, file: str, findings: Findings) -> None:
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self.text = text.removeprefix("\ufeff").replace("\r\n", "\n")
        self.json = file.endswith(".json")
        reader = (_TracedJson if self.json else _TracedConf)(self.text, file, findings)
        self.sections = reader.sections()
        self._ends = reader.ends
        self._begins = reader.begins if isinstance(reader, _TracedJson) else {}
        self._lines = [0, *accumulate(len(line) + 1 for line in self.text.split("\n"))]
        #: Start, end and new text of each change; None takes the part away, with its line or its comma.
        self._edits: list[tuple[int, int, str | None]] = []

    # ---------------------------------------------------------------- changes
    def remove(self, part: Entry | Section) -> None:
        """Remove an attribute or a section."""
        place = self._begins.get(part.place, part.place)
        self._edits.append((self._offset(place), self._ends[part.place], None))

    def rename(self, part: Entry | Section, name: str) -> None:
        """Rename an attribute or a section."""
        start = self._offset(part.place)
        if quoted := _QUOTED.match(self.text, start):
            self._edits.append((start, quoted.end(), json.dumps(name)))
        else:
            old = part.key if isinstance(part, Entry) else part.name
            self._edits.append((start, start + len(old), name))

    def set(self, entry: Entry, value: str | float | bool) -> None:
        """Replace the value of an attribute."""
        start = self._offset(entry.node.place)
        end = start + len(self.text[start : self._ends[entry.place]].rstrip())
        self._edits.append((start, end, self.written(value, typed=self._is_typed(entry.node))))

    def replace(self, entry: Entry, values: dict[str, str]) -> None:
        """Replace an attribute by others."""
        start, end = self._offset(entry.place), self._ends[entry.place]
        line, alone = self._line_of(self.text, start, end)
        comma = "," if self.json or not alone else ""
        between = f"{comma}\n{self.text[line:start]}" if alone else f"{comma} "
        attributes = (
            f"{self.written(name) if self.json else name}: {self.written(value)}" for name, value in values.items()
        )
        self._edits.append((start, start + len(self.text[start:end].rstrip()), between.join(attributes)))

    def exchange(self, section: Section, others: Sequence[tuple[str, dict[str, object]]]) -> None:
        """Replace a section by others; in the `.conf` form its comments stand before these."""
        place = self._begins.get(section.place, section.place)
        start, end = self._offset(place), self._ends[section.place]
        if self.json:
            new = ",\n  ".join(json.dumps([name, attributes]) for name, attributes in others)
        else:
            comments = [match[1] for match in _COMMENTS.finditer(self.text, start, end) if match[1]]
            made = [f"{name} {{\n{_conf_lines(attributes, 1)}}}" for name, attributes in others]
            new = "\n".join([*comments, *made])
        self._edits.append((start, end, new))

    def insert(self, section: Section, name: str, value: str | bool) -> None:
        """Insert an attribute as the first of a section."""
        written = len(json.dumps(section.name)) if self.json else len(section.name)
        at = _behind(_TO_BRACE, self.text, self._offset(section.place) + written)
        first = next((self._offset(entry.place) for entry in section.entries), at)
        attribute = f"{self.written(name) if self.json else name}: {self.written(value)}"
        if (line := self.text.find("\n", at, first) + 1) > 0:
            indent = self.text[self.text.rfind("\n", 0, first) + 1 : first]
            self._edits.append((line, line, f"{indent}{attribute}{',' if self.json else ''}\n"))
        else:
            self._edits.append((at, at, f" {attribute}{',' if section.entries else ''} "))

    def add(self, name: str, attributes: dict[str, object]) -> None:
        """Add a section: in the JSON form before all others, else after them."""
        if self.json:
            at, section = _behind(_TO_BRACKET, self.text), f"\n  {json.dumps([name, attributes])},"
        else:
            at = len(self.text)
            begin = "" if self.text.endswith("\n") else "\n"
            section = f"{begin}{name} {{\n{_conf_lines(attributes, 1)}}}\n"
        self._edits.append((at, at, section))

    def edited(self) -> str:
        """Return the text with all changes applied."""
        text, done = self.text, 0
        pieces: list[str] = []
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            if start < done and end <= done and start < end:
                continue  # a part of what was taken away
            if new is None:
                done = self._take(start, end, pieces, done)
            else:
                pieces += [text[done:start], new]
                done = max(done, end)
        return "".join([*pieces, text[done:]]).replace("\n", self._newline)

    def written(self, value: str | float | bool, *, typed: bool = False) -> str:
        """Return the text of a value in this form; ``typed``: as a number in the JSON form."""
        if isinstance(value, bool):
            return ("true" if value else "false") if self.json else ("yes" if value else "no")
        if self.json:
            return str(value) if typed else json.dumps(str(value))
        return _in_conf(str(value))

    def has_unknown_escape(self, entry: Entry) -> bool:
        """Return whether a value without quotes has a backslash that begins no escape of JSON."""
        raw = self.text[self._offset(entry.node.place) : self._ends[entry.place]]
        bare = isinstance(entry.node, Scalar) and not (self.json or entry.node.quoted)
        return bare and unescaped(raw.rstrip()).unknown >= 0

    # ---------------------------------------------------------------- extents
    def _offset(self, place: SourcePosition) -> int:
        return self._lines[place.line - 1] + place.column - 1

    @staticmethod
    def _is_typed(node: Node) -> bool:
        return isinstance(node, Scalar) and not isinstance(node.value, str)

    @staticmethod
    def _line_of(text: str, start: int, end: int) -> tuple[int, bool]:
        """Return the offset of the line of a part, and whether the part fills its lines alone."""
        line = text.rfind("\n", 0, start) + 1
        return line, not text[line:start].strip() and _REST.match(text, end) is not None

    def _take(self, start: int, end: int, pieces: list[str], done: int) -> int:
        """Write what stands before a part that is taken away, and return where the text goes on: behind its lines, or
        behind the comma that follows it. Where none follows, the comma before it goes.
        """
        text = self.text
        end = start + len(text[start:end].rstrip())
        line, alone = self._line_of(text, start, end)
        separator = None if alone else _SEPARATOR.match(text, end)
        if alone:
            start, end = line, _behind(_REST, text, end)
        elif separator:
            end = separator.end()
        pieces.append(text[done:start])
        if (self.json or not (alone or separator)) and _CLOSES.match(text, end):
            _drop_comma(pieces)
        return end


def _drop_comma(pieces: list[str]) -> None:
    """Remove the comma at the end of a text in pieces."""
    blank = ""
    while pieces and not pieces[-1].strip():
        blank = pieces.pop() + blank
    if pieces and (kept := pieces[-1].rstrip()).endswith((",", ";")):
        pieces[-1] = kept[:-1] + pieces[-1][len(kept) :]
    pieces.append(blank)


def _behind(pattern: re.Pattern[str], text: str, at: int = 0) -> int:
    """Return the offset after the brace or bracket that follows ``at``, with blanks and comments before it."""
    match = pattern.match(text, at)
    return match.end() if match else at


def _in_conf(text: str) -> str:
    """Return a text in the `.conf` form, in quotes where it needs them."""
    return json.dumps(text) if _NEEDS_QUOTES.search(text) else text


def _conf_lines(values: dict[str, object], depth: int) -> str:
    """Return attributes in the `.conf` form, one per line."""
    indent, lines = "    " * depth, ""
    for name, value in values.items():
        if isinstance(value, dict):
            lines += f"{indent}{name}: {{\n{_conf_lines(value, depth + 1)}{indent}}}\n"
        else:
            written = {True: "yes", False: "no"}[value] if isinstance(value, bool) else _in_conf(str(value))
            lines += f"{indent}{name}: {written}\n"
    return lines
