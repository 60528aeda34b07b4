"""The web console at `/`: the listeners that serve it, its headers, and the page without a build."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.http.sites import Site, ask, listening
from trouter.http import web_console

CODE = b"export const answer = 42;\n" * 100
OLDER_FOLDER = "/usr/share/qpid-dispatch/console"


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a build of the console, in the form of Vite's output."""
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(b"<!doctype html><title>console</title>")
    (folder / "assets" / "index-Cx3a.js").write_bytes(CODE)
    (folder / "assets" / "index-Cx3a.js.gz").write_bytes(gzip.compress(CODE))
    (folder / "assets" / "icon-Ab12.svg").write_bytes(b"<svg/>")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path)
    monkeypatch.setattr(web_console, "FOLDER", folder)
    return folder


def policy_of(headers: dict[str, str]) -> dict[str, str]:
    directives = (each.strip().partition(" ") for each in headers["content-security-policy"].split(";"))
    return {name: sources for name, _, sources in directives}


@pytest.mark.parametrize("attributes", [{}, {"http_root_dir": ""}, {"http_root_dir": OLDER_FOLDER}])
async def test_a_listener_without_a_folder_serves_the_console(attributes: dict[str, str]) -> None:
    async with listening(Site(), **attributes) as listener:
        for path in ("/", "/index.html"):
            answer = await ask(listener, path)
            assert (answer.status, answer.body) == (200, b"<!doctype html><title>console</title>")
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.headers["cache-control"] == "no-cache"
        for path in ("/healthz", "/metrics", "/readyz", "/livez"):
            assert (await ask(listener, path)).status == 200
            assert policy_of((await ask(listener, path)).headers) == {"frame-ancestors": "'self'"}


async def test_a_configured_folder_is_served_in_place_of_the_console(tmp_path: Path) -> None:
    root = tmp_path / "share" / "qpid-dispatch" / "console"
    root.mkdir(parents=True)
    (root / "index.html").write_text("<script>older()</script>")
    async with listening(Site(), http_root_dir=str(root)) as listener:
        answer = await ask(listener, "/", Accept_Encoding="gzip")
        assert answer.body == b"<script>older()</script>"
        assert policy_of(answer.headers) == {"frame-ancestors": "'self'"}
        assert "cross-origin-resource-policy" not in answer.headers
        assert (await ask(listener, "/assets/index-Cx3a.js")).status == 404


@pytest.mark.parametrize("attributes", [{"websockets": False}, {"http_root_dir": "/no/such/folder"}])
async def test_a_listener_that_cannot_serve_its_requests_has_no_console(attributes: dict[str, object]) -> None:
    async with listening(Site(), **attributes) as listener:
        assert (await ask(listener, "/")).status == 404
        assert (await ask(listener, "/assets/index-Cx3a.js")).status == 404
        assert (await ask(listener, "/healthz")).status == 200


async def test_a_page_of_the_console_runs_its_own_code_alone() -> None:
    async with listening(Site()) as listener:
        for path in ("/", "/assets/index-Cx3a.js"):
            headers = (await ask(listener, path)).headers
            policy = policy_of(headers)
            assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
            assert {policy[f"{kind}-src"] for kind in ("script", "style", "font", "connect")} == {"'self'"}
            assert "unsafe" not in headers["content-security-policy"]
            assert policy["frame-ancestors"] == "'self'"
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "SAMEORIGIN"
            assert headers["referrer-policy"] == "no-referrer"
            assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
            assert "camera=()" in headers["permissions-policy"]


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.8, br", True),
        ("GZIP ; q=1", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("br", False),
        ("", False),
    ],
)
async def test_code_is_sent_compressed_to_clients_that_accept_gzip(accepted: str, packed: bool) -> None:
    async with listening(Site()) as listener:
        answer = await ask(listener, "/assets/index-Cx3a.js", Accept_Encoding=accepted)
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers.get("content-encoding") == ("gzip" if packed else None)
    assert (gzip.decompress(answer.body) if packed else answer.body) == CODE


async def test_an_uncompressed_file_is_sent_plain() -> None:
    async with listening(Site()) as listener:
        answer = await ask(listener, "/assets/icon-Ab12.svg", Accept_Encoding="gzip")
        assert (answer.body, answer.headers.get("content-encoding")) == (b"<svg/>", None)
        head = await ask(listener, "/assets/index-Cx3a.js", "HEAD", Accept_Encoding="gzip")
        assert (head.status, head.headers["content-encoding"], head.body) == (200, "gzip", b"")
        assert (await ask(listener, "/", "POST", Content_Length="0")).status == 405


@pytest.mark.parametrize(
    "target", ["/../secret", "/%2e%2e/secret", "/link/secret", "/..%2fsecret", "//etc/passwd", "/x"]
)
async def test_no_target_leads_out_of_the_console(target: str) -> None:
    async with listening(Site()) as listener:
        answer = await ask(listener, target)
        assert answer.status == 404
        assert answer.body == b"404 Not Found\n"


async def test_a_checkout_without_the_build_answers_with_the_build_command(build: Path) -> None:
    (build / "index.html").unlink()
    async with listening(Site()) as listener:
        answer = await ask(listener, "/")
        assert answer.status == 404
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert b"`make console` builds it" in answer.body
        assert (await ask(listener, "/other")).body == b"404 Not Found\n"
        for path in ("/healthz", "/metrics", "/readyz", "/livez"):
            assert (await ask(listener, path)).status == 200
