"""The configuration file of a router, and a change of it over the network that is not finished.

Beside the file lie ``NAME.before``, its text before the last change, and ``NAME.change`` while a change is open: it is
neither confirmed nor taken back. The latter is written before the configuration is replaced and has the digests of both
texts, so the configuration itself says how far the change came, also after the process was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from trouter.management.ports import BEGUN, EDITED, MADE, OpenChange
from trouter.records.disk import place_file, rename_durably, sync

BEFORE: Final = ".before"
CHANGE: Final = ".change"
_NEW: Final = ".new"
#: The file of a change is for the router alone: by the digest of a text one could try what a password in it is.
_CHANGE_MODE: Final = 0o600
#: The most bytes of the file of a change: the ids of the routers are most of it.
_MAX_CHANGE_BYTES: Final = 1_000_000


class UnreadableChange(Exception):
    """The file of an open change has no change in it; the text names it."""


@dataclass(frozen=True, slots=True)
class ChangeOrder:
    """Who ordered a change of which routers; see ``OpenChange``."""

    id: str
    by: str
    user: str
    host: str
    at_s: int
    routers: tuple[str, ...]


class ChangedFile:
    """The configuration file at ``path``, which no symbolic link is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._before = path.with_name(path.name + BEFORE)
        self._change = path.with_name(path.name + CHANGE)
        self._new = path.with_name(path.name + _NEW)

    def read(self) -> bytes:
        """Return the configuration as it is on the disk; OSError."""
        return self.path.read_bytes()

    def read_before(self) -> bytes:
        """Return the configuration before the open change; OSError."""
        return self._before.read_bytes()

    def why_not_writable(self) -> str:
        """Return why the file cannot be replaced by this process; empty if it can."""
        folder = self.path.parent
        if os.access(folder, os.W_OK | os.X_OK):
            return ""
        return (
            f"the router may not write to {folder}: move its configuration into a folder that its user may write to; "
            "docs/install.md says how"
        )

    def open_change(self) -> OpenChange | None:
        """Return the open change, None if there is none; OSError, UnreadableChange."""
        try:
            with self._change.open("rb") as file:
                written: Any = json.loads(file.read(_MAX_CHANGE_BYTES))
            return OpenChange(
                id=str(written["id"]),
                by=str(written["by"]),
                user=str(written["user"]),
                host=str(written["host"]),
                at_s=int(written["at_s"]),
                routers=tuple(map(str, written["routers"])),
                state=self._state(written["old"], written["new"]),
            )
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadableChange(f"{self._change} has no change of a configuration in it: remove it") from error

    def _state(self, old: str, new: str) -> str:
        digest = _digest(self.read())
        return MADE if digest == new else BEGUN if digest == old else EDITED

    def begin(self, order: ChangeOrder, octets: bytes) -> None:
        """Keep the present configuration, write the order down, and the new configuration beside it; OSError."""
        present = self.read()
        self._place(self._before, present)
        written = {**asdict(order), "old": _digest(present), "new": _digest(octets)}
        place_file(self._change, json.dumps(written).encode(), mode=_CHANGE_MODE)
        self._place(self._new, octets)

    def finish(self) -> None:
        """Put the new configuration in the place of the present one; OSError, and that stays."""
        rename_durably(self._new, self.path)

    def drop(self) -> None:
        """Forget a change that was begun and not made."""
        with suppress(OSError):
            self.end()

    def restore(self) -> None:
        """Put the configuration before the change back, and end the change; OSError."""
        self._place(self._new, self.read_before())
        rename_durably(self._new, self.path)
        self.end()

    def end(self) -> None:
        """End the change as it is; OSError."""
        self._new.unlink(missing_ok=True)
        self._change.unlink(missing_ok=True)
        sync(self.path.parent)

    def _place(self, target: Path, octets: bytes) -> None:
        """Write a file whose owner and rights are those of the configuration; OSError."""
        facts = self.path.stat()
        place_file(target, octets, mode=_CHANGE_MODE)
        with suppress(PermissionError):  # only root gives files away
            os.chown(target, facts.st_uid, facts.st_gid)
        target.chmod(stat.S_IMODE(facts.st_mode))


def _digest(octets: bytes) -> str:
    return hashlib.sha256(octets).hexdigest()
