"""sasl_cyrus in a process in which another part uses Cyrus SASL too: it serves its own users or refuses to start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugins.test_sasl_cyrus import NAME, missing, write_site
from tests.proton_build import WITH_CYRUS
from tests.routers import DEADLINE_S, ROOT

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")
LETS_IN = "Authenticated('alice', 0 bytes)"
OTHER_SERVER = (
    r"saslConfigDir: another part of this process has started Cyrus SASL as a server already, so that {file} would "
    r"not be read\. python-qpid-proton as a server does this\. Run that part in a process of its own$"
)


def answer_after(before: str, folder: Path) -> str:
    """Return the plugin's answer to alice in a process in which ``before`` happened."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.plugins.cyrus_beside", str(write_site(folder)), before],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "before",
    [
        "a client",
        pytest.param("proton as a client", marks=WITH_CYRUS),
        "a server that has ended",
        "a configuration without mechanisms",
    ],
)
def test_its_own_users_get_in_after(before: str, tmp_path: Path) -> None:
    assert answer_after(before, tmp_path) == LETS_IN


@pytest.mark.parametrize("before", ["a server", pytest.param("proton as a server", marks=WITH_CYRUS)])
def test_it_does_not_serve_the_users_of(before: str, tmp_path: Path) -> None:
    refused = answer_after(before, tmp_path)
    assert re.search(OTHER_SERVER.format(file=re.escape(f"{tmp_path}/{NAME}.conf")), refused), refused
