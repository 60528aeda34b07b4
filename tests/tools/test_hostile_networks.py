"""`trouter network`, and a router of the network whose answers are hostile: it is named, and the others are shown."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.routers import DEADLINE_S
from tests.tools.live import run
from tests.tools.support import ManagementServer, asking, reply, serving_node
from trouter.client import Message
from trouter.tools import node as nodes
from trouter.tools.failures import MalformedAnswer
from trouter.tools.networks import survey as surveying
from trouter.tools.networks.checking import CheckedRouter, check_files, lines_of
from trouter.tools.networks.folder import RouterFile
from trouter.tools.networks.rolling import Roll, RolledRouter, RollStopped
from trouter.tools.networks.show import json_of, text_of
from trouter.tools.networks.survey import NetworkStatus, RouterStatus, survey
from trouter.tools.options import ConnectionOptions
from trouter.tools.words import PREFIX

pytestmark = pytest.mark.attack

FILE = RouterFile("B", Path("net/routers/B.conf"), "router { id: B }", Path("net/common.conf"), 0)
KNOWN = NetworkStatus((RouterStatus(id="B", mode="interior"),), ())


class HostileRouter:
    """The only interior router of a network; ``rows`` are what it shows of each type."""

    def __init__(self, rows: Mapping[str, Sequence[Mapping[str, object]]]) -> None:
        self._rows = rows

    def __call__(self, request: Message) -> Sequence[Message]:
        asked = request.application_properties
        if asked["operation"] == "GET-MGMT-NODES":
            return [reply(request, ["amqp:/_topo/0/B/$management"])]
        if asked["operation"] != "QUERY":
            return [reply(request, {}, 501, "Not Implemented")]
        names: list[str] = request.body["attributeNames"]
        rows = self._rows.get(asked["entityType"].removeprefix(PREFIX), ())
        page = [[row.get(name) for name in names] for row in rows][asked["offset"] :][: asked["count"]]
        return [reply(request, {"attributeNames": names, "results": page})]


async def surveyed(server: ManagementServer) -> NetworkStatus:
    async with asking(server) as node:
        return await survey(node)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("router", "uptimeSeconds", float("inf")),
        ("router", "connectionCount", b"\x00"),
        ("router", "linksBlocked", "many"),
        ("router", "deliveriesStuck", True),
        ("router", "drainState", ["draining"]),
        ("connection", "role", ["edge"]),
        ("connector", "connectionStatus", {}),
        ("sslProfile", "certificateEnds", "tomorrow"),
        ("policy", "policyDigest", ["a"]),
    ],
)
async def test_a_value_of_another_type_makes_a_router_faulty_and_ends_no_survey(
    kind: str, name: str, value: object
) -> None:
    status = await surveyed(ManagementServer(HostileRouter({kind: [{name: value}]})))
    assert [(router.id, name in router.fault) for router in status.routers] == [("B", True)]
    assert any(name in line for line in text_of(status))
    json.dumps(json_of(status))


async def test_an_edge_router_without_an_id_is_none() -> None:
    status = await surveyed(ManagementServer(HostileRouter({"connection": [{"role": "edge", "dir": "in"}]})))
    assert [(router.id, router.fault) for router in status.routers] == [("B", "")]


async def test_an_edge_router_with_the_id_of_an_interior_router_is_not_asked_in_its_place() -> None:
    edge = {"role": "edge", "dir": "in", "container": "B"}
    server = ManagementServer(HostileRouter({"connection": [edge], "router": [{"mode": "edge"}]}))
    status = await surveyed(server)
    assert [(router.id, router.mode) for router in status.routers] == [("B", "interior")]
    assert not [request for request in server.requests if "_edge" in str(request.properties.to)]


async def test_the_id_of_a_change_is_no_command_of_a_shell() -> None:
    rows = HostileRouter({})

    def answer(request: Message) -> Sequence[Message]:
        if request.application_properties["operation"] != "GET-CHANGE":
            return rows(request)
        change = {"id": "x; rm -rf ~", "by": "", "user": "", "host": "", "state": "made", "at": 0, "routers": []}
        return [reply(request, change)]

    status = await surveyed(ManagementServer(answer))
    assert [(router.id, router.fault) for router in status.routers] == [
        ("B", "the answer is no change of a configuration")
    ]
    assert "rm" not in "".join(text_of(status))


async def test_a_list_of_edge_routers_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "MAX_EDGES", 10)
    edges = [{"role": "edge", "dir": "in", "container": f"E{number}"} for number in range(11)]
    status = await surveyed(ManagementServer(HostileRouter({"connection": edges})))
    assert [(router.id, router.fault) for router in status.routers] == [
        ("B", "it names 11 edge routers; 10 are believed")
    ]


async def test_a_table_without_end_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Message) -> Sequence[Message]:
        asked = request.application_properties
        numbers = range(asked["offset"], asked["offset"] + asked["count"])
        return [reply(request, {"attributeNames": ["name"], "results": [[str(number)] for number in numbers]})]

    monkeypatch.setattr(nodes, "MAX_ROWS", 3 * nodes.PAGE_ROWS)
    async with asking(ManagementServer(answer)) as node:
        with pytest.raises(MalformedAnswer, match=r"more than 1500 rows"):
            await node.query(f"{PREFIX}address", ["name"])


async def test_of_a_table_of_a_survey_no_more_than_its_bound_is_read() -> None:
    findings = [{"severity": str(number)} for number in range(50_000)]
    server = ManagementServer(HostileRouter({"finding": findings}))
    status = await surveyed(server)
    (router,) = status.routers
    assert len(router.findings or ()) == 2_000
    assert max(each.application_properties.get("offset", 0) for each in server.requests) <= 2_000
    assert status.incomplete == ("B: only 2000 of its rows of finding are counted",)


async def checked(**answer: Any) -> CheckedRouter:
    async with asking(ManagementServer(lambda request: [reply(request, **answer)])) as node:
        (result,) = await check_files(node, [FILE], KNOWN)
    return result


async def test_a_refusal_of_a_check_moves_no_cursor() -> None:
    result = await checked(status=403, description="no\x1b[2J\r\nB: nothing changes")
    (line,) = lines_of(FILE, result, findings=True)
    assert line.startswith("B: not checked: ")
    assert line.isprintable()


@pytest.mark.parametrize(
    "body",
    [
        {"findings": ["text"], "plan": None},
        {"findings": [], "plan": {"created": 5}},
        {"findings": [], "plan": {"restart": "all"}},
    ],
)
async def test_an_answer_of_other_types_is_no_result_of_a_check(body: object) -> None:
    assert (await checked(body=body)).fault == "the answer is no result of a check"


async def test_a_finding_without_its_values_is_shown() -> None:
    result = await checked(body={"findings": [{}], "plan": None})
    assert len(list(lines_of(FILE, result, findings=True))) == 2


def numbered_names(request: Message) -> Sequence[Message]:
    """Answer a query with rows without end."""
    asked = request.application_properties
    numbers = range(asked["offset"], asked["offset"] + asked["count"])
    return [reply(request, {"attributeNames": ["name"], "results": [[str(number)] for number in numbers]})]


async def test_a_table_of_long_rows_is_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MAX_TABLE_BYTES", 10_000)
    async with asking(ManagementServer(numbered_names)) as node:
        with pytest.raises(MalformedAnswer, match=r"the table address has more than 9 KiB"):
            await node.query(f"{PREFIX}address", ["name"])


class EndlessRouter:
    """The only router of a network; it answers a query of ``kind`` with rows of 300 bytes without end."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._row = 0

    def __call__(self, request: Message) -> Sequence[Message]:
        asked = request.application_properties
        if asked["operation"] == "GET-MGMT-NODES":
            return [reply(request, ["amqp:/_topo/0/B/$management"])]
        if asked["operation"] != "QUERY":
            return [reply(request, {})]
        names: list[str] = request.body["attributeNames"]
        count = asked["count"] if asked["entityType"] == f"{PREFIX}{self._kind}" else 0
        return [reply(request, {"attributeNames": names, "results": [self._cells(names) for _ in range(count)]})]

    def _cells(self, names: Sequence[str]) -> list[str]:
        self._row += 1
        known = {"role": "edge", "dir": "in", "connectionStatus": "FAILED"}
        return [known.get(name, f"{self._row}{'x' * 300}") for name in names]


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("connection", "the names of the routers at it have more than 262144 characters"),
        ("connector", "the table connector has more than 512 KiB"),
        ("finding", "the table finding has more than 512 KiB"),
    ],
)
async def test_a_router_that_sends_without_end_is_named_with_what_it_sent_too_much_of(kind: str, fault: str) -> None:
    """Thirty of them are to take less than 64 MB."""
    tracemalloc.start()
    try:
        async with asking(ManagementServer(EndlessRouter(kind)), timeout_s=DEADLINE_S) as node:
            status = await survey(node)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [router.fault for router in status.routers] == [fault]
    assert kept_bytes < 2_000_000


