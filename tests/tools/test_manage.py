"""`trouter manage`, from the command line to the request, and from the answer to the output."""

from __future__ import annotations

import io
import json
import sys
import uuid
from typing import Any

import pytest

from tests.tools.live import Ran, run
from tests.tools.support import ManagementServer, reply, serving_node
from trouter.tools.failures import ValidationError
from trouter.tools.values import as_json, json_or_text
from trouter.tools.words import attributes_of, long_type, secrets_of
from trouter.wire.types import Array, Described, Int, PairMap, Symbol, Timestamp, ULong
from trouter.wire.value_text import json_value

PREFIX = "org.apache.qpid.dispatch."
NODE = {"type": "org.amqp.management", "name": "self"}
TABLE = {"attributeNames": ["name", "port", "cost"], "results": [["a", "1", None], ["b", "2", 3]]}


async def managed(*words: str, answer: object = None, status: int = 200, text: str = "") -> tuple[Ran, Any]:
    """Run a command; return its result, and the request that it made."""
    server = ManagementServer(lambda request: [reply(request, answer, status, text)])
    async with serving_node(server):
        ran = await run("manage", *words, "-b", f"127.0.0.1:{server.port}", "-t", "30")
    return ran, server.requests


REQUESTS: dict[str, tuple[dict[str, object], object]] = {
    "create --type nonsense a=1 b=true c=false d=yes e": (
        {"operation": "CREATE", "type": PREFIX + "nonsense"},
        {"a": "1", "b": True, "c": False, "d": "yes", "e": None},
    ),
    "CREATE type=listener name=x port=5555": (
        {"operation": "CREATE", "type": PREFIX + "listener", "name": "x"},
        {"type": PREFIX + "listener", "name": "x", "port": "5555"},
    ),
    "create --type listener --name x port=5555": (
        {"operation": "CREATE", "type": PREFIX + "listener", "name": "x"},
        {"port": "5555"},
    ),
    "create --type connector cost=3 verifyHostname=no name=yes": (
        {"operation": "CREATE", "type": PREFIX + "connector", "name": "yes"},
        {"cost": 3, "verifyHostname": False, "name": "yes"},
    ),
    'create --type listener openProperties={"a":1}': (
        {"operation": "CREATE", "type": PREFIX + "listener"},
        {"openProperties": {"a": 1}},
    ),
    "create --type nonsense identity=7 a=1": (
        {"operation": "CREATE", "type": PREFIX + "nonsense"},
        {"identity": "7", "a": "1"},
    ),
    "create --type linkRoute dir=in": (
        {"operation": "CREATE", "type": PREFIX + "router.config.linkRoute"},
        {"dir": "in"},
    ),
    "create --type nonsense x=1": ({"operation": "CREATE", "type": PREFIX + "nonsense"}, {"x": "1"}),
    "read --name x": ({"operation": "READ", "name": "x"}, {}),
    "read --type link --id 7": ({"operation": "READ", "type": PREFIX + "router.link", "identity": "7"}, {}),
    "read --type router.link --name x": ({"operation": "READ", "type": "router.link", "name": "x"}, {}),
    "read --name x --identity 7": ({"operation": "READ", "identity": "7"}, {}),
    "read log/DEFAULT": ({"operation": "READ", "name": "log/DEFAULT"}, {}),
    "update log/DEFAULT enable=debug+": ({"operation": "UPDATE", "name": "log/DEFAULT"}, {"enable": "debug+"}),
    "update --name x sslProfile": ({"operation": "UPDATE", "name": "x"}, {"sslProfile": None}),
    "update name=x a=on b=off c=no d=ON": (
        {"operation": "UPDATE", "name": "x"},
        {"name": "x", "a": True, "b": False, "c": False, "d": "ON"},
    ),
    "update --type log module=DEFAULT identity=log/DEFAULT": (
        {"operation": "UPDATE", "type": PREFIX + "log", "identity": "log/DEFAULT"},
        {"module": "DEFAULT", "identity": "log/DEFAULT"},
    ),
    "update --type connection --id 7 adminStatus=deleted": (
        {"operation": "UPDATE", "type": PREFIX + "connection", "identity": "7"},
        {"adminStatus": "deleted"},
    ),
    "delete --type=dummy --name=x": ({"operation": "DELETE", "type": PREFIX + "dummy", "name": "x"}, {}),
    "delete x": ({"operation": "DELETE", "name": "x"}, {}),
    "get-types": ({"operation": "GET-TYPES", **NODE}, {}),
    "Get-Types listener": ({"operation": "GET-TYPES", **NODE, "entityType": PREFIX + "listener"}, {}),
    "get-attributes --type sslProfile": (
        {"operation": "GET-ATTRIBUTES", **NODE, "entityType": PREFIX + "sslProfile"},
        {},
    ),
    "get-log limit=20": ({"operation": "get-log", "limit": "20"}, {}),
    "GET-SCHEMA": ({"operation": "GET-SCHEMA"}, {}),
    'callme --type dummy --id 1 x=1 y=true --properties {"z":[1]} --body {"b":1}': (
        {
            "operation": "callme",
            "type": PREFIX + "dummy",
            "identity": "1",
            "x": "1",
            "y": True,
            "z": [1],
        },
        {"b": 1},
    ),
    "profile start": ({"operation": "profile"}, {}),
    "explain address=a operation=b": ({"operation": "explain", "address": "a"}, {}),
    "callme --body text": ({"operation": "callme"}, "text"),
    "callme --body 1": ({"operation": "callme"}, 1),
}


