"""The `.conf` form: text to sections.

The language is a superset of Qpid Dispatch's, of the form its manual shows and of the form it really reads.
Whatever that router reads keeps its meaning, escapes of JSON in values without quotes too, except that quotes around a
whole value now quote it:

    sectionName {                # the brace may also stand on the next line
        attribute: value         # a value runs to the end of its line or to `#`
        pattern: a/#             # three attributes take their first word whole, `#` included
        secret: "with # and {"   # double quotes with JSON escapes, single quotes with '' for a quote
        openProperties: {        # maps: `key: value`, JSON, or any mixture; commas as you like
            "a": 1, b: two words
        }
    }
    router { id: A, mode: standalone }
"""

from __future__ import annotations

import re

from trouter.config.nodes import Entry, Node, Scalar, Section, squash
from trouter.config.problems import Findings
from trouter.config.reader import BARE_KEY, QUOTED, NoValue, TextReader, TooDeep

# Attributes whose first blank-delimited word is taken whole: `#` is their wildcard.
HASH_IS_TEXT = frozenset({"pattern", "bindingkey", "hostname"})
# Attributes that hold maps; elsewhere a leading brace is text unless it ends its line.
MAPS = frozenset({"groups", "openproperties", "perhost", "peruser", "pluginsettings"})
# Attributes within maps that hold lists of patterns.
WILDCARDS = frozenset({"sourcepattern", "targetpattern"})

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_WORD = re.compile(r"\S*")
# Dots occur only in full type names, which no section has; reading them makes for a better message.
_SECTION_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_OPENING = re.compile(r"[A-Za-z0-9_.-]+[ \t]*\{")
# What begins the next entry after a comma. A map's colon needs something behind it that no address or URL has there.
_NEXT_ENTRY = re.compile(rf"[ \t]*(?:(?:{QUOTED})[ \t]*:|{BARE_KEY}[ \t]*:(?=[ \t\n\"'{{\[]|\Z))")
_NEXT_ATTRIBUTE = re.compile(r"[ \t]*[A-Za-z_][\w-]*[ \t]*:(?!//)")
# After a comma in a one-line map: perhaps a name with no blank after its colon, perhaps part of the value.
_MAYBE_ENTRY = re.compile(r"[ \t]*([A-Za-z_$][\w$-]*)[ \t]*:(?![:/])")
_IPV6_GROUP = re.compile(r"[0-9A-Fa-f]{1,4}")


def parse_conf(text: str, file: str, findings: Findings) -> list[Section]:
    """Return the sections of a `.conf` text; mistakes go to `findings`, and one run reports all of them."""
    return ConfReader(text, file, findings).sections()


