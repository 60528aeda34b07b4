"""The policy of a network in a folder: its vhosts in `*.conf` and `*.json`, and expectations in `tests/*.json`.

Each file is judged by itself, so that its problems have its lines; the text that all routers get has all of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trouter.config import Configuration, ConfigurationError, load
from trouter.config.conf_text import as_conf
from trouter.config.keepers import EVERYBODY
from trouter.config.policy_part import policy_sections
from trouter.tools.failures import UsageError

from .folder import MAX_TEXT_BYTES, read_text

TESTS: Final = "tests"
#: What the problems of the whole text call it, so that their places can be those of the files.
_WHOLE: Final = "(policy)"
_PLACE: Final = re.compile(r"\(policy\):(\d+)(?::\d+)?")


@dataclass(frozen=True, slots=True)
class PolicyFolder:
    """The policy that all routers are to have, as one text of the `.conf` form, and the expectations of it."""

    path: Path
    text: str
    configuration: Configuration
    #: The texts of the files of expectations.
    expectations: dict[Path, str]


def read_policy_folder(folder: Path) -> PolicyFolder:
    """Return the policy in a folder; UsageError, ConfigurationError with every problem of it, OSError."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder")
    # what begins with a dot belongs to an editor
    paths = sorted(
        path for path in folder.iterdir() if path.suffix in {".conf", ".json"} and not path.name.startswith(".")
    )
    expectations = {path: read_text(path, folder) for path in sorted((folder / TESTS).glob("*.json"))}
    parts = [(path, _as_conf(path, read_text(path, folder))) for path in paths]
    text = "".join(part for _, part in parts)
    size = len(text.encode()) + max((len(each.encode()) for each in expectations.values()), default=0)
    if size > MAX_TEXT_BYTES:
        raise UsageError(
            f"{folder}: policy and expectations have {size} bytes; a router takes {MAX_TEXT_BYTES} at once"
        )
    try:
        configuration = load(Path(_WHOLE), text or "# none\n", EVERYBODY)
    except ConfigurationError as error:
        raise UsageError("\n".join(_placed(str(problem), parts) for problem in error.problems)) from error
    if not configuration.vhosts:
        raise UsageError(f"{folder}: there is no vhost in its files *.conf and *.json: no client could connect")
    if configuration.policy.policy_dir:
        raise UsageError(f"{folder}: its policy names a policyDir: put the files of that into the folder instead")
    return PolicyFolder(folder, text, configuration, expectations)


def _as_conf(path: Path, text: str) -> str:
    """Return the sections of a file in the `.conf` form, below its name; ConfigurationError."""
    sections = policy_sections(text, str(path))
    load(path, text, EVERYBODY)
    if path.suffix == ".json":
        text = "\n\n".join(f"# {path.name}\n{as_conf(section)}" for section in sections)
    return f"{text.rstrip()}\n\n"


def _placed(problem: str, parts: list[tuple[Path, str]]) -> str:
    """Return a problem of the whole text with the files in the places of the text."""
    first = [1]
    for _, part in parts:
        first.append(first[-1] + part.count("\n"))

    def place(found: re.Match[str]) -> str:
        line = int(found[1])
        number = min(bisect_right(first, line), len(parts)) - 1
        path, _ = parts[number]
        return str(path) if path.suffix == ".json" else f"{path}:{line - first[number] + 1}"

    return _PLACE.sub(place, problem)
