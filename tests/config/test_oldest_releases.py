"""Files of Qpid Dispatch 0.x: each name that is refused has the right advice, and `trouter migrate` writes today's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from trouter.config import Configuration, ConfigurationError, load
from trouter.config.migrate import migrated

ADVICE = {
    "router { routerId: A }": "it is called id today",
    "router { router-id: A }": "it is called id today",
    "router { mobile-addr-max-age: 60 }": "leave it out",
    "listener { addr: ::1 }": "it is called host today",
    "connector { addr: ::1 }": "it is called host today",
    "connector { role: on-demand }": "it is called route-container today",
    "listener { require-peer-auth: no }": "write authenticatePeer",
    "listener { allowNoSasl: yes }": "write the opposite as authenticatePeer",
    "listener { allow-unsecured: no }": "write the opposite as requireSsl",
    "listener { certDb: /x }": "into an sslProfile section",
    "connector { key-file: /x }": "into an sslProfile section",
    "connector { allow-no-sasl: no }": "leave it out",
}


@pytest.mark.parametrize("line", ["ocsp: hard", "ocsp: soft", "ocsp: off", "ocsp: staple"])
@pytest.mark.parametrize("read", [lambda text: load(text=text), lambda text: migrated(text, "old.conf")])
def test_a_removed_attribute_is_refused_with_the_cure(read: Callable[[str], object], line: str) -> None:
    """A migration does not decide whether the operator can do without it."""
    text = f"router {{\n    id: A\n}}\nsslProfile {{\n    name: p\n    {line}\n}}\n"
    with pytest.raises(ConfigurationError) as refused:
        read(text)
    (problem,) = refused.value.problems
    assert (problem.place.line, problem.message) == (6, "unknown attribute")
    assert problem.suggestion.startswith("leave it out: the router asks no OCSP responder; name revocation lists")


@pytest.mark.parametrize(("text", "words"), ADVICE.items())
def test_a_name_of_an_old_release_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(text=text)
    assert words in refused.value.problems[0].suggestion
    assert ("`trouter migrate` does it" in str(refused.value)) != ("sslProfile" in words)


def renewed(text: str, file: str = "old.conf") -> Configuration:
    """Return the configuration that a migration writes, which a second one leaves as it is."""
    first = migrated(text, file)
    assert migrated(first.text, file).text == first.text
    return load(text=first.text) if file.endswith(".conf") else load(Path(file), first.text)


@pytest.mark.parametrize("order", [1, -1])
def test_a_container_is_part_of_the_router(order: int) -> None:
    parts = [
        "# first\ncontainer {\n worker-threads: 4\n container-name: C\n sasl-config-name: q\n debug-dump: /d\n}\n",
        "router {\n mode: standalone # alone\n router-id: A\n}\n",
    ]
    text = migrated("".join(parts[::order]), "old.conf").text
    found = renewed("".join(parts[::order]))
    assert "# alone" in text
    assert "container" not in text
    assert (found.router.id, found.router.sasl_config_name, found.router.debug_dump_file) == ("A", "q", "/d")


def test_the_name_of_a_container_is_the_id_of_a_router_without_one() -> None:
    assert renewed("container {\n containerName: C\n}\nrouter {\n mode: interior\n}\n").router.id == "C"
    assert renewed("container {\n containerName: C\n workerThreads: 2\n}\n").router.id == "C"


LISTENERS = {
    "addr: 0.0.0.0, sasl-mechanisms: ANONYMOUS": ("0.0.0.0", False, False),
    "addr: ::1, require-peer-auth: yes, allow-no-sasl: no": ("::1", True, False),
    "requirePeerAuth: no, allowNoSasl: no": ("", True, False),
    "allow-no-sasl: no\n sasl-mechanisms: PLAIN ANONYMOUS": ("", False, False),
    "allow-no-sasl: yes, allow-unsecured: no": ("", False, True),
    "allowUnsecured: true, authenticatePeer: yes, allowNoSasl: yes": ("", True, False),
}


@pytest.mark.parametrize(("attributes", "meant"), LISTENERS.items())
def test_a_listener_lets_in_the_same_clients(attributes: str, meant: tuple[str, bool, bool]) -> None:
    lines = attributes.replace(", ", "\n ")
    text = f"router {{ id: A }}\nsslProfile {{ name: t }}\nlistener {{\n {lines}\n ssl-profile: t\n}}\n"
    (listener,) = renewed(text).listeners
    assert (listener.host, listener.authenticate_peer, listener.require_ssl) == meant


FIXED = {
    "prefix: /a": ("a", None, "multicast"),
    "prefix: a, fanout: multiple, bias: closest": ("a", None, "multicast"),
    "prefix: /a/b, fanout: single": ("a/b", None, "closest"),
    "prefix: /a, fanout: single, bias: closest": ("a", None, "closest"),
    "prefix: a, bias: spread, fanout: single": ("a", None, "balanced"),
    "prefix: /, fanout: single": (None, "#", "closest"),
}


@pytest.mark.parametrize("name", ["fixedAddress", "fixed-address"])
@pytest.mark.parametrize(("attributes", "meant"), FIXED.items())
def test_a_fixed_address_is_an_address(name: str, attributes: str, meant: tuple[str, str, str]) -> None:
    (address,) = renewed(f"{name} {{ {attributes} }} # why\n").addresses
    assert (address.prefix, address.pattern, address.distribution) == meant


BROKER = "connector {\n name: b\n addr: ::1\n role: on-demand\n}\n"


def test_a_waypoint_is_an_address_with_two_auto_links() -> None:
    fixed = "".join(f"fixed-address {{ prefix: q, fanout: single, bias: spread, phase: {each} }}\n" for each in (0, 1))
    found = renewed(f"{BROKER}{fixed}waypoint {{ address: q.1, in-phase: 0, out-phase: 1, connector: b }}\n")
    assert [(each.prefix, each.pattern, each.distribution, each.waypoint) for each in found.addresses] == [
        ("q", None, "balanced", False),
        (None, "q.1", "balanced", True),
    ]
    links = [(each.address, each.direction, each.phase, each.connection) for each in found.auto_links]
    assert links == [("q.1", "out", 0, "b"), ("q.1", "in", 1, "b")]
    assert found.connectors[0].role == "route-container"


def test_several_waypoints_of_an_address_are_passed_one_after_the_other() -> None:
    second = BROKER.replace("name: b", "name: c")
    waypoints = "".join(
        f"waypoint {{ address: q, inPhase: {place}, outPhase: {place + 1}, connector: {name} }}\n"
        for place, name in enumerate("bc")
    )
    found = renewed(BROKER + second + waypoints)
    assert [(each.pattern, each.ingress_phase, each.egress_phase) for each in found.addresses] == [("q", 0, 2)]
    assert [(each.direction, each.phase, each.connection) for each in found.auto_links] == [
        ("out", 0, "b"), ("in", 1, "b"), ("out", 1, "c"), ("in", 2, "c"),
    ]  # fmt: skip


DIRECTIONS = {"": ["in", "out"], "dir: both": ["in", "out"], "dir: in": ["in"], "dir: out": ["out"]}


@pytest.mark.parametrize(("given", "directions"), DIRECTIONS.items())
def test_a_link_route_pattern_is_a_link_route_for_each_direction(given: str, directions: list[str]) -> None:
    found = renewed(f"{BROKER}linkRoutePattern {{\n prefix: org.apache. # all\n connector: b\n {given}\n}}\n")
    assert [(each.prefix, each.direction, each.connection) for each in found.link_routes] == [
        ("org.apache.", direction, "b") for direction in directions
    ]
    (far,) = renewed("link-route-pattern {\n prefix: far\n dir: in\n}\n").link_routes
    assert far.connection is None


def test_comments_stay() -> None:
    old = "# one\nfixed-address {\n # two\n prefix: '#x' # three\n}\n# four\n"
    assert [line.strip() for line in migrated(old, "old.conf").text.splitlines() if line.strip().startswith("# ")] == [
        "# one", "# two", "# three", "# four",
    ]  # fmt: skip


def test_the_json_form_is_migrated_alike() -> None:
    sections = [
        ["container", {"workerThreads": 4, "containerName": "C", "saslConfigName": "q"}],
        ["router", {"mode": "standalone", "routerId": "A"}],
        ["listener", {"addr": "::1", "allowNoSasl": "yes", "port": 1}],
        ["connector", {"name": "b", "addr": "::1", "role": "on-demand"}],
        ["fixedAddress", {"prefix": "/a", "fanout": "single"}],
        ["fixedAddress", {"prefix": "/a", "fanout": "single", "phase": 1}],
        ["waypoint", {"address": "a/1", "connector": "b"}],
        ["linkRoutePattern", {"prefix": "l", "connector": "b"}],
    ]
    text = migrated(json.dumps(sections, indent=1), "old.json").text
    names = [name for name, _ in json.loads(text)]
    assert names == [
        "router",
        "listener",
        "connector",
        "address",
        "address",
        "autoLink",
        "autoLink",
        "linkRoute",
        "linkRoute",
    ]
    found = renewed(json.dumps(sections), "old.json")
    assert (found.router.id, found.listeners[0].host, found.router.sasl_config_name) == ("A", "::1", "q")


def test_each_change_is_reported_at_its_place() -> None:
    found = migrated(f"router {{\n router-id: A\n}}\n{BROKER}fixed-address {{\n prefix: a\n}}\n", "old.conf")
    assert [(change.place.line, change.new) for change in found.changes] == [
        (2, "id: A"), (6, "host: ::1"), (7, "role: route-container"), (9, "address"),
    ]  # fmt: skip
    assert not any(change.unsupported for change in found.changes)
