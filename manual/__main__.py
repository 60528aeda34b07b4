"""Write the generated pages of the manual to a folder, as `make docs` does: `python -m manual docs`."""

from __future__ import annotations

import argparse
from pathlib import Path

from manual import (
    columns,
    compatibility,
    configuration,
    limits_page,
    metrics,
    migration,
    operations,
    pictures,
    policy,
    states,
)


def pages() -> dict[str, str]:
    """Return every generated page and picture by its name in docs/."""
    return {
        **configuration.pages(),
        "migration.md": migration.page(),
        "limits.md": limits_page.page(),
        "compatibility.md": compatibility.page(),
        "columns.md": columns.page(),
        "management.md": operations.page(),
        "metrics.md": metrics.page(),
        "policy.md": policy.page(),
        "protocol/states.md": states.page(),
        **pictures.pages(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m manual", description="Write the generated pages of the manual.")
    parser.add_argument("folder", type=Path, help="where to write them, such as docs")
    folder: Path = parser.parse_args().folder
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    columns.TYPES_OF_CONSOLE.write_text(columns.console_types(), encoding="utf-8")
