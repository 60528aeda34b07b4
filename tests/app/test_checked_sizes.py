"""The work of CHECK grows as the text does: a text of thousands of sections takes no more than so many small ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from trouter.app.checking import check_text
from trouter.config import load

pytestmark = pytest.mark.attack

HEAD = "router { id: R }\n"
POLICY = "policy { enableVhostPolicy: yes }\n"
INTERIOR = "router { id: R, mode: interior }\n"
ACCEPTED = "# trouter: accept {}: because\nlistener {{ host: 127.0.0.1, port: {}, authenticatePeer: no }}\n"
PROVED = "http: yes, authenticatePeer: yes, requireSsl: yes, saslMechanisms: EXTERNAL"
OPEN_GROUP = "allowUnknownUser: yes, groups: { $default: { remoteHosts: *, sources: * } }"
MEMBERS = "groups: { g: { users: *, remoteHosts: *, sources: * } }"
#: Names of shapes: what comes first, and the sections with a number.
SHAPES: dict[str, tuple[str, Callable[[int], str]]] = {
    "ports": (HEAD, lambda i: f"listener {{ port: {10_000 + i} }}\n"),
    "hosts": (HEAD, lambda i: f"listener {{ host: 127.0.{i // 250}.{i % 250}, port: 5672 }}\n"),
    "names of hosts": (HEAD, lambda i: f"listener {{ host: h{i}, port: 5672 }}\n"),
    "unknown profiles": (
        HEAD,
        lambda i: f"sslProfile {{ name: p{i} }}\nlistener {{ port: {10_000 + i}, sslProfile: q{i} }}\n",
    ),
    "profiles": (
        HEAD,
        lambda i: (
            f"sslProfile {{ name: p{i} }}\n"
            f"listener {{ host: 0.0.0.0, port: {10_000 + i}, sslProfile: p{i}, {PROVED} }}\n"
        ),
    ),
    "routers and clients": (
        INTERIOR,
        lambda i: (
            f"listener {{ port: {10_000 + i}, role: inter-router, authenticatePeer: yes, saslPlugin: a{i} }}\n"
            f"authServicePlugin {{ name: a{i}, host: h }}\nauthServicePlugin {{ name: b{i}, host: h }}\n"
            f"listener {{ port: {30_000 + i}, saslPlugin: b{i} }}\n"
        ),
    ),
    "open vhosts": (
        HEAD + POLICY,
        lambda i: f"vhost {{ hostname: v{i}, {OPEN_GROUP} }}\nlistener {{ port: {10_000 + i}, policyVhost: v0 }}\n",
    ),
    "aliases": (
        HEAD + POLICY,
        lambda i: f"vhost {{ hostname: v{i}, aliases: a{i} }}\nlistener {{ port: {10_000 + i}, policyVhost: a{i} }}\n",
    ),
    "tenants": (
        HEAD + POLICY,
        lambda i: (
            f"vhost {{ hostname: v{i}, {MEMBERS} }}\nlistener {{ port: {30_000 + i} }}\n"
            f"listener {{ port: {10_000 + i}, multiTenant: yes, policyVhost: v{i} }}\n"
        ),
    ),
    "accepted": (HEAD, lambda i: ACCEPTED.format("authenticate-peer", 10_000 + i)),
    "accepted in vain": (HEAD, lambda i: ACCEPTED.format("open-group", 10_000 + i)),
    "routes": (
        HEAD,
        lambda i: (
            f"linkRoute {{ prefix: a{i}, direction: in, connection: c{i} }}\n"
            f"connector {{ name: d{i}, host: h, port: 1, role: route-container }}\n"
        ),
    ),
    "bindings": (
        HEAD,
        lambda i: f"exchange {{ name: e{i}, address: a{i} }}\nbinding {{ exchangeName: f{i}, nextHopAddress: h }}\n",
    ),
}
FEW, MANY = 70, 140


def lines_run(text: str) -> int:
    """Return how many lines of Python a check of ``text`` runs, each round of a loop counted."""
    present, before, count = load(text=HEAD), sys.gettrace(), 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        check_text(present, text, "new.conf")
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_a_check_of_twice_as_many_sections_takes_twice_the_work(shape: str) -> None:
    head, section = SHAPES[shape]
    few, many = (lines_run(head + "".join(map(section, range(count)))) for count in (FEW, MANY))
    assert few > 1000
    assert many < 2.1 * few


def test_a_finding_about_many_listeners_names_a_few_of_them() -> None:
    head, section = SHAPES["tenants"]
    report = check_text(load(text=HEAD), head + "".join(map(section, range(MANY))), "new.conf")
    about = [finding for finding in report.findings if finding.point == "tenant-without-tenancy"]
    assert len(about) == MANY
    assert all(f" and {MANY - 10} more" in finding.message for finding in about)