@pytest.mark.parametrize(("line", "wanted"), REQUESTS.items(), ids=REQUESTS)
async def test_words_make_a_request(line: str, wanted: tuple[dict[str, object], object]) -> None:
    ran, (request,) = await managed(*line.split(), answer={})
    assert (ran.status, ran.err) == (0, ""), ran.out
    assert (request.application_properties, request.body) == wanted


async def test_a_query_requests_names_and_prints_no_nulls() -> None:
    ran, (request,) = await managed("query", "--type", "listener", "name", "port", "cost", answer=TABLE)
    assert json.loads(ran.out) == [{"name": "a", "port": "1"}, {"name": "b", "port": "2", "cost": 3}]
    assert request.body == {"attributeNames": ["name", "port", "cost"]}
    assert request.application_properties == {
        "operation": "QUERY",
        **NODE,
        "entityType": PREFIX + "listener",
        "offset": 0,
        "count": 500,
    }


async def test_a_query_of_everything_names_no_type() -> None:
    ran, (request,) = await managed("query", answer={"attributeNames": [], "results": []})
    assert ran.out == "[]\n"
    assert "entityType" not in request.application_properties


@pytest.mark.parametrize(
    ("indent", "text"), [("2", '{\n  "a": [\n    1\n  ]\n}\n'), ("0", '{\n"a": [\n1\n]\n}\n'), ("-1", '{"a": [1]}\n')]
)
async def test_json_is_indented_as_wanted(indent: str, text: str) -> None:
    ran, _ = await managed("read", "--name", "x", f"--indent={indent}", answer={"a": [1]})
    assert ran.out == text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("a text\nof lines", "a text\nof lines\n"),
        (None, ""),
        ({}, ""),
        ([], ""),
        ([1], "[\n  1\n]\n"),
        (Symbol("s"), "s\n"),
    ],
)
async def test_another_operation_prints_a_text_unchanged_and_an_empty_answer_as_nothing(
    answer: object, text: str
) -> None:
    ran, _ = await managed("get-something", answer=answer)
    assert (ran.status, ran.out, ran.err) == (0, text, "")


async def test_delete_prints_nothing() -> None:
    ran, _ = await managed("delete", "--name", "x", answer={}, status=204)
    assert (ran.status, ran.out, ran.err) == (0, "", "")


@pytest.mark.parametrize("operation", ["get-annotations", "read", "get-mgmt-nodes"])
async def test_an_empty_answer_is_still_json(operation: str) -> None:
    ran, _ = await managed(operation, answer=[] if operation == "get-mgmt-nodes" else {})
    assert ran.out == ("[]\n" if operation == "get-mgmt-nodes" else "{}\n")


async def test_a_refusal_is_reported_on_stderr_with_1() -> None:
    ran, _ = await managed("read", "--name", "X", status=404, text="No entity with name=X")
    assert (ran.status, ran.out, ran.err) == (1, "", "trouter manage: not found: No entity with name=X\n")


