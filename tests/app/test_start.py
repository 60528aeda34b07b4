"""A router's start imports no module that it does not need."""

from __future__ import annotations

import subprocess
import sys

from tests.routers import DEADLINE_S

#: Modules that only routers with HTTP listeners, connectors or tools need.
LATER = ("h11", "wsproto", "prometheus_client", "argcomplete", "trouter.client", "trouter.http", "trouter.tools")


def test_rooms_that_most_routers_do_without_are_imported_when_needed() -> None:
    code = (
        f"import sys, trouter.cli.run, trouter.app.process; print(*(name for name in {LATER} if name in sys.modules))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    ).stdout.split()
    assert found == []
