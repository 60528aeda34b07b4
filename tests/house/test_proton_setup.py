"""The set-up compiles python-qpid-proton with what the machine offers, also if pip keeps an older copy without it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.routers import DEADLINE_S

NEEDS_PKG_CONFIG = pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is not installed")
#: In the place of the environment's Python: it reports what Proton was compiled with; an installation adds `adds`.
PYTHON = """#!/bin/sh
cd "$(dirname "$0")"
if [ "$1" = -c ]; then cat has; exit; fi
echo "$*" >>said
case "$*" in *" install "*) cat adds >>has;; esac
"""
BOTH = ("libsasl2", "openssl")
PIP = "-m pip --quiet --disable-pip-version-check"
KEPT = f"{PIP} cache remove python_qpid_proton"
AGAIN = f"{PIP} install --force-reinstall --no-deps --no-binary python-qpid-proton P==1"


@NEEDS_PKG_CONFIG
@pytest.mark.parametrize(
    ("offered", "has", "again"),
    [
        (BOTH, BOTH, False),
        (BOTH, ("openssl",), True),
        (BOTH, (), True),
        ((), (), False),
        ((), BOTH, False),
        (("openssl",), ("openssl",), False),
        (BOTH, None, True),
        ((), None, True),
    ],
)
def test_proton_is_compiled_again_if_it_lacks_what_the_machine_offers(
    tmp_path: Path, offered: tuple[str, ...], has: tuple[str, ...] | None, again: bool
) -> None:
    done = run(tmp_path, offered, has, adds=BOTH)
    assert done.returncode == 0, done.stderr
    said = tmp_path / "said"
    assert (said.read_text().splitlines() if said.exists() else []) == ([KEPT, AGAIN] if again else [])
    assert done.stderr == ""


@NEEDS_PKG_CONFIG
def test_the_build_goes_on_if_it_lacks_it_still(tmp_path: Path) -> None:
    done = run(tmp_path, BOTH, ("openssl",), adds=())
    assert done.returncode == 0
    assert done.stderr == "make: python-qpid-proton lacks libsasl2 still; tests that need it are skipped\n"


def run(
    folder: Path, offered: tuple[str, ...], has: tuple[str, ...] | None, *, adds: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine that has the headers of ``offered``; ``has`` is None if Proton cannot be loaded."""
    (folder / "python").write_text(PYTHON)
    (folder / "python").chmod(0o755)
    (folder / "adds").write_text("".join(f"{each}\n" for each in adds))
    if has is not None:
        (folder / "has").write_text("".join(f"{each}\n" for each in has))
    for each in offered:
        (folder / f"{each}.pc").write_text(f"Name: {each}\nDescription: it is here\nVersion: 1\n")
    return subprocess.run(
        [str(ROOT / ".ci" / "proton"), str(folder / "python"), "P==1"],
        env={**os.environ, "PKG_CONFIG_LIBDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_the_headers_are_installed_before_pip_compiles_proton() -> None:
    steps = subprocess.run(
        ["make", "--dry-run", "--always-make", "venv"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    ).stdout
    for headers in ("sasl-headers", "openssl-headers"):  # names of make/system.sh
        assert steps.index(headers) < steps.index("install -r requirements-dev.lock") < steps.index(".ci/proton ")
