"""`trouter manage` against a running router: what scripts written for qdmanage rely on."""

from __future__ import annotations

import io
import json
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from proton.utils import BlockingConnection

from tests.ports import free_port
from tests.routers import RunningRouter, running
from trouter.cli import main
from trouter.config import TYPES

PREFIX = "org.apache.qpid.dispatch."
CONFIGURATION = """
router { id: R }
listener { name: first, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }
log { module: AGENT, enable: debug+ }
address { name: test-address, prefix: abc, distribution: multicast }
linkRoute { name: test-link-route, prefix: xyz, direction: in }
autoLink { name: test-auto-link, address: mnop, direction: out }
address { name: second-address, pattern: a.*.c }
"""
LOG_COUNTS = {f"{level}Count" for level in ("trace", "debug", "info", "notice", "warning", "error", "critical")}

Manage = Callable[..., Any]


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    text = CONFIGURATION.replace("{ id: R }", f"{{ id: R, logDir: {tmp_path_factory.getbasetemp()} }}")
    with running(text, tmp_path_factory.mktemp("managed")) as started:
        yield started


@pytest.fixture
def manage(router: RunningRouter, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Manage:
    """Run a command line; return its answer, parsed if it is JSON. `fails` expects status 1 and returns the text."""

    def run(*words: str, given: object = None, fails: bool = False) -> Any:
        if given is not None:
            monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(given)))
        status = main(["manage", *words, "-b", f"127.0.0.1:{router.port}", "-t", "30"])
        printed = capsys.readouterr()
        if fails:
            assert (status, printed.out) == (1, "")
            return printed.err.rstrip("\n")
        assert (status, printed.err) == (0, ""), printed.out
        try:
            return json.loads(printed.out) if printed.out else None
        except ValueError:
            return printed.out

    return run


# --- creating and deleting entities


def test_a_dummy_is_created_read_updated_and_deleted_by_name_and_by_identity(manage: Manage) -> None:
    made = manage("create", "--type=dummy", "arg1=foo", "arg2=bar", "--name", "mydummy")
    assert (made["arg1"], made["arg2"], made["name"], made["type"]) == ("foo", "bar", "mydummy", PREFIX + "dummy")
    assert manage("read", "--name", "mydummy") == made
    assert manage("read", "--identity", made["identity"]) == made
    changed = manage("update", "--name", "mydummy", "arg1=other")
    assert changed == made | {"arg1": "other"}
    changed = manage("update", "--id", made["identity"], "arg2=more", "num1=5")
    assert (changed["arg2"], changed["num1"]) == ("more", 5)
    assert manage("delete", "--name", "mydummy") is None
    assert manage("read", "--name", "mydummy", fails=True).startswith("trouter manage: not found: ")


def test_dummies_come_from_stdin_as_a_map_and_as_a_list(manage: Manage) -> None:
    made = manage("create", "--stdin", given={"type": "dummy", "name": "one", "arg1": "x", "num1": 3})
    assert (made["name"], made["num1"]) == ("one", 3)
    made = manage("create", "--stdin", given=[{"type": "dummy", "name": name} for name in ("two", "three")])
    assert [each["name"] for each in made] == ["two", "three"]
    changed = manage("update", "--stdin", given=[{"name": "two", "num1": 44}, {"name": "three", "num1": 43}])
    assert [each["num1"] for each in changed] == [44, 43]
    for name in ("one", "two", "three"):
        manage("delete", "--type", "dummy", "--name", name)
    assert manage("query", "--type", "dummy") == []


def test_a_custom_operation_reaches_an_entity(manage: Manage) -> None:
    made = manage("create", "--type=dummy", "--name", "called")
    answer = manage("callme", "--type", "dummy", "--identity", made["identity"], "--properties", '{"foo": "bar"}')
    assert answer is not None
    manage("delete", "--identity", made["identity"])


def test_a_created_listener_listens_at_once_and_a_deleted_one_is_closed(manage: Manage) -> None:
    port = free_port()
    made = manage("create", "type=listener", f"port={port}", "host=127.0.0.1", "name=extra", "saslMechanisms=ANONYMOUS")
    assert (made["role"], made["port"], made["name"]) == ("normal", str(port), "extra")
    BlockingConnection(f"127.0.0.1:{port}", allowed_mechs="ANONYMOUS").close()
    refused = manage("create", "type=listener", f"port={free_port()}", "host=127.0.0.1", "name=extra", fails=True)
    assert refused.startswith("trouter manage: bad request: ")
    manage("delete", "--type", "listener", "--name", "extra")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    assert manage("delete", "--type", "listener", "--name", "extra", fails=True) == (
        "trouter manage: not found: No entity with name=extra"
    )


