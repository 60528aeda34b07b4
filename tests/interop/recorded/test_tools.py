"""Recorded requests of Qpid Dispatch's unmodified tools, sent to trouter: each answer must equal the recorded one.

The tables below have the intended differences with their reasons; every other difference fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.interop.recorded.forms import Form, field, plain, sections, type_of
from tests.interop.recorded.forms import pairs as entries
from tests.interop.recorded.tools import CONFIGURATION, Conversation, conversations, play
from tests.routers import running
from trouter.config import TYPES

_APPLICATION_PROPERTIES: Final = 0x74
_PROPERTIES: Final = 0x73
_VALUE: Final = 0x77
PREFIX: Final = "org.apache.qpid.dispatch."

#: trouter's own types: they come after the others wherever types are listed.
OWN_TYPES: Final = {kind.full_name for kind in TYPES if kind.extra}

#: (command, attribute) -> the type of the recorded cell and of trouter's, where they differ on purpose.
CELL_TYPES: Final[dict[tuple[str, str], tuple[str, str]]] = {
    # A router that starts twice in a second must have another instance: milliseconds, which need 64 bits.
    ("qdstat -n", "instance"): ("int", "long"),
}

#: (command, a column of the table) -> the recorded rows that trouter lacks; the order is the router's own there.
OTHER_ROWS: Final[dict[tuple[str, str], set[str]]] = {
    ("qdstat -m", "typeSize"): set(),
    # The table has no rows for the routers' own addresses: other code serves the protocol between routers. An auto
    # link's address is added with the link.
    ("qdstat -a", "inProcess"): {
        "Lqdhello", "Lqdrouter", "Lqdrouter.ma", "Tqdrouter", "Tqdrouter.ma",
        "M0_$qd.addr_lookup", "M0_$qd.edge_addr_tracking", "M1queue",
    },
}  # fmt: skip

#: Cells with the same value as in the recorded router.
SAME_VALUES: Final = frozenset({
    "type", "mode", "area", "id", "linkRouteCount", "autoLinkCount", "nodeCount", "linkCount", "connectionCount",
    "role", "protocol", "dir", "sasl", "isAuthenticated", "user", "isEncrypted", "tenant", "ssl", "active",
    "adminStatus", "operStatus", "linkType", "linkDir", "capacity", "priority", "distribution", "nextHop", "linkState",
    "validOrigins", "cost", "index", "protocolVersion", "lastTopoChange", "address", "direction", "phase",
    "externalAddress", "linkRef", "lastError", "prefix", "pattern", "addExternalPrefix", "delExternalPrefix", "host",
    "linkCapacity", "maxFrameSize", "idleTimeoutSeconds",
    "stripAnnotations", "saslMechanisms", "authenticatePeer", "multiTenant", "healthz", "metrics", "websockets",
    "http", "messageLoggingComponents", "maxConnections", "maxMessageSize", "enableVhostPolicy",
    "enableVhostNamePatterns", "policyDir", "defaultVhost", "connectionsDenied", "connectionsCurrent", "linksDenied",
    "maxMessageSizeDenied", "totalDenials", "transferBatchSize", "localFreeListMax",
})  # fmt: skip
#: Commands in which a connection's host has a port.
_PORTS: Final = frozenset({"qdstat -c", "qdstat -e"})

#: The one different answer: a created entity is listed at once, too.
OTHER_STATUS: Final = {"qdmanage read --name x": ((404, "No entity with name=x"), (200, "OK"))}

#: Attributes and their values in the schema that differ on purpose, (type, attribute, field).
SCHEMA_DIFFERENCES: Final = {
    ("log", "module", "type"),  # records go to the module AUDIT
    ("router.link", "linkType", "type"),  # its rows have edge-downlink there, too
    ("vhostUserGroupSettings", "users", "required"),  # a group without users or hosts is valid and closed
    ("vhostUserGroupSettings", "remoteHosts", "required"),
}

Played = dict[str, tuple[str, list[bytes]]]
TALKS: Final = {each.command: each for each in conversations()}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Return trouter's answers in each conversation; they are played one after the other, as they were recorded."""
    with running(CONFIGURATION, tmp_path_factory.mktemp("router")) as router:
        yield {command: play(said, router.port) for command, said in TALKS.items()}


