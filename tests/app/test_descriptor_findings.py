"""The finding that the system does not let the router open as many connections as its configuration admits."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from trouter.app.descriptor_findings import MORE_OF_WEBSOCKET, few_by_default, few_descriptors
from trouter.config import Configuration, load
from trouter.http.bridge import socket_pair

LISTENER = "listener {{\n    host: 127.0.0.1\n    port: {port}\n    maxConnections: {most}\n}}\n"
FREE = "listener {\n    host: 127.0.0.1\n    port: 5\n}\n"
WEB = "listener {\n    host: 127.0.0.1\n    port: 4\n    http: yes\n}\n"
WEB_OF_100 = WEB.replace("http", "maxConnections: 100\n    http")
PAGES = FREE + WEB.replace("http", "websockets: no\n    http")


def written(
    policy: int | None = None, listeners: tuple[int, ...] = (), workers: int = 1, rest: str = ""
) -> Configuration:
    text = f"router {{\n    id: A\n    workers: {workers}\n}}\n"
    text += "" if policy is None else f"policy {{\n    maxConnections: {policy}\n}}\n"
    return load(
        text=text + rest + "".join(LISTENER.format(port=6 + at, most=most) for at, most in enumerate(listeners))
    )


@pytest.mark.parametrize(
    ("configuration", "limit", "needed"),
    [
        (written(policy=1000, rest=FREE), 1024, 1104),
        (written(policy=1000, rest=FREE), 1103, 1104),
        (written(policy=1000, rest=FREE), 1104, None),
        (written(policy=1000, rest=FREE), None, None),
        (written(policy=1000, rest=FREE, workers=2), 1024, None),
        (written(policy=4000, rest=FREE, workers=2), 1024, 2104),
        (written(listeners=(500, 700)), 1024, 1304),
        (written(listeners=(500, 700), policy=800), 1024, None),
        (written(listeners=(500, 700), rest=FREE), 1024, None),  # nothing is written about the third
        (written(rest=FREE), 1024, None),
        (written(policy=5, rest=FREE), 4, 109),
        (written(policy=1000, rest=WEB), 3000, 3104),  # each may be a WebSocket, which has three
        (written(policy=1000, rest=WEB), 3104, None),
        (written(policy=1000, rest=FREE + WEB_OF_100), 1200, 1304),  # of which 100 may be
        (written(policy=1000, rest=PAGES), 1103, 1104),  # whose connections have one
        (written(listeners=(500,), rest=WEB_OF_100), 800, 904),
        (written(policy=4000, rest=WEB, workers=2), 6000, 6104),
    ],
)
def test_too_few_descriptors_are_found_with_the_number_that_is_needed(
    configuration: Configuration, limit: int | None, needed: int | None
) -> None:
    found = few_descriptors(configuration, limit)
    assert len(found) == (needed is not None)
    for finding in found:
        assert f"LimitNOFILE={needed} " in finding.suggestion
        assert f"`ulimit -n {needed}`" in finding.suggestion
        assert few_descriptors(configuration, needed) == []


def test_what_is_admitted_by_default_is_found_at_the_start_of_a_router() -> None:
    (finding,) = few_by_default(written(rest=FREE), 1024)
    assert "65535 connections are admitted, but only about 920 can be open at once" in str(finding)


@pytest.mark.parametrize(
    ("limit", "open_at_once"), [(1024, "920 can be open at once, 720"), (250, "148 can be open at once, 49")]
)
def test_the_finding_says_how_many_websockets_can_be_open(limit: int, open_at_once: str) -> None:
    (finding,) = few_descriptors(written(policy=1000, rest=FREE + WEB_OF_100), limit)
    assert f"only about {open_at_once} if as many as may be are WebSockets, which have three descriptors" in str(
        finding
    )


def test_a_websocket_has_as_many_descriptors_as_are_counted() -> None:
    before = set(Path("/proc/self/fd").iterdir())
    near, far = socket_pair()
    assert len(set(Path("/proc/self/fd").iterdir()) - before) == MORE_OF_WEBSOCKET
    near.close()
    far.close()


@pytest.mark.parametrize("web", ["", WEB])
@pytest.mark.parametrize("unit", ["trouter.service", "trouter@.service"])
def test_the_units_have_descriptors_for_what_is_admitted_by_default(unit: str, web: str) -> None:
    text = (ROOT / "packaging" / unit).read_text(encoding="utf-8")
    limit = int(text.partition("LimitNOFILE=")[2].split()[0])
    assert few_by_default(written(rest=FREE + web), limit) == []


def test_check_warns_and_names_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "router.conf"
    path.write_text(f"router {{\n    id: A\n}}\npolicy {{\n    maxConnections: 5000\n}}\n{FREE}", encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "trouter", "check", str(path)],
        cwd=ROOT,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)),
    )
    assert checked.returncode == 0, checked.stderr
    assert (
        "policy.maxConnections: 5000 connections are admitted, but only about 920 can be open at once: the limit of "
        "descriptors (nofile) is 1024 (LimitNOFILE=5104 in the unit of systemd, or `ulimit -n 5104`"
    ) in checked.stderr
