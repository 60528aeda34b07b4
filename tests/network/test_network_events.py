"""`trouter network events`: what happened at all routers of a network, as one stream in the order of time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, interior, router_port, wait_for_row
from tests.routers import DEADLINE_S, ROOT, RunningRouter, running
from tests.tools.live import Ran, run
from tests.tools.support import ManagementServer, reply, serving_node
from trouter.client import AuthenticationFailed, LinkDetached, Message, Plain, connect
from trouter.tools.networks import events as reading
from trouter_plugins.users_file import put_user

pytestmark = pytest.mark.slow

POLICY = """
policy { enableVhostPolicy: yes }
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: *, sources: "*", targets: "$management", allowDynamicSource: yes, allowAnonymousSender: yes
            management: read
        }
    }
}
"""


@pytest.fixture
def routers(tmp_path: Path) -> Iterator[Mapping[str, RunningRouter]]:
    """A; B with a policy, at A; C at A, which has ended; an edge router at A, where alice has a password."""
    put_user(tmp_path / "users", "alice", b"wonderland")
    with ExitStack() as stack:
        first = stack.enter_context(running(interior("A", {}, EDGE_LISTENER), tmp_path))
        dials = {"A": router_port(first)}
        second = stack.enter_context(running(interior("B", dials, POLICY), tmp_path))
        text = edge("E", [edge_port(first)])
        text = text.replace("id: E", f"id: E, usersFile: {tmp_path}/users, authLockout: enforce, authLockoutAfter: 2")
        text = text.replace("ANONYMOUS", "ANONYMOUS PLAIN, allowInsecurePlain: yes", 1)
        third = stack.enter_context(running(text, tmp_path))
        wait_for_row(first, "router.address", lambda row: row["key"] == "HE")
        with running(interior("C", dials), tmp_path):
            wait_for_row(first, "router.node", lambda row: row["id"] == "C")
        wait_for_row(first, "topologyChange", lambda row: "neighbour C went" in str(row["events"]))
        yield {"A": first, "B": second, "E": third}


async def events(router: RunningRouter, *words: str) -> Ran:
    return await run("network", "events", "-b", f"127.0.0.1:{client_port(router)}", "--timeout", "60", *words)


async def guess(router: RunningRouter, user: str) -> None:
    with pytest.raises(AuthenticationFailed):
        async with connect(f"amqp://127.0.0.1:{client_port(router)}", sasl=[Plain(user, "looking glass")]):
            pass


async def test_a_refused_login_a_denied_link_an_alarm_and_a_lost_neighbour_are_one_stream(
    routers: Mapping[str, RunningRouter],
) -> None:
    async with connect(f"amqp://127.0.0.1:{client_port(routers['B'])}") as connection:
        with pytest.raises(LinkDetached):
            async with connection.open_sender("orders") as sender:
                await sender.send(Message("x"))
    for _ in range(2):
        await guess(routers["E"], "alice")
    ran = await events(routers["A"])
    assert (ran.status, ran.err) == (0, "")
    times = [line[:27] for line in ran.lines]
    assert times == sorted(times)
    rule = "$default:$default:targets:none"
    where = "by listener:listener/127.0.0.1:0"
    assert [line[29:] for line in ran.lines if "network" not in line] == [
        f"B  denial   user 'anonymous' from 127.0.0.1, vhost '$default': attach denied: sender, by {rule} (orders)",
        "E  alarm    warning auth-lockout raised: alice at 127.0.0.1: enforce (limit 2)",
        f"E  login    user 'alice' from 127.0.0.1: refused: bad-credentials, {where} (PLAIN), 2 times",
    ]
    assert any("  A  network  neighbour C went: " in line for line in ran.lines)
    assert len([line for line in ran.lines if "C is in reach via A" in line and "  B  network" in line]) == 1


async def test_since_leaves_out_what_was_before_and_json_has_an_object_a_line(
    routers: Mapping[str, RunningRouter],
) -> None:
    await guess(routers["E"], "alice")
    (first,) = [each for each in await objects(routers["A"]) if each["kind"] == "login"]
    assert first["router"] == "E"
    assert first["text"].startswith("user 'alice' from 127.0.0.1: refused: bad-credentials")
    details = {name: first["details"][name] for name in ("count", "operation", "user", "about")}
    assert details == {"count": 1, "operation": "login", "user": "alice", "about": "PLAIN"}
    moment = datetime.fromtimestamp(first["at"] / 1000, UTC).isoformat()
    later = await objects(routers["A"], "--since", moment)
    assert later[0] == first
    assert all(each["at"] >= first["at"] for each in later)
    assert await objects(routers["A"], "--since", "2999-01-01") == []
    assert {each["router"] for each in await objects(routers["E"], "--since", "1h")} == {"A", "B", "E"}


async def objects(router: RunningRouter, *words: str) -> list[dict[str, Any]]:
    ran = await events(router, "--json", *words)
    assert (ran.status, ran.err) == (0, "")
    return [json.loads(line) for line in ran.lines]


def test_what_happens_is_followed_until_ctrl_c(routers: Mapping[str, RunningRouter]) -> None:
    words = ["network", "events", "-b", f"127.0.0.1:{client_port(routers['A'])}", "--timeout", "60", "--follow"]
    command = [sys.executable, "-m", "trouter", *words]
    with ExitStack() as stack:
        pipe = subprocess.PIPE
        tool = stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True))
        stack.callback(tool.kill)  # it would follow for ever
        assert tool.stdout is not None
        assert any("neighbour C went" in line for line in iter(tool.stdout.readline, ""))
        trio.run(guess, routers["E"], "mallory")
        seen = list(takewhile(lambda line: "user 'mallory'" not in line, iter(tool.stdout.readline, "")))
        assert not any("neighbour C went" in line for line in seen)
        tool.send_signal(signal.SIGINT)
        _, err = tool.communicate(timeout=DEADLINE_S)
    assert (tool.returncode, err) == (0, "")


async def test_ctrl_c_ends_what_follows_before_the_first_answer() -> None:
    asked = trio.Event()

    def say_nothing(_: Message) -> list[Message]:
        asked.set()
        return []

    async with serving_node(server := ManagementServer(say_nothing)):
        words = ["network", "events", "-b", f"127.0.0.1:{server.port}", "--timeout", "400", "--follow"]
        command = [sys.executable, "-m", "trouter", *words]
        tool = await trio.lowlevel.open_process(command, cwd=ROOT, stderr=subprocess.PIPE)
        try:
            await asked.wait()
            tool.send_signal(signal.SIGINT)
            assert tool.stderr is not None
            said = b"".join([octets async for octets in tool.stderr])
            assert (await tool.wait(), said) == (0, b"")
        finally:
            tool.kill()


async def test_a_router_that_does_not_answer_is_named_and_the_status_is_one(
    routers: Mapping[str, RunningRouter],
) -> None:
    routers["B"].process.send_signal(signal.SIGSTOP)
    try:
        server = f"127.0.0.1:{client_port(routers['A'])}"
        ran = await run("network", "events", "-b", server, "--timeout", "1")
    finally:
        routers["B"].process.send_signal(signal.SIGCONT)
    assert ran.status == 1
    assert ran.err.startswith("trouter network events: B: ")
    assert any("  A  network  neighbour C went: " in line for line in ran.lines)


async def test_what_a_router_or_a_stranger_says_is_shown_on_one_line_of_bounded_length() -> None:
    evil = "\x1b[2J\n" + "x" * 5000
    tables: Tables = {
        "topologyChange": [{"began": 10**18, "events": [evil, {"a": [1]}] * 100}, {"began": 1, "events": 7}],
        "denial": [dict.fromkeys(OF_DENIAL, evil) | {"at": 2}, {"at": 3, "user": [evil], "count": None}],
        "alarm": [{"at": 4}],
    }
    ran, _ = await events_of(tables)
    assert (ran.status, ran.err) == (0, "")
    assert "\x1b" not in ran.out
    assert len(ran.lines) == 51 + 3
    assert max(map(len, ran.lines)) < 600


Tables = Mapping[str, Sequence[Mapping[str, object]]]
OF_DENIAL = ("count", "operation", "reason", "user", "host", "vhost", "rule", "about")


async def events_of(tables: Tables, workers: int = 1) -> tuple[Ran, ManagementServer]:
    """Show the events of a router with these tables, of which it shows as much as it is asked for."""

    def answer(request: Message) -> Sequence[Message]:
        asked = request.application_properties
        if asked["operation"] != "QUERY":
            return [reply(request, ["amqp:/_topo/0/B/$management"] if asked["operation"] == "GET-MGMT-NODES" else {})]
        names: list[str] = request.body["attributeNames"]
        rows = tables.get(asked["entityType"].rpartition(".")[2], [])
        page = rows[asked["offset"] :][: asked["count"]]
        body = {"attributeNames": names, "results": [[row.get(each) for each in names] for row in page]}
        message = reply(request, body)
        message.application_properties["workers"] = workers
        return [message]

    server = ManagementServer(answer)
    async with serving_node(server):
        return await run("network", "events", "-b", f"127.0.0.1:{server.port}"), server


@pytest.mark.parametrize(("workers", "kept"), [(1, 100), (2, 200), (10**9, 400)])
async def test_more_events_than_a_router_keeps_are_not_read(
    monkeypatch: pytest.MonkeyPatch, workers: int, kept: int
) -> None:
    """Each process of a router keeps a hundred, and a router says that it has as many as it likes."""
    monkeypatch.setattr(reading, "MAX_WORKERS", 4)
    changes = [{"began": number, "events": ["x"]} for number in range(20_000)]
    happened = [{"at": number} for number in range(20_000)]
    ran, server = await events_of({"topologyChange": changes, "denial": happened, "alarm": happened}, workers)
    assert (ran.status, ran.err) == (0, "")
    kinds = Counter(line.split("  ")[2] for line in ran.lines)
    assert kinds == {"network": 100, "denial": kept, "alarm": kept}
    assert max(each.application_properties.get("offset", 0) for each in server.requests) < kept
