"""The request targets that are paths on this server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.http.targets import path_of

PATHS = {
    b"/": ("",),
    b"": ("",),
    b"/metrics": ("metrics",),
    b"/metrics?x=1": ("metrics",),
    b"/metrics#x": ("metrics",),
    b"/a/b.js": ("a", "b.js"),
    b"/a/": ("a", ""),
    b"/%61%20b": ("a b",),
    "/é".encode(): ("é",),
    b"/%c3%a9": ("é",),
    b"/%252e%252e/x": ("%2e%2e", "x"),
    b"/a%": ("a%",),
    b"http://example.com/metrics": ("metrics",),
    b"HTTPS://example.com:1/a?b": ("a",),
    b"http://example.com": ("",),
    b"http://example.com?x": ("",),
}
NONE = [
    b"*", b"metrics", b"example.com:443", b"ftp://example.com/x", b"/..", b"/../x", b"/a/../b", b"/a/..", b"/.",
    b"/./a",
    b"/%2e%2e/x", b"/%2E./x", b"/.%2e/x", b"/..%2fx", b"/a%2f..%2f..%2fx", b"/%2fetc/passwd", b"//etc/passwd", b"/a//b",
    b"/..\\x", b"/a\\b", b"/%5c..%5cx", b"/a%00.txt", b"/a%0ab", b"/%ff", b"/.git/config", b"/.htpasswd", b"/%2ehidden",
    b"/a/b/../../../x",
]  # fmt: skip


@pytest.mark.parametrize(("target", "path"), PATHS.items(), ids=repr)
def test_a_path_is_decoded_once_name_by_name(target: bytes, path: tuple[str, ...]) -> None:
    assert path_of(target) == path


@pytest.mark.parametrize("target", NONE, ids=repr)
def test_a_target_that_could_lead_elsewhere_is_no_path(target: bytes) -> None:
    assert path_of(target) is None


@given(st.binary(max_size=60).map(lambda text: b"/" + text))
def test_no_name_leads_to_a_parent_or_a_hidden_file(target: bytes) -> None:
    *folders, last = path_of(target) or ("",)
    assert all(folders)
    for name in (*folders, last):
        assert not name.startswith(".")
        assert not set(name) & {"/", "\\", "\0"}