class ConfReader(TextReader):
    """Reader of the `.conf` form: sections, their attributes, and values without quotes."""

    def sections(self) -> list[Section]:
        """Return the sections of the whole text."""
        found: list[Section] = []
        try:
            while self.skip():
                self.section = ""
                if section := self.one_section():
                    found.append(section)
        except TooDeep:
            pass
        return found

    def one_section(self) -> Section | None:
        """Return the section at the offset; if there is none, report that, pass the line and return None."""
        start, place = self.offset, self.place()
        name = _SECTION_NAME.match(self.text, start)
        if name is None:
            self.stray(start)
            return None
        self.offset = name.end()
        self.pass_equals(name.group(), f"{name.group()} {{")
        if self.skip_blanks() != "{" and not (self.rest_is_empty() and self.brace_follows()):
            self.no_section(start)
            return None
        self.skip()
        self.offset += 1
        self.section = name.group()
        return Section(name.group(), place, tuple(self.body(start)))

    def stray(self, start: int) -> None:
        if self.text[start] == "}":
            self.wrong("a closing brace that closes nothing", "remove it")
            self.offset += 1
            return
        if self.text[start] == "{":
            self.wrong("a section needs a name", "write: sectionName {")
            self.offset += 1
            self.body(start)
            return
        self.offset = self.line_end()
        self.wrong("expected a section", "write: sectionName {", at=start, end=self.offset)

    def no_section(self, start: int) -> None:
        """Report a line that is not the start of a section, and pass it."""
        words = ("expected a section", "write: sectionName {")
        if self.skip_blanks() in {":", "="}:
            words = ("an attribute outside of any section", "put it into a section")
        self.offset = self.line_end()
        self.wrong(*words, at=start, end=self.offset)

    def body(self, start: int) -> list[Entry]:
        """Return the attributes up to the closing brace."""
        entries: list[Entry] = []
        by_line = False
        while True:
            before = self.offset
            char = self.skip(also="" if by_line else ",;")
            by_line = by_line or "\n" in self.text[before : self.offset]
            if char == "}":
                self.offset += 1
                return entries
            if not char or self.next_section_begins():
                self.wrong("this section is never closed", "'}' must stand on a line of its own", at=start)
                return entries
            try:
                entries.append(self.attribute(by_line))
            except NoValue:
                continue

    def next_section_begins(self) -> bool:
        """Return whether this line opens a section, which means that the brace before it was forgotten."""
        opening = _OPENING.match(self.text, self.offset)
        return opening is not None and squash(opening.group()[:-1].strip()) not in MAPS

    def attribute(self, by_line: bool) -> Entry:
        """Return one `attribute: value` of a section; `by_line` if it has its own line. NoValue."""
        start, end = self.offset, self.line_end()
        name = _NAME.match(self.text, start)
        key = name.group() if name else ""
        self.offset = start + len(key)
        char = self.skip_blanks()
        if name and self.pass_equals(key, f"{key}: {{"):
            self.map(1)  # only to skip it: whether such an attribute exists is checked later
            raise NoValue
        if name and char == ":":
            self.offset += 1
        elif name and char == "{":
            self.wrong("a colon is missing before the brace", f"write: {key}: {{", key=key)
        else:
            self.offset = end
            cure = "write ':' instead of '='" if char == "=" else "write: name: value"
            self.wrong("expected 'attribute: value' or '}'", cure, at=start, end=end, key=key)
            raise NoValue
        return Entry(key, self.place(start), self.attribute_value(key, by_line))

    def attribute_value(self, key: str, by_line: bool) -> Node:
        """Return the value of a section's attribute."""
        char, squashed = self.skip_blanks(), squash(key)
        if char in {"", "\n", "#"} and squashed in MAPS and self.brace_follows():
            char = self.skip()
        start = self.offset
        if char == '"':
            text = self.double_quoted(key)
            if not self.value_ends(by_line):
                rest, self.offset = self.offset, self.line_end()
                cure = "put quotes around the whole value"
                self.wrong("text after the closing quote", cure, at=rest, end=self.offset, key=key)
            return Scalar(text, self.place(start), quoted=True)
        if char == "'" and (quoted := self.single_quoted()) is not None:
            if self.value_ends(by_line):
                return Scalar(quoted, self.place(start), quoted=True)
            self.offset = start
        if char == "{" and (squashed in MAPS or self.text[start + 1 : self.line_end()].strip() == ""):
            return self.map(1)
        return self.first_word(key, by_line) if squashed in HASH_IS_TEXT else self.rest_of_line(key, by_line)

    def value_ends(self, by_line: bool) -> bool:
        """Return whether the value that was just read is complete."""
        return self.rest_is_empty() or (not by_line and self.skip_blanks() in {",", ";", "}"})

    def first_word(self, key: str, by_line: bool) -> Scalar:
        """Return the first word, `#` included; further text never counted. NoValue if it is missing."""
        start = self.offset
        match = _WORD.match(self.text, start)
        word = match.group() if match else ""
        if not by_line:
            word = word.rstrip(",;}") if word.count("}") > word.count("{") else word.rstrip(",;")
        self.offset = start + len(word)
        if not word:
            raise self.empty(key, start)
        if by_line and not self.rest_is_empty():
            rest, self.offset = self.offset, self.line_end()
            message = "only the first word of this attribute counts, the rest is ignored"
            self.warn(message, at=rest, end=self.offset, key=key)
        return self.unquoted(word, start, key)

    def rest_of_line(self, key: str, by_line: bool) -> Scalar:
        """Return the text up to the end of the line, a `#`, or the next attribute of a shared line; NoValue."""
        start = self.offset
        stop = comment = _comment_or_end(self.text, self.offset, self.line_end())
        if not by_line:
            stop = _shared_end(self.text, start, stop, _NEXT_ATTRIBUTE, ",;")
        text = self.text[start:stop].strip()
        self.offset = stop
        if not text:
            raise self.empty(key, start)
        if stop == comment < self.line_end() and not self.text[stop - 1].isspace():
            self.warn("'#' begins a comment here; put the value in quotes if it belongs to it", at=stop, key=key)
        return self.unquoted(text, start, key)

    def bare(self, key: str, by_line: bool) -> Scalar:
        """Return a map's bare value, up to the end of the line, a `#`, the map's brace, or a comma and a name."""
        start = self.offset
        self.offset = stop = _shared_end(
            self.text, start, _comment_or_end(self.text, self.offset, self.line_end()), _NEXT_ENTRY, ","
        )
        if not by_line:
            self.check_unambiguous(key, start, stop)
        text = self.text[start:stop].strip()
        self.check_comment(key, start, stop, text)
        text = text.removesuffix(",").rstrip()
        if not text:
            raise self.empty(key, start)
        return self.unquoted(text, start, key)

    def check_comment(self, key: str, start: int, stop: int, text: str) -> None:
        """Report a `#` close to a map's value; NoValue in patterns, as a wrong guess there would change a policy."""
        if self.text[stop : stop + 1] != "#" or (text and self.text[stop - 1].isspace() and text[-1] != ","):
            return
        if squash(key) not in WILDCARDS:
            self.warn("'#' begins a comment here; put the value in quotes if it belongs to it", at=stop, key=key)
            return
        self.offset = end = self.line_end()
        text, cure = self.text[start:end].strip(), "put the value in quotes, and a blank before a comment"
        self.findings.error(
            self.place(stop), "a comment or a wildcard?", section=self.section, key=key, text=text, suggestion=cure
        )
        raise NoValue

    def check_unambiguous(self, key: str, start: int, stop: int) -> None:
        """Report `a, word:b` in a one-line map, as `word` may be a name or not: a wrong guess could change a policy."""
        for comma in re.finditer(",", self.text[start:stop]):
            maybe = _MAYBE_ENTRY.match(self.text, start + comma.end(), stop)
            if maybe and not _IPV6_GROUP.fullmatch(maybe.group(1)):
                cure = "put a blank after the colon of a name, or the value in quotes"
                self.wrong("a name or a part of the value before it?", cure, at=maybe.start(1), end=stop, key=key)
                raise NoValue


def _comment_or_end(text: str, start: int, end: int) -> int:
    """Return the offset of the comment on a line, or the ``end`` of the line."""
    comment = text.find("#", start, end)
    return end if comment < 0 else comment


def _shared_end(text: str, start: int, stop: int, next_entry: re.Pattern[str], separators: str) -> int:
    """Return the end of a bare value that shares its line: a brace that closes the map, or the next name."""
    depth = 0
    for at in range(start, stop):
        char = text[at]
        if char == "{":
            depth += 1
        elif char == "}":
            if not depth:
                return at
            depth -= 1
        elif char in separators and not depth and next_entry.match(text, at + 1, stop):
            return at
    return stop
