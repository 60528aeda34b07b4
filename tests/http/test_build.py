"""The web console as `make console` builds it: its size, the packages that contain it, and serving from them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.http.sites import Site, ask, listening
from tests.routers import ROOT
from trouter.http import web_console

BUILD = web_console.FOLDER
#: What a browser may have to load for all pages together, compressed.
MAX_BUNDLE_BYTES = 500_000

pytestmark = pytest.mark.skipif(not (BUILD / "index.html").exists(), reason="`make console` has not built it")


def test_the_bundle_is_within_its_bound() -> None:
    sizes = {path.name: path.stat().st_size for path in BUILD.rglob("*.gz")}
    assert {".css.gz", ".html.gz", ".js.gz"} <= {"".join(Path(name).suffixes[-2:]) for name in sizes}
    assert sum(sizes.values()) <= MAX_BUNDLE_BYTES, sizes


async def test_the_build_is_served_with_everything_that_it_names() -> None:
    async with listening(Site()) as listener:
        start = await ask(listener, "/")
        assert start.status == 200
        assert b"<script>" not in start.body
        assert b"<style" not in start.body
        for path in BUILD.rglob("*"):
            if path.is_file() and path.suffix != ".gz":
                answer = await ask(listener, f"/{path.relative_to(BUILD)}", Accept_Encoding="gzip")
                assert answer.status == 200
                assert ("immutable" in answer.headers["cache-control"]) is (path.parent.name == "assets")


@pytest.mark.slow
def test_packages_contain_the_build_and_serve_it(tmp_path: Path) -> None:
    """A wheel made from the sdist, as a site without Node.js would make it."""
    environment = {**os.environ, "TROUTER_PURE": "1"}

    def run(*words: str | Path, cwd: Path = ROOT, **more: str) -> str:
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(
            command, cwd=cwd, env={**environment, **more}, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr[-5000:]
        return done.stdout

    run("-c", "from setuptools import build_meta; build_meta.build_sdist(r'" + str(tmp_path) + "')")
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    run("-c", "from setuptools import build_meta; build_meta.build_wheel(r'" + str(tmp_path) + "')", cwd=source)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name.partition("trouter/http/console/")[2] for name in archive.namelist()}
        archive.extractall(tmp_path / "installed")
    assert {str(path.relative_to(BUILD)) for path in BUILD.rglob("*") if path.is_file()} <= inside
    script = (
        "import trio\n"
        "from trouter.http import web_console\n"
        "answer = web_console.open_console(web_console.FOLDER, ('',), compressed=False)\n"
        "print(web_console.FOLDER, answer.status)\n"
    )
    installed = tmp_path / "installed"
    where, status = run("-c", script, cwd=installed, PYTHONPATH=str(installed)).split()
    assert Path(where).is_relative_to(installed)
    assert status == "200"
