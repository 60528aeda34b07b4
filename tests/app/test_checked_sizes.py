"""The work of CHECK grows as the text does: a text of thousands of sections takes no more than so many small ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from trouter.app.checking import check_text
from trouter.config import load
from trouter.config.findings import first_of

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
#: Texts of nothing but mistakes: what comes first, what comes again and again with a number, the end, and the lines of
#: Python that one more may run: a whole section takes more than an attribute.
MISTAKES: dict[str, tuple[str, Callable[[int], str], str, int]] = {
    "attributes": ("router { ", lambda i: f"a{i}: b, ", "}", 500),
    "attributes of other sections": ("router { ", lambda _: "sasl-mechanismss: b, ", "}", 500),
    "near attributes": ("router {\n", lambda i: f"saslConfigDir{i}: x\n", "}", 500),
    "reported attributes": ("router {\n", lambda _: "identity: x\n", "}", 500),
    "sections": ("", lambda i: f"a{i} {{}}\n", "", 500),
    "values": ("", lambda i: f"address {{ prefix: a{i}, distribution: clozest{i} }}\n", "", 1000),
    "maps": (HEAD + "vhost { hostname: h, groups: { g: { ", lambda i: f"sourcess{i}: b, ", "} } }", 500),
    "profiles": (
        HEAD + "".join(f"sslProfile {{ name: abcdefgh{i} }}\n" for i in range(50)),
        lambda i: f"connector {{ host: h, port: 1, sslProfile: abcdefgi{i} }}\n",
        "",
        2000,
    ),
    "accepted points": (HEAD, lambda i: f"# trouter: accept open-groop{i}: because\n", "", 500),
}


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


@pytest.mark.parametrize("shape", MISTAKES)
def test_one_more_mistake_of_a_text_is_little_work(shape: str) -> None:
    head, mistake, end, most = MISTAKES[shape]
    few, many = (lines_run(head + "".join(map(mistake, range(count))) + end) for count in (200, 300))
    assert (many - few) / 100 < most


def test_a_text_is_judged_up_to_a_number_of_errors() -> None:
    report = check_text(load(text=HEAD), "}\n" * 101, "new.conf")
    *shown, last = report.findings
    assert len(shown) == 100
    assert all(finding.place.line for finding in shown)
    assert last.message == "there are more than 100 errors: the rest of the text is not judged"
    assert len(check_text(load(text=HEAD), "}\n" * 100, "new.conf").findings) == 100


def test_an_answer_has_the_gravest_findings_and_the_number_of_the_others() -> None:
    head, section = SHAPES["unknown profiles"]
    report = check_text(load(text=HEAD), head + "".join(map(section, range(300))), "new.conf")
    *shown, last = first_of(report.findings)
    assert tuple(shown) == report.findings[:200]
    assert (last.message, last.severity) == (
        f"there are {len(report.findings) - 200} more findings: mend these first", report.findings[200].severity
    )  # fmt: skip
    assert [*first_of(report.findings[:200])] == shown