def test_a_port_in_use_creates_nothing(manage: Manage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        manage("create", "type=listener", f"port={port}", "host=127.0.0.1", "name=taken", fails=True)
    assert "taken" not in [each["name"] for each in manage("query", "--type", "listener", "name")]


def test_a_connector_may_be_deleted_and_made_again_under_its_name(manage: Manage) -> None:
    port = free_port()
    words = ("create", "--type", "connector", "host=127.0.0.1", f"port={port}", "name=again")
    for _ in range(2):
        made = manage(*words)
        assert (made["name"], made["role"], made["host"]) == ("again", "normal", "127.0.0.1")
        manage("delete", "--type", "connector", "--name", "again")
    assert manage("query", "--type", "connector") == []


def test_patterns_may_be_written_with_either_separator(manage: Manage) -> None:
    for number, pattern in enumerate(("mercury.*.earth.#", "*/mars/*/#", "*/#/venus", "#.pluto", "uranus/*/#")):
        made = manage("create", "--type", "address", f"pattern={pattern}", f"name=p{number}", "distribution=closest")
        assert made["pattern"] == pattern
        assert manage("read", "--type", "address", "--name", f"p{number}")["pattern"] == pattern
        manage("delete", "--type", "address", "--name", f"p{number}")


def test_a_connection_cannot_be_deleted(manage: Manage) -> None:
    identities = [each["identity"] for each in manage("query", "--type", "connection", "identity")]
    assert identities
    for identity in identities:
        assert identity.isdecimal()
        refused = manage("delete", "--type", "connection", "--id", identity, fails=True)
        assert refused == "trouter manage: forbidden"


def test_both_connection_and_container_are_too_much(manage: Manage) -> None:
    words = ("create", "--type", "autoLink", "address=abc", "direction=in", "connection=a", "containerId=b")
    assert "Both connection and containerId cannot be specified" in manage(*words, fails=True)


# --- configured entities


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("address", ["test-address", "second-address"]),
        ("linkRoute", ["test-link-route"]),
        ("autoLink", ["test-auto-link"]),
    ],
)
def test_configured_entities_keep_their_names_and_their_order(manage: Manage, kind: str, names: list[str]) -> None:
    rows = manage("query", "--type", kind)
    assert [row["name"] for row in rows] == names
    for row in rows:
        assert None not in row.values()
        assert row["type"] == f"{PREFIX}router.config.{kind}"


def test_an_unset_attribute_is_absent(manage: Manage) -> None:
    (row,) = manage("query", "--type", "linkRoute")
    assert "pattern" not in row
    assert "connection" not in row


def test_old_and_new_names_of_attributes_are_both_shown(manage: Manage) -> None:
    (row,) = manage("query", "--type", "autoLink")
    assert (row["addr"], row["address"], row["dir"], row["direction"]) == ("mnop", "mnop", "out", "out")
    (row,) = manage("query", "--type", "linkRoute")
    assert (row["dir"], row["direction"]) == ("in", "in")


def test_an_attribute_may_be_set_under_its_old_name(manage: Manage) -> None:
    words = ("host=127.0.0.1", "port=0", "name=old", "failoverList=amqp://a:1", "saslMechanisms=ANONYMOUS")
    made = manage("create", "--type", PREFIX + "listener", *words)
    assert made["failoverUrls"] == "amqp://a:1"
    manage("delete", "--type", "listener", "--name", "old")


# --- logs


def test_a_log_is_updated_by_its_name_as_first_word(manage: Manage) -> None:
    before = manage("read", "log/DEFAULT")
    changed = manage("update", "log/DEFAULT", "enable=debug+")
    assert changed["enable"] == "debug+"
    assert (changed["name"], changed["identity"], changed["module"]) == ("log/DEFAULT", "log/DEFAULT", "DEFAULT")
    manage("update", "log/DEFAULT", f"enable={before['enable']}")


def test_a_log_file_that_cannot_be_opened_is_refused(manage: Manage, tmp_path: Path) -> None:
    refused = manage("UPDATE", "--type", PREFIX + "log", "--name", "log/DEFAULT", "outputFile=", fails=True)
    assert "Failed to open log file ''" in refused
    changed = manage(
        "UPDATE", "--type", PREFIX + "log", "--name", "log/DEFAULT", "enable=trace+", f"outputFile={tmp_path / 'A.log'}"
    )
    assert (changed["outputFile"], changed["enable"]) == (str(tmp_path / "A.log"), "trace+")
    manage("UPDATE", "--name", "log/DEFAULT", "enable=info+", "outputFile=stderr")


def test_recent_entries_of_the_log_can_be_had(manage: Manage) -> None:
    manage("get-log", "limit=1")
    entries = manage("get-log", "limit=20")
    assert 0 < len(entries) <= 20
    assert any(entry[:2] == ["AGENT", "debug"] and "get-log" in entry[2] for entry in entries)


def test_the_counts_of_a_log_are_all_there(manage: Manage) -> None:
    rows = manage("query", "--type", "logStats")
    assert len(rows) == 20
    for row in rows:
        assert set(row) >= LOG_COUNTS | {"identity", "name", "type"}