@pytest.mark.parametrize("bad", ["too long", "no message"])
async def test_an_answer_that_ends_the_link_ends_no_view_of_the_others(
    monkeypatch: pytest.MonkeyPatch, bad: str
) -> None:
    monkeypatch.setattr(nodes, "MAX_ANSWER_BYTES", 10_000)
    monkeypatch.setattr(surveying, "_ANSWER_BYTES", 10_000)

    def answer(request: Message) -> Sequence[Message]:
        if request.application_properties["operation"] == "GET-MGMT-NODES":
            return [reply(request, ["amqp:/_topo/0/B/$management"])]
        if bad == "no message":
            server.deliver(b"no message")
            return []
        return [reply(request, bytes(20_000))]

    server = ManagementServer(answer)
    status = await surveyed(server)
    assert [(router.id, bool(router.fault)) for router in status.routers] == [("B", True)]
    async with asking(ManagementServer(answer)) as node:
        (result,) = await check_files(node, [FILE], KNOWN)
    assert result.fault


async def test_a_list_of_routers_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "MAX_ROUTERS", 10)
    addresses = [f"amqp:/_topo/0/R{number}/$management" for number in range(11)]
    async with asking(ManagementServer(lambda request: [reply(request, addresses)])) as node:
        with pytest.raises(MalformedAnswer, match="the network has 11 routers; 10 are believed"):
            await survey(node)


