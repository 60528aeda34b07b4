"""Write packaging/home.toml into every file that says where trouter is at home: `make home`.

This program owns the lines of each file that begin in a certain way: it takes them away, and writes those of home.toml
behind the line that begins as `after` does.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent


class Lines(NamedTuple):
    """Lines of one file: the beginning of the line before them, and what stands there, by the beginning of each."""

    path: str
    after: str
    #: A beginning, and the rest of the line; "" for no line.
    lines: Mapping[str, str]


def places(home: Mapping[str, str]) -> Iterator[Lines]:
    """Return the lines of all files for the values of home.toml."""
    urls = {
        f"{name.capitalize()} = ": f'"{home[name]}"' if home[name] else ""
        for name in ("documentation", "source", "issues", "changelog")
    }
    maintainer = f"{home['maintainer']} <{home['email']}>" if home["email"] else home["maintainer"]
    yield Lines("pyproject.toml", "[project.urls]", urls)
    yield Lines("pipeline/pyproject.toml", "[project.urls]", urls)
    yield Lines("packaging/deb/debian/control", "Priority: ", {"Maintainer: ": maintainer})
    yield Lines("packaging/deb/debian/control", "Standards-Version: ", {"Homepage: ": home["documentation"]})
    origin = home["source"] or "the sdist that this package was built from"
    yield Lines("packaging/deb/debian/copyright", "Upstream-Name: ", {"Source: ": origin})
    yield Lines("packaging/rpm/trouter.spec", "License: ", {"URL: ": home["documentation"]})
    yield Lines("packaging/helm/trouter/Chart.yaml", "kubeVersion: ", {"home: ": home["documentation"]})
    label = f'"{home["documentation"]}" \\' if home["documentation"] else ""
    yield Lines(
        "packaging/container/Containerfile",
        "      org.opencontainers.image.licenses=",
        {"      org.opencontainers.image.documentation=": label},
    )
    # OSS-Fuzz needs all of these: its build fails while they are empty.
    yield Lines("packaging/oss-fuzz/Dockerfile", "FROM ", {"ARG SOURCE=": f'"{home["source"]}"'})
    yield Lines(
        "packaging/oss-fuzz/project.yaml",
        "# ",
        {
            "homepage: ": f'"{home["documentation"]}"',
            "main_repo: ": f'"{home["source"]}"',
            "primary_contact: ": f'"{home["security"]}"',
        },
    )
    address = f"<{home['security']}>." if home["security"] else ""
    yield Lines("SECURITY.md", "<!-- packaging/home.toml -->", {"Here that is ": address})


def replaced(text: str, change: Lines) -> str:
    """Return the text of a file with other lines.

    Raises:
        ValueError: not one line begins as ``change.after`` does.
    """
    kept = [line for line in text.splitlines(keepends=True) if not line.startswith(tuple(change.lines))]
    places = [number for number, line in enumerate(kept, 1) if line.startswith(change.after)]
    if len(places) != 1:
        msg = f"{change.path}: {len(places)} lines begin with {change.after!r}"
        raise ValueError(msg)
    new = [f"{start}{rest}\n" for start, rest in change.lines.items() if rest]
    return "".join([*kept[: places[0]], *new, *kept[places[0] :]])


def files(home: Mapping[str, str], folder: Path = ROOT) -> dict[str, str]:
    """Return the texts of all files for the values of home.toml, by their paths below the folder."""
    texts: dict[str, str] = {}
    for change in places(home):
        before = texts.get(change.path) or (folder / change.path).read_text(encoding="utf-8")
        texts[change.path] = replaced(before, change)
    return texts


def read_home(folder: Path = ROOT) -> dict[str, str]:
    """Return the values of packaging/home.toml."""
    home: dict[str, str] = tomllib.loads((folder / "packaging" / "home.toml").read_text(encoding="utf-8"))
    return home


def main() -> None:
    for path, text in files(read_home()).items():
        (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