def pairs(said: Conversation, got: tuple[str, list[bytes]]) -> Iterator[tuple[dict[str, Any], dict[int, Form]]]:
    """Yield each recorded answer with the sections of trouter's."""
    _, messages = got
    assert len(messages) == len(said.answers)
    return zip(said.answers, map(sections, messages), strict=True)


def recorded(answer: dict[str, Any]) -> dict[int, Form]:
    return sections(bytes.fromhex(answer["octets"]) if "octets" in answer else bytes.fromhex(answer["head"]))


def status_of(message: dict[int, Form]) -> tuple[int, str]:
    properties = plain(message[_APPLICATION_PROPERTIES])
    return properties["statusCode"], properties["statusDescription"]


@pytest.mark.parametrize("command", TALKS)
def test_an_answer_has_the_head_of_the_recorded_one(played: Played, command: str) -> None:
    for answer, ours in pairs(TALKS[command], played[command]):
        theirs = recorded(answer)
        assert list(ours) == [*(each for each in theirs if each != _VALUE), _VALUE]
        assert (status_of(theirs), status_of(ours)) == OTHER_STATUS.get(command, (status_of(theirs),) * 2)
        assert typed(ours[_APPLICATION_PROPERTIES]) == typed(theirs[_APPLICATION_PROPERTIES])
        their_head, our_head = theirs[_PROPERTIES][1], ours[_PROPERTIES][1]
        assert list(map(type_of, our_head)) == list(map(type_of, their_head))
        assert our_head[2][1] == played[command][0]
        assert our_head[5] == their_head[5], "the correlation id came back changed"


def typed(value: Form) -> object:
    """Return the types within a value, by the keys of its maps in any order."""
    if value[0].startswith("map"):
        return {key[1]: typed(each) for key, each in entries(value)}
    if value[0].startswith("list"):
        return [typed(each) for each in value[1]]
    return type_of(value)


def is_listing(body: Form) -> bool:
    return body[0].startswith("map") and [key[1] for key, _ in entries(body)] == ["attributeNames", "results"]


@pytest.mark.parametrize("command", TALKS)
def test_a_table_is_the_recorded_one(played: Played, command: str) -> None:
    for answer, ours in pairs(TALKS[command], played[command]):
        if "octets" not in answer or not is_listing(recorded(answer)[_VALUE]):
            continue
        theirs = recorded(answer)[_VALUE]
        names = [plain(field(each, "attributeNames")) for each in (theirs, ours[_VALUE])]
        assert names[1][: len(names[0])] == names[0], "an attribute is missing, or stands elsewhere"
        tables = [rows_of(body, each) for body, each in zip((theirs, ours[_VALUE]), names, strict=True)]
        compare_tables(command, tables[0], tables[1])


def rows_of(body: Form, names: list[str]) -> list[dict[str, Form]]:
    return [dict(zip(names, row[1], strict=True)) for row in field(body, "results")[1]]


def key_of(row: dict[str, Form]) -> str:
    """Return the value that identifies a row in both routers."""
    key = next((row[name][1] for name in ("name", "identity") if name in row), "")
    return "temp." if str(key).startswith("Ltemp.") else str(key)


