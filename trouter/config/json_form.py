"""The JSON form: an array of `["sectionName", {attributes}]`, for files whose names end in `.json`.

Values may be typed. Beyond JSON, comments may stand anywhere, and a list or map may end with a comma; a comma that is
missing, or one too many, is an error.
"""

from __future__ import annotations

import re

from trouter.config.nodes import Items, Map, Node, Scalar, Section, literal
from trouter.config.problems import Findings
from trouter.config.reader import NoValue, TextReader, TooDeep

_WORD = re.compile(r"[^\s,\]}#]+")


def parse_json(text: str, file: str, findings: Findings) -> list[Section]:
    """Return the sections of a JSON text; all its errors go to `findings`."""
    return JsonReader(text, file, findings).sections()


def parse_value(text: str, file: str, findings: Findings) -> Node | None:
    """Return the value of a JSON text that is no configuration, None without one; its errors go to `findings`."""
    reader = JsonReader(text, file, findings)
    try:
        return reader.whole()
    except (NoValue, TooDeep):
        return None


class JsonReader(TextReader):
    """A reader of the array of pairs, with the scalars of JSON."""

    json = True

    def sections(self) -> list[Section]:
        """Return the sections of the whole text."""
        try:
            return self.pairs()
        except TooDeep:
            return []

    def pairs(self) -> list[Section]:
        if self.skip() != "[":
            cure = 'write: [["sectionName", {"attribute": "value"}]]'
            self.wrong("a .json file holds an array", cure, end=self.line_end())
            return []
        pairs = self.list("", 1)
        if self.skip():
            self.wrong("text after the array", "everything stands in one array", end=self.line_end())
        return [section for pair in pairs.items if (section := self.one_section(pair))]

    def whole(self) -> Node:
        self.skip()
        value = self.value("", False, 0)
        if self.skip():
            self.wrong("text after the value", "remove it", end=self.line_end())
        return value

    def one_section(self, pair: Node) -> Section | None:
        match pair:
            case Items(items=(Scalar(value=str(name)) as first, Map(entries=entries))):
                return Section(name, first.place, entries)
        self.findings.error(pair.place, "expected a pair", suggestion='write: ["sectionName", {"attribute": "value"}]')
        return None

    def bare(self, key: str, by_line: bool) -> Scalar:
        """Return a JSON number, true, false or null."""
        start = self.offset
        match = _WORD.match(self.text, start)
        word = match.group() if match else ""
        self.offset = start + len(word)
        value = literal(word)
        if isinstance(value, str):
            message = "expected a JSON value; text stands in double quotes"
            self.wrong(message, 'write: "..."', at=start, end=self.offset, key=key)
            raise NoValue
        return Scalar(value, self.place(start))
