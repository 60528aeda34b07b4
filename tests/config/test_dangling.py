"""Names that point nowhere, and variables that nothing expands, are found before a message is lost."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.routers import DEADLINE_S, running
from trouter.cli import main
from trouter.config import load
from trouter.config.findings import evaluate
from trouter.config.problems import Severity

BROKER = "connector { name: broker, role: route-container }\n"
VHOST = "policy { enableVhostPolicy: yes, defaultVhost: $default }\nvhost { hostname: $default }\nvhost { hostname: edges, aliases: branches }\n"
NOWHERE = {
    "auto link": (BROKER + "autoLink { address: q, direction: in, connection: brokr }", "unknown-connection", "did you mean 'broker'?"),
    "link route": (BROKER + "linkRoute { prefix: q, direction: in, connection: x }", "unknown-connection", "role: route-container"),
    "a connection for clients": ("listener { name: l, host: ::1 }\nautoLink { address: q, direction: in, connection: l }", "not-for-routes", "role: route-container"),
    "listener's vhost": (VHOST + "listener { host: ::1, policyVhost: edge }", "unknown-vhost", "did you mean 'edges'?"),
    "connector's vhost": (VHOST + "connector { policyVhost: x }", "unknown-vhost", "add a vhost"),
    "default vhost": ("policy { enableVhostPolicy: yes, defaultVhost: defalt }\nvhost { hostname: default }", "unknown-vhost", "did you mean 'default'?"),
}  # fmt: skip
SOMEWHERE = {
    "a connector": BROKER + "autoLink { address: q, direction: in, connection: broker }",
    "a listener": "listener { name: l, host: ::1, role: route-container }\nlinkRoute { prefix: q, direction: in, connection: l }",
    "a container": "autoLink { address: q, direction: in, containerId: elsewhere }",
    "an alias": VHOST + "listener { host: ::1, policyVhost: Branches }",
    "the default of defaultVhost": "policy { enableVhostPolicy: yes }",
    "no default vhost": "policy {\n enableVhostPolicy: yes\n defaultVhost: ''\n}",
    "a pattern": "policy { enableVhostPolicy: yes, enableVhostNamePatterns: yes }\nvhost { hostname: *.x }\nlistener { host: ::1, policyVhost: a.x }",
    "no policy at all": "listener { host: ::1, policyVhost: edge }",
}  # fmt: skip


@pytest.mark.parametrize(("text", "point", "cure"), NOWHERE.values(), ids=NOWHERE)
def test_a_name_that_points_nowhere_is_a_problem_with_the_nearest_name(text: str, point: str, cure: str) -> None:
    (found,) = [finding for finding in evaluate(load(text=text)) if finding.severity is Severity.PROBLEM]
    assert found.point == point
    assert cure in found.suggestion
    assert found.place.line


@pytest.mark.parametrize("text", SOMEWHERE.values(), ids=SOMEWHERE)
def test_a_name_of_an_entity_is_no_problem(text: str) -> None:
    assert [finding for finding in evaluate(load(text=text)) if finding.severity is Severity.PROBLEM] == []


def test_a_link_route_whose_connection_another_router_has_is_worth_a_note() -> None:
    """The network in the manual of Qpid Dispatch has the same linkRoute on all routers, and the connector on one."""
    text = "router { mode: interior }\nlinkRoute { prefix: q, direction: in, connection: broker }"
    (found,) = [finding for finding in evaluate(load(text=text)) if finding.section == "linkRoute"]
    assert (found.point, found.severity) == ("connection-elsewhere", Severity.NOTE)
    text = f"{text}\nconnector {{ name: brokr, role: route-container }}"
    assert "unknown-connection" in [finding.point for finding in evaluate(load(text=text))]


def test_a_variable_that_nothing_expands_is_a_warning() -> None:
    text = "router {\n id: ${HOSTNAME}\n}\nlistener {\n host: $(POD_IP)\n}\nvhost {\n hostname: a\n groups: { g: { sources: ${user}.* } }\n}"
    found = [finding for finding in evaluate(load(text=text)) if finding.point == "not-expanded"]
    assert [(each.section, each.key, each.severity) for each in found] == [
        ("router", "id", Severity.NOTE),
        ("listener", "host", Severity.NOTE),
    ]
    assert "${HOSTNAME}" in found[0].message
    assert load(text=text).router.id == "${HOSTNAME}"


def test_an_interior_router_without_neighbours_is_warned_of_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "router {\n    mode: interior\n    id: A\n}\nlistener {\n    host: 127.0.0.1\n    port: 0\n}\n"
        "listener {\n    host: 127.0.0.1\n    port: 0\n    http: yes\n}\n"
    )
    words = "no listener and no connector is for other routers"
    with running(text, tmp_path) as router:
        router.wait_for_line(words)
        port = router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1]
        shown = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S).read().decode()
        assert 'trouter_configuration_findings{severity="warning"} 2.0' in shown  # one is about HTTP on loopback
        bus = ("manage", "-b", f"127.0.0.1:{router.port}")
        assert main([*bus, "query", "--type", "finding"]) == 0
        assert words in capsys.readouterr().out
        assert main([*bus, "create", "--type", "address", "prefix=a"]) == 0
        capsys.readouterr()
        assert main([*bus, "query", "--type", "finding"]) == 0
        assert words in capsys.readouterr().out
    assert main(["check", "--json", str(router.configuration)]) == 0
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert file["counts"]["warning"] == 2


def test_a_connection_that_management_creates_later_ends_the_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "listener {\n    host: 127.0.0.1\n    port: 0\n}\nlistener {\n    host: 127.0.0.1\n    port: 0\n    http: yes\n}\n"
        "autoLink {\n    address: q\n    direction: in\n    connection: broker\n}\n"
        "log {\n    module: TCP_ADAPTOR\n}\n"
    )
    with running(text, tmp_path) as router:
        router.wait_for_line(r"\(critical\) problem: .*there is no connector or listener 'broker'")
        bus = ("manage", "-b", f"127.0.0.1:{router.port}")
        assert main([*bus, "query", "--type", "finding"]) == 0
        assert "no connector or listener 'broker'" in capsys.readouterr().out
        create = "create --type connector name=broker host=127.0.0.1 port=1 role=route-container"
        assert main([*bus, *create.split()]) == 0
        capsys.readouterr()
        assert main([*bus, "query", "--type", "finding"]) == 0
        shown = capsys.readouterr().out
        assert "no connector or listener 'broker'" not in shown
        assert "TCP_ADAPTOR" in shown  # a change by management leaves what was found in the file
