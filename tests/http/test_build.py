"""The web console as `make console` builds it: its size, and its delivery."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.sites import Site, ask, listening
from trouter.http import web_console

BUILD = web_console.FOLDER
#: Maximum compressed bytes that a browser loads for all pages together.
MAX_BUNDLE_BYTES = 500_000

pytestmark = pytest.mark.skipif(not (BUILD / "index.html").exists(), reason="`make console` has not built it")


def test_the_bundle_is_within_its_bound() -> None:
    sizes = {path.name: path.stat().st_size for path in BUILD.rglob("*.gz")}
    assert {".css.gz", ".html.gz", ".js.gz"} <= {"".join(Path(name).suffixes[-2:]) for name in sizes}
    assert sum(sizes.values()) <= MAX_BUNDLE_BYTES, sizes


async def test_the_build_is_served_with_every_file() -> None:
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
