"""Collects the state of a router into the files of an archive without secrets."""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from trouter.wire.value_text import json_value

from .failures import MalformedAnswer, StatusError
from .node import NodeClient
from .redaction import without_secrets
from .words import PREFIX

#: Limit of the rows of a table.
MAX_ROWS: Final = 20_000
#: Limit of the bytes that are taken from the end of a local file.
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
#: Types whose rows are all those of other types.
_ABSTRACT: Final = frozenset({"entity", "org.amqp.management", "configurationEntity", "operationalEntity"})


class Archive:
    """A .tar.gz that is being written; secrets are removed from all its text."""

    def __init__(self, path: Path, secrets: Iterable[str]) -> None:
        """Create the file, readable by its owner only; OSError if it exists."""
        self._secrets = tuple(secrets)
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz")  # noqa: SIM115  # closed by `close`
        #: Name of each file in it -> its size in bytes.
        self.contents: dict[str, int] = {}

    def add(self, name: str, text: str) -> None:
        """Add a file."""
        data = without_secrets(text, self._secrets).encode(errors="backslashreplace")
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = len(data), 0o600, int(time.time())
        self._tar.addfile(entry, io.BytesIO(data))
        self.contents[name] = len(data)

    def add_json(self, name: str, value: object) -> None:
        """Add a value as JSON, an entry a line where it is a list."""
        given = json_value(value)
        if isinstance(given, list):
            self.add(name, "[\n" + ",\n".join(json.dumps(each) for each in given) + "\n]\n")
        else:
            self.add(name, json.dumps(given, indent=2) + "\n")

    def add_file(self, folder: str, path: Path) -> None:
        """Add the end of a local text file; OSError."""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - MAX_FILE_BYTES))
            data = file.read(MAX_FILE_BYTES)
        number = sum(name.startswith(f"{folder}/") for name in self.contents)
        self.add(f"{folder}/{number + 1}-{path.name}", data.decode(errors="backslashreplace"))

    def close(self) -> None:
        """Finish the file; OSError."""
        self._tar.close()
        self._file.close()


async def diagnose(node: NodeClient, archive: Archive, log_lines: int) -> list[str]:
    """Add the state of a router; return a line for each part that failed, with the reason. Timeout if none answers."""
    folder = _file_name(node.router_id)
    problems: list[str] = []

    async def add(name: str, answering: Any) -> Any:
        try:
            answer = await answering
        except (StatusError, MalformedAnswer) as refused:
            problems.append(f"{folder}/{name}: {refused}")
        else:
            if answer:
                archive.add_json(f"{folder}/{name}", answer)
            return answer

    types = await add("types.json", node.call_self("GET-TYPES"))
    for kind in _concrete(types):
        await add(f"tables/{_file_name(kind.removeprefix(PREFIX))}.json", _rows(node, kind))
    await add("memory.json", node.call_self("GET-MEMORY"))
    await add("log.json", node.call_self("GET-LOG", limit=log_lines))
    return problems


async def _rows(node: NodeClient, kind: str) -> list[dict[str, Any]]:
    return (await node.query(kind, limit=MAX_ROWS)).dicts()


def _concrete(types: object) -> Iterator[str]:
    """Yield the types of an answer to GET-TYPES that have rows of their own."""
    for kind in sorted(types) if isinstance(types, dict) else ("router", "connection", "router.link", "router.address"):
        if kind.removeprefix(PREFIX) not in _ABSTRACT:
            yield kind


def _file_name(text: str) -> str:
    """Return a router's id or a type as a safe name of a file, without any path."""
    kept = "".join(each if each.isalnum() or each in "._-" else "_" for each in text)[:100]
    return kept.lstrip(".") or "_"
