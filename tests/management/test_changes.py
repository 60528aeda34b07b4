"""CREATE, UPDATE and DELETE on a running router (management.md 6, 7, 9, 10)."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
from proton import ConnectionException, ulong
from proton.utils import BlockingConnection

from tests.management.node import NODE, PREFIX, Node, node_of, small
from tests.routers import WORKERS, RunningRouter, StartRouter
from tests.waiting import until

LISTENER = {"host": "127.0.0.1", "port": "0", "saslMechanisms": "ANONYMOUS"}


def listening_port(router: RunningRouter, name: str) -> int:
    return int(router.wait_for_line(rf"Listening on \S+:(\d+) \({name}\)")[1])


def test_a_created_listener_listens_at_once_and_a_deleted_one_is_gone_at_once(router: RunningRouter, own: Node) -> None:
    created = own.create("listener", {**LISTENER, "name": "second"})
    assert (created["role"], created["cost"], created.get("linkCapacity")) == ("normal", 1, None)
    assert created["identity"] == "listener/127.0.0.1:0:second"
    assert created["type"] == PREFIX + "listener"
    port = listening_port(router, "second")
    with node_of(port) as there:
        assert there.get("READ", name="second")["identity"] == created["identity"]
        answer = there.ask("DELETE", type="listener", name="second")
        assert (answer.status, answer.description, answer.body) == (204, "No Content", {})
        assert there.get("READ", **NODE)  # connected clients stay
        with pytest.raises(ConnectionException):
            BlockingConnection(f"127.0.0.1:{port}", timeout=5)
    assert own.refused("DELETE", type="listener", name="second") == (404, "No entity with name=second")
    assert own.create("listener", {**LISTENER, "name": "second"})["name"] == "second"


def test_a_listener_that_cannot_be_leaves_nothing_behind(own: Node) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        wanted = {**LISTENER, "port": str(taken.getsockname()[1]), "name": "late"}
        status, text = own.refused("CREATE", wanted, type="listener")
        assert status in (400, 500)
        assert wanted["port"] in text
        assert own.refused("READ", name="late")[0] == 404
        assert len(own.query("listener")) == 1
    assert own.create("listener", {**LISTENER, "name": "late"})


def test_name_and_type_may_stand_in_the_body(own: Node) -> None:
    answer = own.ask("CREATE", {"type": PREFIX + "dummy", "name": "a", "arg1": "x"})
    assert (answer.status, answer.description) == (201, "Created")
    assert answer.body == {"arg1": "x", "name": "a", "identity": "dummy/0", "type": PREFIX + "dummy"}
    assert own.create("dummy", {"type": PREFIX + "dummy", "name": "b"}, name="b")["name"] == "b"
    assert own.ask("CREATE", {"name": "c"}, entityType="dummy").status == 201
    assert own.ask("CREATE", {"name": "d", "type": "dummy"}, type="org.amqp.management").status == 201


def test_without_a_name_the_identity_is_the_name(own: Node) -> None:
    created = own.create("dummy", {})
    assert created["name"] == created["identity"]


def test_names_and_types_must_not_disagree(own: Node) -> None:
    status, text = own.refused("CREATE", {"name": "x"}, type="dummy", name="y")
    assert (status, "x" in text, "y" in text) == (400, True, True)
    status, text = own.refused("CREATE", {"type": "listener"}, type="dummy")
    assert (status, "listener" in text, "dummy" in text) == (400, True, True)


def test_a_name_exists_once_over_all_types(own: Node) -> None:
    own.create("dummy", {"name": "twice"})
    for kind, body in (("dummy", {}), ("connector", {"host": "127.0.0.1", "port": "1"})):
        status, text = own.refused("CREATE", body, type=kind, name="twice")
        assert (status, f"{kind}.name: this name is used already (dummy/0)") == (400, text)


def test_a_dummy_lives_its_life(own: Node) -> None:
    own.create("dummy", {"name": "d", "arg1": "one", "num1": small(7), "num2": "8"})
    assert own.get("READ", type="dummy", name="d")["num2"] == 8
    after = own.get("UPDATE", {"arg1": "two", "num1": None}, type="dummy", identity="dummy/0")
    assert after == {"arg1": "two", "num2": 8, "name": "d", "identity": "dummy/0", "type": PREFIX + "dummy"}
    own.get("DELETE", identity="dummy/0")
    assert own.refused("READ", name="d")[0] == 404


def test_an_update_may_repeat_the_identity_of_the_entity(own: Node) -> None:
    own.create("dummy", {"name": "d"})
    again = {"name": "d", "identity": "dummy/0", "type": PREFIX + "dummy"}
    assert own.get("UPDATE", {**again, "arg1": "x"}, name="d")["arg1"] == "x"
    assert own.get("UPDATE", {**again, "arg1": "y"}, **NODE)["arg1"] == "y"
    for name, value in (("name", "e"), ("identity", "dummy/9"), ("type", PREFIX + "listener")):
        status, text = own.refused("UPDATE", {name: value}, type="dummy", name="d")
        assert status == 400
        assert name in text


def test_an_update_that_names_its_entity_by_a_key_without_value(own: Node) -> None:
    body = own.node("UPDATE", {"log/DEFAULT": None, "enable": "debug+"})
    assert (body["module"], body["enable"]) == ("DEFAULT", "debug+")
    assert own.refused("UPDATE", {"nobody": None, "enable": "debug+"}, **NODE)[0] == 501


@pytest.mark.parametrize(
    ("written", "levels"),
    [
        ("TRACE , Error info", {"trace", "error", "info"}),
        ("info,critical", {"info", "critical"}),
        ("debug+", {"debug", "info", "notice", "warning", "error", "critical"}),
        ("", set[str]()),
        ("none", set[str]()),
    ],
)
def test_a_log_changes_at_once(router: RunningRouter, own: Node, written: str, levels: set[str]) -> None:
    answer = own.get("UPDATE", {"enable": written}, name="log/AGENT")
    assert answer["module"] == "AGENT"
    before = {entry[1] for entry in own.node("GET-LOG", module="AGENT")}
    own.refused("DANCE")
    own.refused("READ", name="nobody")
    after = {entry[1] for entry in own.node("GET-LOG", module="AGENT")}
    assert (after - before) <= levels
    assert ("error" in after) == ("error" in levels)


@pytest.mark.parametrize("written", ["default", "DEFAULT"])
def test_a_log_may_follow_the_default_again(own: Node, written: str) -> None:
    own.get("UPDATE", {"enable": "trace+"}, name="log/AGENT")
    assert own.get("UPDATE", {"enable": written}, identity="log/AGENT")["enable"].lower() == "default"


def test_a_refused_update_changes_nothing_and_hinders_no_other(own: Node, tmp_path: Any) -> None:
    before = own.get("READ", name="log/SERVER")
    bad = [("enable", "loud", 400), ("outputFile", str(tmp_path / "no" / "x.log"), 500), ("module", "AGENT", 400)]
    for name, value, expected in bad:
        status, text = own.refused("UPDATE", {name: value}, name="log/SERVER")
        assert status == expected
        assert name in text or value in text
        assert own.get("READ", name="log/SERVER") == before
    assert own.get("UPDATE", {"enable": "warning+"}, name="log/SERVER")["enable"] == "warning+"
    status, text = own.refused("UPDATE", {"outputFile": ""}, name="log/SERVER")
    assert (status, "Failed to open log file ''" in text) == (500, True)


def test_a_log_file_that_cannot_be_opened_is_named_once_however_many_modules_use_it(own: Node, tmp_path: Any) -> None:
    for module in ("SERVER", "AGENT"):
        own.get("UPDATE", {"enable": "info+"}, name=f"log/{module}")
    status, text = own.refused("UPDATE", {"outputFile": str(tmp_path)}, name="log/DEFAULT")
    failure = f"CError: Configuration: Failed to open log file '{tmp_path}': Is a directory"
    assert (status, text) == (500, failure)


def test_a_log_writes_to_a_file_from_now_on(own: Node, tmp_path: Any) -> None:
    path = tmp_path / "agent.log"
    own.get("UPDATE", {"outputFile": str(path), "enable": "error+"}, name="log/AGENT")
    own.refused("READ", name="nobody")
    assert "No entity with name=nobody" in path.read_text()


# --- routing


def test_an_address_rule_applies_to_addresses_created_afterwards(own: Node) -> None:
    created = own.create(PREFIX + "router.config.address", {"prefix": "fan", "distribution": "multicast"})
    assert (created["name"], created["prefix"], created["distribution"]) == (None, "fan", "multicast")
    assert re.fullmatch(r"\d+", created["identity"])
    receiver = own.connection.create_receiver("fan/x")
    assert own.get("READ", type="router.address", identity="M0fan/x")["distribution"] == "multicast"
    own.get("DELETE", type="router.config.address", identity=created["identity"])
    assert own.get("READ", type="router.address", identity="M0fan/x")["distribution"] == "multicast"
    later = own.connection.create_receiver("fan/y")
    assert own.get("READ", type="router.address", identity="M0fan/y")["distribution"] == "balanced"
    receiver.close()
    later.close()
    assert own.refused("DELETE", type="router.config.address", identity=created["identity"])[0] == 404


def test_booleans_are_words_everywhere(own: Node) -> None:
    created = own.create("router.config.address", {"prefix": "w", "waypoint": "yes"})
    assert (created["waypoint"], created["ingressPhase"], created["egressPhase"]) == (True, 0, 1)


BAD_ADDRESSES: list[tuple[dict[str, Any], str]] = [
    ({}, "prefix"),
    ({"prefix": "a", "pattern": "b"}, "prefix"),
    ({"prefix": ""}, "prefix"),
    ({"prefix": "a", "priority": small(10)}, "priority"),
    ({"prefix": "a", "ingressPhase": small(10), "egressPhase": small(0)}, "ingressPhase"),
    ({"prefix": "a", "ingressPhase": small(1)}, "egressPhase"),
    ({"prefix": "a", "distribution": "sideways"}, "distribution"),
    ({"prefix": "a", "waypoint": True, "fallback": True}, "fallback"),
    ({"pattern": "many/#"}, "pattern"),
    ({"prefix": "a", "colour": "blue"}, "colour"),
]


@pytest.mark.parametrize(("attributes", "named"), BAD_ADDRESSES, ids=lambda value: str(value)[:40])
def test_an_address_that_makes_no_sense_is_refused(node: Node, attributes: dict[str, Any], named: str) -> None:
    before = len(node.query("router.config.address"))
    status, text = node.refused("CREATE", attributes, type="router.config.address")
    assert status == 400
    assert named in text
    assert len(node.query("router.config.address")) == before


def test_an_auto_link_has_one_place_to_go(node: Node) -> None:
    attributes = {"address": "q", "direction": "in", "connection": "c", "containerId": "d"}
    status, text = node.refused("CREATE", attributes, type="router.config.autoLink")
    assert status == 400
    assert "Both connection and containerId cannot be specified" in text


# --- link routes of a connection


def test_a_connection_makes_link_routes_for_itself_alone(shared: RunningRouter, node: Node) -> None:
    kind = "router.connection.linkRoute"
    made = node.create(kind, {"pattern": "mine.*.#", "direction": "in"}, name="first")
    columns = ["name", "identity", "type", "pattern", "direction", "containerId"]
    assert list(made) == (columns if WORKERS == 1 else [*columns, "worker"])
    assert (made["name"], made["pattern"], made["direction"]) == ("first", "mine.*.#", "in")
    assert node.query(kind) == [made]
    assert node.get("READ", type=kind, name="first") == made
    (row,) = [each for each in node.query("router.address") if each["key"] == "Emine.*.#"]
    assert (row["containerCount"], row["distribution"]) == (1, "linkBalanced")
    with node_of(shared.port) as other:
        assert other.query(kind) == []
        assert other.refused("READ", type=kind, name="first")[0] == 404
        assert other.refused("DELETE", type=kind, identity=made["identity"])[0] == 404
        assert other.refused("DELETE", type=kind, name="first")[0] == 404
    again = node.refused("CREATE", {"pattern": "x", "direction": "out"}, type=kind, name="first")
    assert again == (400, "Name conflicts with an existing entity")
    assert node.ask("DELETE", type=kind, identity=made["identity"]).status == 204
    assert node.query(kind) == []
    until(lambda: not any(each["key"].startswith("E") for each in node.query("router.address")), "the end of the route")


def test_link_routes_of_a_connection_end_with_the_connection(shared: RunningRouter, node: Node) -> None:
    with node_of(shared.port) as other:
        other.create("router.connection.linkRoute", {"pattern": "passing/#", "direction": "out"})
        assert [each for each in node.query("router.address") if each["key"] == "Dpassing"]
    shared.wait_for_line("Link Route Deactivated")
    # another worker learns of it a moment later
    until(
        lambda: not [each for each in node.query("router.address") if each["key"] == "Dpassing"],
        "its end at all workers",
    )


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"direction": "in"}, "Pattern field is required"),
        ({"pattern": "", "direction": "in"}, "Pattern must be a non-empty string type"),
        ({"pattern": 5, "direction": "in"}, "Pattern must be a non-empty string type"),
        ({"pattern": "///", "direction": "in"}, "Pattern invalid - no tokens"),
        ({"pattern": "x" * 5000, "direction": "in"}, "longer than 4096 bytes"),
        ({"pattern": "x"}, "No 'direction' attribute provided"),
        ({"pattern": "x", "direction": "both"}, "Invalid value for 'direction'"),
        ({"pattern": "x", "direction": "in", "containerId": "c"}, "'containerId' of"),
    ],
)
def test_a_link_route_of_a_connection_that_cannot_be(node: Node, attributes: dict[str, Any], text: str) -> None:
    status, description = node.refused("CREATE", attributes, type="router.connection.linkRoute")
    assert status == 400
    assert text in description


# --- connections and links


def test_a_connection_is_closed_with_a_word(router: RunningRouter, own: Node) -> None:
    with node_of(router.port) as other:
        row = next(
            row for row in own.query("connection") if row["container"] == other.connection.container.container_id
        )
        answer = own.get("UPDATE", {"adminStatus": "deleted"}, type="connection", identity=row["identity"])
        assert (answer["adminStatus"], answer["operStatus"]) == ("deleted", "closing")
        # The client has not answered the close yet, and is listed no longer all the same.
        assert row["identity"] not in {each["identity"] for each in own.query("connection")}
        with pytest.raises(ConnectionException, match="amqp:connection:forced"):
            other.receiver.receive(timeout=60)
    router.wait_for_line(rf"AGENT \(info\) \[C{row['identity']}\] closed by management")


def test_a_connection_update_may_keep_the_status_and_switch_the_trace(own: Node) -> None:
    identity = own.query("connection")[0]["identity"]
    of = {"type": PREFIX + "connection", "identity": identity}
    assert own.get("UPDATE", {"adminStatus": "enabled"}, **of)["operStatus"] == "up"
    for value, after in (("yes", True), (False, False), (True, True), ("off", False)):
        assert own.get("UPDATE", {"enableProtocolTrace": value}, **of)["enableProtocolTrace"] is after


BAD_CONNECTIONS: list[tuple[dict[str, Any], str]] = [
    ({}, "adminStatus"),
    ({"adminStatus": "tired"}, "enabled or deleted"),
    ({"enableProtocolTrace": "maybe"}, "enableProtocolTrace"),
    ({"adminStatus": "enabled", "container": "x"}, "'container'"),
    ({"adminStatus": "enabled", "colour": "x"}, "'colour'"),
]


@pytest.mark.parametrize(("attributes", "named"), BAD_CONNECTIONS, ids=lambda value: str(value)[:40])
def test_nothing_else_of_a_connection_changes(node: Node, attributes: dict[str, Any], named: str) -> None:
    identity = node.query("connection")[0]["identity"]
    status, text = node.refused("UPDATE", attributes, type="connection", identity=identity)
    assert status == 400
    assert named in text


def test_updating_a_connection_that_does_not_exist_is_a_bad_request(node: Node) -> None:
    assert node.refused("UPDATE", {"adminStatus": "deleted"}, type="connection", identity="99999")[0] == 400


def test_a_link_takes_an_administrative_status_and_goes_on(node: Node) -> None:
    row = node.query("router.link")[0]
    of = {"type": "router.link", "identity": row["identity"]}
    assert node.get("UPDATE", {"adminStatus": "disabled", "name": row["name"]}, **of)["operStatus"] == "up"
    assert node.refused("UPDATE", {"adminStatus": "loud"}, **of)[0] == 400
    assert node.refused("UPDATE", {"capacity": small(1)}, **of)[0] == 400
    assert node.get("UPDATE", {"adminStatus": "enabled", "capacity": row["capacity"]}, **of)


# --- forbidden and impossible requests


FORBIDDEN = [
    ("CREATE", "router", {}),
    ("DELETE", "router", {"identity": "1"}),
    ("DELETE", "connection", {"identity": "1"}),
    ("CREATE", "console", {}),
    ("UPDATE", "console", {"name": "x"}),
    ("DELETE", "console", {"name": "x"}),
]


@pytest.mark.parametrize("prefix", ["", PREFIX])
@pytest.mark.parametrize(("operation", "kind", "named"), FORBIDDEN)
def test_forbidden(node: Node, operation: str, kind: str, named: dict[str, str], prefix: str) -> None:
    status, text = node.refused(operation, {}, type=prefix + kind, **named)
    assert status == 403
    assert "Forbidden" in text


NOT_IMPLEMENTED = [
    ("CREATE", "router.link", {}),
    ("DELETE", "router.link", {"identity": "1"}),
    ("CREATE", "router.address", {"name": "x"}),
    ("DELETE", "router.address", {"identity": "M0$management"}),
    ("UPDATE", "router.address", {"identity": "M0$management"}),
    ("CREATE", "connection", {}),
    ("UPDATE", "router", {"identity": "1"}),
    ("UPDATE", "router.config.address", {"name": "near"}),
    ("UPDATE", "router.config.linkRoute", {"name": "linkRoute/0"}),
    ("UPDATE", "router.config.autoLink", {"name": "autoLink/0"}),
    ("CREATE", "log", {}),
    ("CREATE", "policy", {}),
    ("DELETE", "log", {"name": "log/DEFAULT"}),
    ("UPDATE", "logStats", {"name": "AGENT"}),
    ("CREATE", "management", {}),
    ("DELETE", "management", {"name": "self"}),
    ("CALLME", "listener", {"name": "l0"}),
    ("DANCE", "listener", {"name": "l0"}),
]


@pytest.mark.parametrize("prefix", ["", PREFIX])
@pytest.mark.parametrize(("operation", "kind", "named"), NOT_IMPLEMENTED)
def test_not_implemented(node: Node, operation: str, kind: str, named: dict[str, str], prefix: str) -> None:
    status, text = node.refused(operation, {}, type=prefix + kind, **named)
    assert status == 501
    assert operation in text


# --- the whole configuration


def test_a_reload_follows_the_file(start_router: StartRouter, tmp_path: Any) -> None:
    text = "router { id: R }\nlistener { name: l0, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
    router = start_router(text)
    path = next(tmp_path.glob("trouter-*.conf"))
    with node_of(router.port) as node:
        before = node.query("listener")
        path.write_text(text + "address { prefix: fresh, distribution: multicast }\n")
        report = node.node("RELOAD")
        assert len(report["created"]) == 1
        assert (report["updated"], report["deleted"]) == ([], [])
        assert node.query("router.config.address")[0]["prefix"] == "fresh"
        path.write_text(text + "address { prefix: fresh, distribution: sideways }\nbogus { }\n")
        status, reason = node.refused("RELOAD", **NODE)
        assert status == 400
        assert "distribution" in reason
        assert "bogus" in reason
        assert node.query("listener") == before
        assert node.query("router.config.address")[0]["distribution"] == "multicast"


def test_integers_of_any_width_are_integers(own: Node) -> None:
    assert own.create("dummy", {"name": "n", "num1": ulong(5)})["num1"] == 5


# --- attributes of the machine, not of the router


@pytest.mark.parametrize(
    ("kind", "attributes", "name"),
    [
        ("listener", {"host": "127.0.0.1", "port": "0", "httpRootDir": "/proc"}, "listener.httpRootDir"),
    ],
)
def test_management_may_not_open_the_machine(node: Node, kind: str, attributes: dict[str, Any], name: str) -> None:
    status, text = node.refused("CREATE", attributes, type=PREFIX + kind, name="spy")
    assert (status, text[: len(name) + 2]) == (403, f"{name}: ")
    assert node.refused("READ", type=PREFIX + kind, name="spy")[0] == 404


def test_management_may_not_choose_where_the_log_is_written(node: Node) -> None:
    path = Path("/dev/planted")
    status, text = node.refused("UPDATE", {"outputFile": str(path)}, name="log/AGENT")
    assert (status, "log.outputFile: " in text) == (403, True)
    assert not path.exists()
