"""What Qpid Dispatch reads otherwise is found, with its direction, and is in the manual."""

from __future__ import annotations

from pathlib import Path

import pytest

from manual import migration, policy
from trouter.config import load
from trouter.config.findings import evaluate
from trouter.config.point import Point
from trouter.config.problems import Problem, Severity
from trouter.config.strictness import POINTS

ROOT = Path(__file__).parents[2]
DIFFERENT = {point.name: point for point in POINTS.values() if point.there}
ANYBODY = "listener { host: 127.0.0.1 }\n"


def vhost(group: str, *, name: str = "g", hostname: str = "v", more: str = "") -> str:
    """Return a file with a policy of one group."""
    return (
        "policy { enableVhostPolicy: yes }\n"
        f"vhost {{\n hostname: {hostname}\n {more}\n groups: {{\n  {name}: {{\n   {group}\n  }}\n }}\n}}\n"
    )


USED: dict[str, tuple[str, str, str]] = {
    "a host name with capitals": ("host-names-folded", vhost("users: u", hostname="Example.com"), "hostname"),
    "a host name with its port": ("host-names-folded", vhost("users: u", hostname='"a.example:5671"'), "hostname"),
    "an alias": ("host-names-folded", vhost("users: u", more="aliases: B"), "hostname"),
    "a flag": ("flag-with-capitals", vhost('users: u\n allowDynamicSource: "True"'), "groups.g.allowDynamicSource"),
    "another": ("flag-with-capitals", vhost("users: u\n allow-user-id-proxy: TRUE"), "groups.g.allowUserIdProxy"),
    "a comma": ("comma-in-item", vhost('users: u\n sources: ["a,b", "c"]'), "groups.g.sources"),
    "a star": ("star-pattern", vhost("users: u\n targetPattern: a, *"), "groups.g.targetPattern"),
    "a separator": ("separators-at-ends", vhost("users: u\n sourcePattern: a/*/"), "groups.g.sourcePattern"),
    "a name": ("user-with-star", vhost("users: u, v*\n sources: priv-${user}"), "groups.g.sources"),
    "no users": ("group-without-users", vhost("remoteHosts: *"), "groups.g.users"),
    "the default group": ("group-without-users", vhost("remoteHosts: *", name="$default"), "groups.$default.users"),
    "a network": ("hosts-unknown-there", vhost("users: u\n remoteHosts: 10.0.0.0/8"), "groups.g.remoteHosts"),
    "a hyphen": ("hosts-unknown-there", vhost("users: u\n remoteHosts: my-host"), "groups.g.remoteHosts"),
    "no name": (
        "user-without-name",
        ANYBODY + vhost("targets: d-${user}", name="$default", more="allowUnknownUser: yes"),
        "groups.$default.targets",
    ),
    "pages": ("http-on-loopback", "listener { host: ::1, http: yes }", "http"),
    "files": ("http-on-loopback", "listener { host: localhost, httpRootDir: / }", "http"),
}
ALIKE = {
    "spellings that are the same there": vhost('users: u\n allowDynamicSource: "true"\n allowUserIdProxy: "False"'),
    "what is no flag": vhost("users: True\n sources: True"),
    "a user with a comma": vhost('users: ["CN=a,O=b"]\n sources: a, b'),
    "ranges and names": vhost("users: u\n remoteHosts: 10.0.0.1-10.0.0.9, host.example.com, ::1"),
    "patterns": vhost("users: u*, *\n sourcePattern: 'a/*/#, */b'"),
    "the users that no group names": vhost("remoteHosts: *", name="$default", more="allowUnknownUser: yes"),
    "a connector's group": vhost("sources: a", name="$connector"),
    "every user": vhost("users: *\n sources: ${user}"),
    "a name of users who all log in": vhost("targets: d-${user}", name="$default", more="allowUnknownUser: yes"),
    "HTTP for all": "listener { host: 0.0.0.0, http: yes }",
    "AMQP on loopback": ANYBODY,
}


def found(text: str) -> list[Problem]:
    return [finding for finding in evaluate(load(text=text)) if finding.point in DIFFERENT]


@pytest.mark.parametrize(("point", "text", "attribute"), USED.values(), ids=USED)
def test_what_that_router_reads_otherwise_is_found(point: str, text: str, attribute: str) -> None:
    findings = found(text)
    assert [(finding.point, finding.key) for finding in findings] == [(point, attribute)]
    assert findings[0].suggestion
    assert "{" not in findings[0].message.replace("${user}", "")
    assert found(f"router {{ secureDefaults: yes }}\n{text}") == []


def test_each_difference_has_its_file() -> None:
    assert {point for point, _, _ in USED.values()} == set(DIFFERENT)


@pytest.mark.parametrize("text", ALIKE.values(), ids=ALIKE)
def test_what_that_router_reads_alike_is_not_reported(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("point", DIFFERENT.values(), ids=DIFFERENT)
def test_a_difference_has_a_direction_and_is_in_the_manual(point: Point) -> None:
    assert point.direction in {"wider", "narrower", "other"}
    assert (point.severity is Severity.PROBLEM) == (point.direction == "wider")
    row = f"| {point.there} | {point.compatible} | {point.direction} |"
    assert row in migration.page()
    assert (row in policy.page()) == (point.page == "policy.md")


def test_the_page_on_the_policy_is_fresh() -> None:
    assert (ROOT / "docs" / "policy.md").read_text(encoding="utf-8") == policy.page()


@pytest.mark.parametrize("attribute", ["maxSenders", "maxReceivers"])
def test_a_limit_of_no_links_is_no_limit_and_is_found_unless_defaults_are_secure(attribute: str) -> None:
    text = vhost(f"users: u\n {attribute}: 0")
    field = {"maxSenders": "max_senders", "maxReceivers": "max_receivers"}[attribute]
    compatible, strict = load(text=text), load(text=f"router {{ secureDefaults: yes }}\n{text}")
    assert getattr(compatible.vhosts[0].groups["g"], field) == 2**31 - 1
    assert getattr(strict.vhosts[0].groups["g"], field) == 0
    findings = [finding for finding in evaluate(compatible) if finding.point == "no-links"]
    assert [(finding.severity, finding.key) for finding in findings] == [(Severity.UNSAFE, f"groups.g.{attribute}")]
    assert [finding for finding in evaluate(strict) if finding.point == "no-links"] == []
    assert compatible.vhosts[0].written["groups"]["g"][attribute] == 0
