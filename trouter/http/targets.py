"""From a request's target to the names of its path; anything but a plain path below the root is refused."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

_ABSOLUTE_FORM = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)


def path_of(target: bytes) -> tuple[str, ...] | None:
    """Return the decoded names of the path, the last one empty after a final slash; None if it is no valid path.

    Each name is decoded once and by itself, so an encoded slash, a backslash, a control character, a name that begins
    with a dot (``..`` above all) and an empty name within never reach the file system.
    """
    path = re.split(rb"[?#]", _ABSOLUTE_FORM.sub(b"", target, count=1), maxsplit=1)[0] or b"/"
    if not path.startswith(b"/"):
        return None
    *folders, last = [_name(part) for part in path[1:].split(b"/")]
    if last is None or not all(folders):
        return None
    return (*[folder for folder in folders if folder], last)


def _name(part: bytes) -> str | None:
    try:
        name = unquote_to_bytes(part).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if name.startswith(".") or re.search(r"[/\\\x00-\x1f\x7f]", name) else name