@pytest.mark.parametrize(
    ("given", "printed"),
    [({"a": 1}, {"done": 1}), ([{"a": 1}, {"type": "listener"}], [{"done": 1}, {"done": 1}]), ([], [])],
)
@pytest.mark.parametrize("operation", ["create", "update"])
async def test_stdin_may_hold_one_or_several(
    monkeypatch: pytest.MonkeyPatch, operation: str, given: object, printed: object
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(given)))
    ran, requests = await managed(operation, "--stdin", "--type", "dummy", answer={"done": 1})
    assert (ran.status, json.loads(ran.out)) == (0, printed)
    assert [request.application_properties for request in requests] == [
        {"operation": operation.upper(), "type": PREFIX + "dummy"}
    ] * (len(given) if isinstance(given, list) else 1)
    if isinstance(given, list) and given:
        assert requests[1].body == {"type": PREFIX + "listener"}


async def test_words_besides_stdin_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}"))
    ran, requests = await managed("create", "--stdin", "a=1")
    assert (ran.status, ran.out, requests) == (2, "", [])
    assert "a=1" in ran.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("create --type listener cost=cheap", "trouter manage: cost is an integer, not 'cheap'"),
        (
            "create --type listener prot=1",
            f"trouter manage: no attribute 'prot' in {PREFIX}listener (did you mean 'port'?)",
        ),
        ("update --type log --name x nonsense=1", f"trouter manage: no attribute 'nonsense' in {PREFIX}log"),
        ("create --type listener openProperties={", "trouter manage: this is not JSON"),
        ("create =x", "trouter manage: an attribute without a name"),
        ("callme --properties x", "trouter manage: --properties is not a JSON map"),
    ],
)
async def test_wrong_arguments_are_found_before_any_request_is_sent(line: str, message: str) -> None:
    ran, requests = await managed(*line.split())
    assert (ran.status, ran.out, requests) == (1, "", [])
    assert ran.err.startswith(message)


# --- types, words and values


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("", ""),
        ("listener", PREFIX + "listener"),
        ("link", PREFIX + "router.link"),
        ("node", PREFIX + "router.node"),
        ("address", PREFIX + "router.config.address"),
        ("linkRoute", PREFIX + "router.config.linkRoute"),
        ("autoLink", PREFIX + "router.config.autoLink"),
        ("exchange", PREFIX + "router.config.exchange"),
        ("router.link", "router.link"),
        ("org.amqp.management", "org.amqp.management"),
        ("nonsense", PREFIX + "nonsense"),
    ],
)
def test_short_names_of_types(word: str, name: str) -> None:
    assert long_type(word) == name


def test_attributes_of_an_unknown_type_are_text() -> None:
    found = attributes_of(["a=1", "b=yes", "c=true", "d", "e=x=y", "f="], "nonsense", strict=True)
    assert found == {"a": "1", "b": "yes", "c": True, "d": None, "e": "x=y", "f": ""}


def test_an_attribute_may_be_given_under_its_old_name() -> None:
    assert attributes_of(["addr=q", "dir=in"], "router.config.autoLink", strict=True) == {"addr": "q", "dir": "in"}


def test_attributes_are_strict_only_where_that_is_wanted() -> None:
    assert attributes_of(["zzz=1", "cost=2"], "listener", strict=False) == {"zzz": "1", "cost": 2}
    with pytest.raises(ValidationError):
        attributes_of(["zzz=1"], "listener", strict=True)


def test_passwords_are_known_as_secrets() -> None:
    assert secrets_of({"password": "a", "saslPassword": "b", "name": "c", "passwordFile": "d", "password2": 1}) == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, None),
        (Symbol("s"), "s"),
        (ULong(2**64 - 1), 2**64 - 1),
        (Int(-1), -1),
        (Timestamp(5), 5),
        (True, True),
        (1.5, 1.5),
        (b"abc", "abc"),
        (b"\xff", "\\xff"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({1: "a", Symbol("b"): [b"c"]}, {"1": "a", "b": ["c"]}),
        (PairMap([([1], 2)]), {"[1]": 2}),
        (Array("symbol", [Symbol("a")]), ["a"]),
        (Described(Symbol("d"), {"x": 1}), {"x": 1}),
    ],
)
def test_every_value_of_amqp_can_be_printed(value: object, wanted: object) -> None:
    assert json_value(value) == wanted
    assert json.loads(as_json(value)) == wanted


def test_json_or_else_text() -> None:
    assert json_or_text('{"a": 1}') == {"a": 1}
    assert json_or_text("some words") == "some words"
    with pytest.raises(ValueError, match="not JSON"):
        json_or_text("{a: 1}")
    with pytest.raises(ValueError, match="too deeply"):
        json_or_text("[" * 100_000)