def compare_tables(command: str, theirs: list[dict[str, Form]], ours: list[dict[str, Form]]) -> None:
    if not theirs:
        assert ours == []
        return
    missing = next((OTHER_ROWS[command, name] for name in theirs[0] if (command, name) in OTHER_ROWS), None)
    if missing is not None:
        found = {key_of(row): row for row in ours}
        assert {key_of(row) for row in theirs} - found.keys() == missing
        rows = [(row, found[key_of(row)]) for row in theirs if key_of(row) in found]
    else:
        assert len(ours) == len(theirs)
        rows = list(zip(theirs, ours, strict=True))
    for row, mine in rows:
        for name, cell in row.items():
            there = type_of(cell)
            assert (there, type_of(mine[name])) == CELL_TYPES.get((command, name), (there, there)), f"{command}: {name}"
            if name in SAME_VALUES and not (name == "host" and command in _PORTS):
                assert plain(mine[name]) == plain(cell), f"{command}: {name}"


@pytest.mark.parametrize("command", ["qdmanage get-types", "qdmanage get-operations"])
def test_types_bases_and_operations_have_the_recorded_order_and_new_ones_follow(played: Played, command: str) -> None:
    for answer, ours in pairs(TALKS[command], played[command]):
        theirs, mine = plain(recorded(answer)[_VALUE]), plain(ours[_VALUE])
        assert list(mine)[: len(theirs)] == list(theirs)
        assert set(mine) - set(theirs) == OWN_TYPES
        assert {name: mine[name][: len(values)] for name, values in theirs.items()} == theirs
        assert command != "qdmanage get-types" or {name: mine[name] for name in theirs} == theirs


@pytest.mark.parametrize("command", ["qdmanage get-annotations", "qdmanage get-mgmt-nodes"])
def test_annotations_and_management_nodes_equal_the_recorded_answers(played: Played, command: str) -> None:
    for answer, ours in pairs(TALKS[command], played[command]):
        assert plain(ours[_VALUE]) == plain(recorded(answer)[_VALUE])


@pytest.mark.parametrize(
    "command",
    [
        "qdmanage create --type address name=x prefix=x distribution=multicast",
        "qdmanage update --name log/DEFAULT enable=debug+",
        "qdmanage delete --name x --type address",
        "qdmanage read --name nothing",
    ],
)
def test_a_changed_entity_is_shown_as_recorded(played: Played, command: str) -> None:
    own = {"enableFallback", "format", "metrics"}  # the current name of `fallback`; and attributes of trouter's
    for answer, ours in pairs(TALKS[command], played[command]):
        theirs = {key[1]: each for key, each in entries(recorded(answer)[_VALUE])}
        mine = {key[1]: each for key, each in entries(ours[_VALUE]) if key[1] not in own}
        assert {name: (type_of(each), plain(each)) for name, each in mine.items() if name != "identity"} == {
            name: (type_of(each), plain(each)) for name, each in theirs.items() if name != "identity"
        }


def test_the_schema_contains_the_recorded_schema(played: Played) -> None:
    command = "qdstat --vhostgroups"
    answer, ours = list(pairs(TALKS[command], played[command]))[-1]
    theirs, mine = answer["schema"], plain(ours[_VALUE])
    assert mine["prefix"] == theirs["prefix"]
    assert list(mine["entityTypes"])[: len(theirs["entityTypes"])] == list(theirs["entityTypes"])
    different = set()
    for short, kind in theirs["entityTypes"].items():
        found = mine["entityTypes"][short]
        others = {"attributes", "description", "operations"}
        assert {key: value for key, value in found.items() if key not in others} == {
            key: value for key, value in kind.items() if key not in others
        }
        recorded_operations = kind.get("operations", [])
        assert found.get("operations", [])[: len(recorded_operations)] == recorded_operations
        assert [name for name in found["attributes"] if name in kind["attributes"]] == list(kind["attributes"])
        for name, attribute in kind["attributes"].items():
            shown = found["attributes"][name]
            for what in {*attribute, *shown} - {"description", "create", "update"}:  # it does not report the last two
                if attribute.get(what) != shown.get(what):
                    different.add((short, name, what))
    assert different == SCHEMA_DIFFERENCES