# --- the router, and its schema


def test_the_router_describes_itself(manage: Manage) -> None:
    (row,) = manage("query", "--type", "router")
    assert (row["id"], row["workerThreads"]) == ("R", 1)
    assert row["memoryUsage"] > 0


def test_a_query_of_two_attributes_returns_these_alone(manage: Manage) -> None:
    rows = manage("query", "type", "name")
    assert all(set(row) <= {"type", "name"} for row in rows)
    names = [row["name"] for row in rows]
    assert {"log/DEFAULT", "router/R", "first"} <= set(names)
    rows = manage("query", "--type", "listener", "name", "role")
    assert rows == [{"name": "first", "role": "normal"}]


def test_every_type_is_reported(manage: Manage) -> None:
    for operation in ("get-types", "get-attributes", "get-operations"):
        found = manage(operation)
        assert len(found) == len(TYPES)
        assert all(name.startswith(PREFIX) for name in found)


def test_an_ssl_profile_has_its_types_operations_and_attributes(manage: Manage) -> None:
    name = PREFIX + "sslProfile"
    assert manage("get-types", "sslProfile") == {name: [PREFIX + "configurationEntity", PREFIX + "entity"]}
    assert manage("get-operations", "sslProfile") == {name: ["CREATE", "DELETE", "READ", "UPDATE"]}
    older = {
        *("name", "identity", "type", "ciphers", "protocols", "caCertFile", "certFile", "privateKeyFile"),
        *("passwordFile", "password", "uidFormat", "uidNameMappingFile"),
    }
    assert older < set(manage("get-attributes", "sslProfile")[name])  # and trouter's own


def test_there_are_no_annotations(manage: Manage) -> None:
    assert manage("get-annotations") == {}


def test_a_lone_router_lists_no_other_router(manage: Manage) -> None:
    assert manage("get-mgmt-nodes") == []


def test_the_schema_can_be_had_as_a_map_and_as_text(manage: Manage) -> None:
    schema = manage("get-schema")
    assert schema["prefix"] == PREFIX.rstrip(".")
    assert manage("get-json-schema", "--properties", '{"indent": 2}') == schema
    assert {"listener", "router.link", "address"} <= set(schema["entityTypes"])


def test_the_router_answers_under_its_own_name_too(manage: Manage) -> None:
    assert manage("query", "--type", "router", "id", "--router", "R") == [{"id": "R"}]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["read", "--name", "X"], "trouter manage: not found: No entity with name=X"),
        (["update", "a=1"], "trouter manage: not implemented: "),
        (["create", "--type", "nonsense", "a=b"], "trouter manage: bad request: "),
        (["nonsense"], "trouter manage: not implemented: "),
        (["create", "--type", "listener", "role=nonsense"], "trouter manage: bad request: "),
        (["update", "log/DEFAULT", "enable=nonsense"], ""),
    ],
)
def test_a_refusal_of_the_router_is_printed(manage: Manage, words: list[str], message: str) -> None:
    assert manage(*words, fails=True).startswith(message)


# --- a password is set and never read again


def test_a_password_is_never_shown_again(manage: Manage, router: RunningRouter, tmp_path: Path) -> None:
    made_here = trustme.CA().issue_cert("localhost")
    made_here.private_key_pem.write_to_path(str(tmp_path / "key"))
    made_here.cert_chain_pems[0].write_to_path(str(tmp_path / "certificate"))
    secret = "s3cret-w0rd"
    words = [f"certFile={tmp_path / 'certificate'}", f"privateKeyFile={tmp_path / 'key'}", f"password={secret}"]
    made = manage("create", "--type", "sslProfile", "--name", "tls", *words)
    assert secret not in json.dumps([made, manage("query", "--type", "sslProfile"), manage("query")])
    assert secret not in json.dumps(manage("get-log"))
    assert secret not in router.text()
    manage("delete", "--type", "sslProfile", "--name", "tls")


# --- many


def test_ten_thousand_addresses_and_links_are_all_listed(manage: Manage, router: RunningRouter) -> None:
    count, connections = 10_000, 16  # so that none exceeds its maxLinks
    opened = [
        BlockingConnection(f"127.0.0.1:{router.port}", allowed_mechs="ANONYMOUS", timeout=120)
        for _ in range(connections)
    ]
    try:
        for number in range(count // 2):
            opened[number % connections].create_receiver(f"many/{number}")
            opened[number % connections].create_sender(f"many/{number}")
        links = manage("query", "--type", "link", "identity")
        identities = [int(each["identity"]) for each in links]
        assert len(identities) == len(set(identities)) == count + 2
        assert identities == sorted(identities)
        names = {each["name"] for each in manage("query", "--type", PREFIX + "router.address", "name")}
        assert {f"M0many/{number}" for number in range(count // 2)} <= names
    finally:
        for each in opened:
            each.close()