@pytest.mark.parametrize(
    ("limit", "fault"),
    [("_TIMES_OF_ROUTER", "its answers take longer than 0 s altogether"), ("_TIMES_OF_ALL", "not asked: ")],
)
async def test_a_router_that_answers_slowly_is_not_asked_for_hours(
    monkeypatch: pytest.MonkeyPatch, limit: str, fault: str
) -> None:
    monkeypatch.setattr(surveying, limit, 0)
    status = await surveyed(ManagementServer(HostileRouter({})))
    assert [(router.id, router.fault.startswith(fault)) for router in status.routers] == [("B", True)]


class RouterOfEndlessAddresses(HostileRouter):
    """A router whose addresses have no end: each page is full, and comes in time."""

    def __call__(self, request: Message) -> Sequence[Message]:
        asked = request.application_properties
        if asked.get("entityType") != f"{PREFIX}router.address":
            return super().__call__(request)
        names: list[str] = request.body["attributeNames"]
        numbers = range(asked["offset"], asked["offset"] + asked["count"])
        return [reply(request, {"attributeNames": names, "results": [[f"M0{each}"] * len(names) for each in numbers]})]


async def test_a_router_that_answers_slowly_ends_a_roll_in_its_patience() -> None:
    server = ManagementServer(RouterOfEndlessAddresses({}))
    async with serving_node(server):
        options = ConnectionOptions(host="127.0.0.1", port=server.port)
        roll = Roll(options, KNOWN, [RolledRouter("B", edge=False)], over_s=0, patience_s=1, tell=lambda _: None)
        with pytest.raises(RollStopped, match="the answers take longer than 1 s altogether"):
            await roll.run(["true"])


