"""Checks before the start whether files and directories that attributes name can be used."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeAlias

from trouter.config.schema import BadValue, Doubt

MAX_NAME_MAP_BYTES = 16 << 20
#: Makes an object of a JSON file from its pairs; BadValue.
Once: TypeAlias = Callable[[list[tuple[str, object]]], dict[str, object]]
#: Folders with files of the kernel.
KERNEL_FOLDERS = ("/dev", "/proc", "/sys")
#: The point of the table of strictness about files that cannot be read.
UNREADABLE = "unreadable-file"
#: Where packages of Qpid Dispatch put its console; files name it in httpRootDir.
_OLDER_CONSOLE = re.compile(r"(?:/[\w.-]+)*/share/qpid-dispatch/console(?:/[\w.-]+)*/?")


def readable(path: str) -> str | None:
    """Return a file or a directory that can be read; an empty path is none. Doubt for one that cannot."""
    if path and Path(path).is_dir():
        try:
            return directory(path)
        except BadValue as bad:
            raise Doubt(UNREADABLE, path, bad.message, bad.suggestion) from None
    return readable_file(path)


def readable_file(path: str) -> str | None:
    """Return a file that can be read; an empty path is none. Doubt for one that cannot."""
    if path:
        try:
            with opened(path) as file:
                file.read(1)
        except (OSError, ValueError) as failure:
            raise Doubt(UNREADABLE, path, f"this file cannot be read: {reason(failure)}") from None
    return path or None


def directory(path: str) -> str:
    """Return a directory whose files can be listed; an empty path is none."""
    if path:
        try:
            with os.scandir(path):
                pass
        except (OSError, ValueError) as failure:
            raise BadValue(f"this directory cannot be read: {reason(failure)}", "name one that can") from None
    return path


def name_map(path: str) -> str | None:
    """Return a file with a JSON object from text to text; an empty path is none. Doubt for one that cannot be used."""
    if path:
        try:
            read_name_map(path)
        except BadValue as bad:
            raise Doubt(UNREADABLE, path, bad.message, bad.suggestion) from None
    return path or None


def served_folder(path: str) -> str:
    """Return a directory whose files can be listed, "" for none. Doubt for another: it is served all the same.

    The folder where packages of Qpid Dispatch put its console may be absent.
    """
    if is_absent_console(path):
        return path
    try:
        return directory(path)
    except BadValue as bad:
        raise Doubt("unreadable-folder", path, bad.message, bad.suggestion) from None


def is_absent_console(path: str | None) -> bool:
    """Return whether files of Qpid Dispatch name this folder for its console, and it is not on this machine."""
    return path is not None and _OLDER_CONSOLE.fullmatch(path) is not None and not Path(path).exists()


def read_json(path: str, max_bytes: int, once: Once, suggestion: str) -> object:
    """Return the content of a JSON file of at most ``max_bytes``; ``once`` makes its objects; BadValue."""
    try:
        with opened(path) as file:
            data = file.read(max_bytes + 1)
    except (OSError, ValueError) as failure:
        raise BadValue(f"this file cannot be read: {reason(failure)}", "name one that can") from None
    if len(data) > max_bytes:
        raise BadValue(f"this file is larger than {max_bytes} bytes", "make it smaller")
    try:
        return json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise BadValue("this file is not JSON", suggestion) from None


def read_name_map(path: str) -> Mapping[str, str]:
    """Return the names in a JSON file from text to text; BadValue if it is none."""
    names = read_json(path, MAX_NAME_MAP_BYTES, _once, 'write: {"uid": "name"}')
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise BadValue("this file is not one JSON object whose values are texts", 'write: {"uid": "name"}')
    shown = [name for name in names.values() if name]
    if len(set(shown)) < len(shown):
        raise BadValue("two entries of this file have the same name", "give them different names")
    return MappingProxyType(names)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object whose keys are all different; BadValue."""
    names = dict(pairs)
    if len(names) < len(pairs):
        raise BadValue("a name appears twice in this file", "keep one of the two entries")
    return names


def opened(path: str) -> BinaryIO:
    """Open a file for reading; OSError, also for a pipe or a device, whose reader might wait for ever."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(number, "rb")
    os.close(number)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "it is no plain file")


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is below a folder or the folder itself, links followed; False if that is unknown."""
    try:
        return Path(path).resolve().is_relative_to(Path(folder).resolve())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links in a circle
        return False


def is_special(path: str) -> bool:
    """Return whether a path is a device, a pipe, a socket or a file of the kernel; True if that is unknown."""
    try:
        place = Path(path).resolve()
        if any(place.is_relative_to(folder) for folder in KERNEL_FOLDERS):
            return True
        return place.exists() and not (place.is_file() or place.is_dir())
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links in a circle
        return True


def reason(failure: OSError | ValueError) -> str:
    return (failure.strerror if isinstance(failure, OSError) else None) or "not the name of a file"
