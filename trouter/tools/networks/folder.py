"""The configurations of a network in a folder: `routers/ID.conf` for each router, `common.conf` for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trouter.config import Configuration, ConfigurationError, load
from trouter.config.keepers import EVERYBODY
from trouter.config.load import FaultyConfiguration
from trouter.config.networks import remarks
from trouter.tools import formats
from trouter.tools.failures import UsageError

COMMON: Final = "common.conf"
ROUTERS: Final = "routers"
#: The largest text that a router takes in a request, with room for the rest of the request.
MAX_TEXT_BYTES: Final = 260_000


@dataclass(frozen=True, slots=True)
class RouterFile:
    """The configuration of one router: the common text, if there is any, and behind it its own."""

    id: str
    path: Path
    text: str
    common: Path
    #: The lines of the text that are the common ones.
    common_lines: int

    def place(self, line: int) -> str:
        """Return the file and line of a line of the text; 0 is the text as a whole."""
        if not line:
            return str(self.path)
        if line <= self.common_lines:
            return f"{self.common}:{line}"
        return f"{self.path}:{line - self.common_lines}"


def read_folder(folder: Path) -> list[RouterFile]:
    """Return the files of a folder by the id of their router; UsageError, OSError."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder")
    # what begins with a dot belongs to an editor
    paths = sorted(path for path in (folder / ROUTERS).glob("*.conf") if not path.name.startswith("."))
    if not paths:
        raise UsageError(f"{folder}: there is no {ROUTERS}/ID.conf in it, a file for each router")
    common = folder / COMMON
    shared = read_text(common, folder) if common.exists() else ""
    if shared and not shared.endswith("\n"):
        shared += "\n"
    return [
        RouterFile(
            path.name.removesuffix(".conf"),
            path,
            _bounded(path, shared + read_text(path, folder)),
            common,
            shared.count("\n"),
        )
        for path in paths
    ]


def read_text(path: Path, folder: Path) -> str:
    """Return the text of a file within the folder of a network; UsageError, OSError.

    Who makes the folder may not have the files of who checks it sent to a router: a link leads to no file elsewhere.
    """
    if formats.plain(path.name) != path.name:  # a name becomes an id, or a comment
        raise UsageError(f"{path.parent}: the name {path.name!r} has control characters: rename the file")
    if not path.is_file():  # a pipe would be waited for
        raise UsageError(f"{path} is no file with a configuration")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"{path} is a link to {path.resolve()}, outside of {folder}: copy the file into the folder")
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(MAX_TEXT_BYTES + 1)
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text: save it as UTF-8") from None
    if len(text) > MAX_TEXT_BYTES:
        raise UsageError(f"{path} has more than {MAX_TEXT_BYTES} bytes; a router takes no more in a request")
    return text


def _bounded(path: Path, text: str) -> str:
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise UsageError(f"{path} has {size} bytes with {COMMON}; a router takes {MAX_TEXT_BYTES} in a request")
    return text


def contradictions(files: list[RouterFile]) -> Iterator[tuple[str, bool]]:
    """Yield what the files say of each other that does not fit, and whether the network cannot work so."""
    configurations = []
    for file in files:
        configuration = _parsed(file)
        if configuration is None:
            continue
        configurations.append(configuration)
        own = configuration.router.id
        if "id" not in configuration.router.written:
            yield f"{file.path}: its router has no id: write router {{ id: {file.id} }}", True
        elif own != file.id:
            yield f"{file.path}: its router has the id {own}; name the file {own}.conf", True
    for remark in remarks(configurations):
        yield remark.text, remark.grave


def _parsed(file: RouterFile) -> Configuration | None:
    """Return the configuration of a file, without what is wrong in it; None if nothing can be read."""
    try:
        return load(file.path, file.text, EVERYBODY)
    except FaultyConfiguration as faulty:
        return faulty.partial
    except ConfigurationError:
        return None
