"""The routers that were away when a folder was applied, kept in the folder: the change waits for them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from trouter.tools.failures import UsageError

#: It begins with a dot: it is none of the files of the routers.
NAME: Final = ".pending.json"


def read_pending(folder: Path) -> dict[str, str]:
    """Return since when the change waits for each router, by its id; UsageError, OSError."""
    path = folder / NAME
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        written = None
    if not isinstance(written, dict) or not all(isinstance(since, str) for since in written.values()):
        raise UsageError(f"{path} does not list routers for which a change waits: remove it")
    return written


def note_pending(folder: Path, waiting: Iterable[str], done: Collection[str]) -> None:
    """Note that the change waits for the routers ``waiting``, and no more for those of ``done``; as read_pending."""
    before = read_pending(folder)
    now = f"{datetime.now(tz=UTC):%Y-%m-%dT%H:%M:%SZ}"
    after = {router: since for router, since in before.items() if router not in done}
    after |= {router: before.get(router, now) for router in waiting}
    path = folder / NAME
    if after:
        part = path.with_name(f"{NAME}.part")
        part.write_text(json.dumps(after, indent=2) + "\n", encoding="utf-8")
        part.replace(path)
    else:
        path.unlink(missing_ok=True)
