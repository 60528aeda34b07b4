"""Reads a file of expectations: JSON with comments and trailing commas, as in configurations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from trouter.config.json_form import parse_value
from trouter.config.nodes import Entry, Items, Map, Node, Scalar
from trouter.config.problems import ConfigurationError, Findings, Problem, SourcePosition, few_hints, nearest
from trouter.policy.expectations import Expectation, Expectations
from trouter.policy.explain import Question

#: The largest file that is read, in bytes.
MAX_FILE_BYTES: Final = 16 * 1024 * 1024


def read_expectations(path: Path) -> Expectations:
    """Return the expectations in a file; ConfigurationError with all its problems."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise ConfigurationError([Problem(SourcePosition(str(path)), f"is larger than {MAX_FILE_BYTES} bytes")])
        text = data.decode()
    except OSError as failure:
        message = f"cannot be read: {failure.strerror or failure}"
        raise ConfigurationError([Problem(SourcePosition(str(path)), message)]) from failure
    except UnicodeDecodeError as failure:
        raise ConfigurationError([Problem(SourcePosition(str(path)), "is not UTF-8 text")]) from failure
    return expectations_in(text, path)


@few_hints()
def expectations_in(text: str, path: Path) -> Expectations:
    """Return the expectations in the text of a file; ConfigurationError with all its problems."""
    findings = Findings()
    node = parse_value(text.removeprefix("\ufeff"), str(path), findings)
    read = None if node is None else _file(node, path, findings)
    if read is None or findings.errors:
        raise ConfigurationError(sorted(findings.errors, key=lambda problem: problem.place))
    return read


class _Map:
    """A map of the file: the reader takes the keys that it knows; each other key is an error."""

    def __init__(self, node: Node, findings: Findings, what: str) -> None:
        self.findings = findings
        self.place = node.place
        self._what = what
        self._entries: dict[str, Entry] = {}
        self._known_keys: list[str] = []
        if not isinstance(node, Map):
            findings.error(node.place, f"{what} must be a map", suggestion='write: { "name": value }')
            return
        for entry in node.entries:
            if entry.key in self._entries:
                findings.error(entry.place, "given more than once", key=entry.key, suggestion="leave one of them out")
            self._entries[entry.key] = entry

    def keys(self) -> Iterable[str]:
        return self._entries

    def take_node(self, key: str) -> Node | None:
        self._known_keys.append(key)
        entry = self._entries.get(key)
        return None if entry is None else entry.node

    def read_text(self, key: str) -> str:
        node = self.take_node(key)
        if node is None:
            return ""
        if isinstance(node, Scalar) and isinstance(node.value, str):
            return node.value
        self.findings.error(node.place, "must be text", key=key, suggestion='write: "..."')
        return ""

    def read_flag(self, key: str, default: bool) -> bool:
        node = self.take_node(key)
        if node is None:
            return default
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        self.findings.error(node.place, "must be true or false", key=key)
        return default

    def read_texts(self, key: str) -> tuple[tuple[str, SourcePosition], ...]:
        """Return the text or texts of a key, each with its place."""
        node = self.take_node(key)
        if node is None:
            return ()
        found = []
        for item in node.items if isinstance(node, Items) else (node,):
            if isinstance(item, Scalar) and isinstance(item.value, str):
                found.append((item.value, item.place))
            else:
                self.findings.error(item.place, "must be text", key=key, suggestion='write: ["...", "..."]')
        return tuple(found)

    def read_maps(self, key: str, what: str) -> list[_Map]:
        node = self.take_node(key)
        if isinstance(node, Items):
            return [_Map(item, self.findings, what) for item in node.items]
        place = self.place if node is None else node.place
        self.findings.error(place, "must be given, as a list", key=key, suggestion=f'write: "{key}": [...]')
        return []

    def report_unread_keys(self) -> None:
        """Report each key that was not taken as an error."""
        for key, entry in self._entries.items():
            if key not in self._known_keys:
                cure = nearest(key, self._known_keys) or f"one of {', '.join(self._known_keys)}"
                self.findings.error(entry.place, f"unknown in {self._what}", key=key, suggestion=cure)


def _file(node: Node, path: Path, findings: Findings) -> Expectations:
    top = _Map(node, findings, "a file of expectations")
    policy = top.read_text("policy")
    enforce = top.read_flag("enforce", False)
    addresses: dict[str, tuple[str, ...]] = {}
    if (hosts := top.take_node("addresses")) is not None:
        named = _Map(hosts, findings, "addresses")
        for name in tuple(named.keys()):
            addresses[name.lower().removesuffix(".")] = tuple(text for text, _ in named.read_texts(name))
    rows = tuple(_row(each) for each in top.read_maps("expectations", "an expectation"))
    top.report_unread_keys()
    return Expectations(path.parent / policy if policy else None, enforce, addresses, rows)


def _row(given: _Map) -> Expectation:
    user = given.read_text("user")
    question = Question(
        vhost=given.read_text("vhost"),
        user=user,
        host=given.read_text("host"),
        authenticated=given.read_flag("authenticated", bool(user)),
        policy_vhost=given.read_text("policyVhost"),
        connector=given.read_flag("connector", False),
    )
    row = Expectation(
        given.place,
        question,
        given.read_flag("open", True),
        given.read_text("rule"),
        given.read_text("group"),
        given.read_texts("mayReceive"),
        given.read_texts("mayNotReceive"),
        given.read_texts("maySend"),
        given.read_texts("mayNotSend"),
    )
    given.report_unread_keys()
    return row