async def test_texts_without_end_leave_room_for_the_other_routers() -> None:
    long = "x" * 1000
    down = [{"name": f"{long}{number}", "connectionStatus": "FAILED", "connectionMsg": long} for number in range(40)]
    rows = {"router": [{"id": "B", "version": long, "workers": long, "drainState": long}], "connector": down}
    lines = list(text_of(await surveyed(ManagementServer(HostileRouter(rows)))))
    assert len(lines) < 30
    assert max(map(len, lines)) < 700
    assert any("20 more have no connection: see `trouter stat --connectors -r B`" in line for line in lines)


ODD_ID = "not asked: its id has control characters"
#: What a router says to colour a terminal, and to end a change with lines that it chooses.
FORGED = "\x1b[31mno\x9b2J\nA: confirmed\nchange policy-1: applied"
PLAN = {"created": ["vhost/$default"], "updated": [], "deleted": [], "restart": []}


class ForgingRouter(HostileRouter):
    """A router that takes a policy, but for the operations in ``refused``, and writes lines into the texts of it."""

    def __init__(self, refused: Sequence[str], *others: str) -> None:
        edge = {"role": "edge", "dir": "in", "container": f"E{FORGED}"}
        texts = {"policyDigest": FORGED, "drainState": FORGED}
        super().__init__({"connection": [edge], "policy": [texts], "router": [{"mode": "interior", **texts}]})
        self._refused = refused
        self._routers = ["B", *others]

    def __call__(self, request: Message) -> Sequence[Message]:
        operation = request.application_properties["operation"]
        if operation in self._refused:
            return [reply(request, None, 409, FORGED)]
        if operation == "GET-MGMT-NODES":
            return [reply(request, [f"amqp:/_topo/0/{router}/$management" for router in self._routers])]
        if operation == "CHECK":
            refusals = [FORGED] * ("refusals" in self._refused)
            part = request.application_properties.get("part", "")
            change = {"state": "1", "same": False, "open": "", "refusals": refusals, "part": part}
            finding = {"severity": "note", "message": FORGED, "file": FORGED}
            return [reply(request, {"findings": [finding], "plan": PLAN, "apply": change})]
        return [reply(request, {})] if operation.endswith(("APPLY", "-CHANGE")) else super().__call__(request)


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("policy push", ()),
        ("policy push", ("refusals",)),
        ("policy push", ("CHECK",)),
        ("policy push", ("APPLY",)),
        ("policy push", ("APPLY", "REVERT-CHANGE")),
        ("policy push", ("CONFIRM-CHANGE",)),
        ("policy push", ("QUERY",)),
        ("status", ()),
        ("status", ("QUERY",)),
        ("events", ()),
        ("roll --dry-run", ()),
        ("roll --dry-run", ("QUERY",)),
    ],
    ids=str,
)
async def test_no_router_writes_a_line_of_its_own_to_the_terminal(
    tmp_path: Path, command: str, refused: Sequence[str]
) -> None:
    (tmp_path / "all.conf").write_text("vhost { hostname: a, groups: { $default: { remoteHosts: * } } }\n")
    folder = [str(tmp_path), "--only", "B"] if "push" in command else []
    server = ManagementServer(ForgingRouter(refused))
    async with serving_node(server):
        ran = await run("network", *command.split(), *folder, "-b", f"127.0.0.1:{server.port}")
    lines = [*ran.lines, *(line.partition(": ")[2] for line in ran.err.splitlines())]
    assert r"\x1b[31m" in ran.out + ran.err
    assert not [line for line in lines if line.startswith(("A: ", "change policy-1:"))]
    assert not set("\x1b\x9b").intersection(ran.out + ran.err)


async def test_a_router_whose_id_has_control_characters_is_named_and_not_asked() -> None:
    server = ManagementServer(ForgingRouter((), f"C{FORGED}"))
    status = await surveyed(server)
    found = [(router.id[:2], router.fault) for router in status.routers]
    assert found == [("B", ""), ("C\\", ODD_ID), ("E\\", ODD_ID)]
    assert all(router.id.isprintable() for router in status.routers)
