"""`trouter network roll`: each router is drained, restarted and waited for, until one does not come back."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.networks import EDGE_LISTENER, client_port, edge, edge_port, interior, wait_for_row
from tests.ports import free_ports
from tests.routers import DEADLINE_S, ROOT, RunningRouter, running
from tests.tools.live import Ran, run
from tests.waiting import until
from trouter.client import Message, connect
from trouter.tools.failures import ConnectionException
from trouter.tools.networks.rolling import PLACEHOLDER, VARIABLE, RolledRouter, check_ids, ordered

pytestmark = pytest.mark.slow

#: Long enough for every wait of a roll in which all comes back.
PATIENCE = ("--patience", str(DEADLINE_S))


def _is_of(router: str, row: dict[str, Any]) -> bool:
    return bool(row["id"] == router)


class Fleet:
    """Three interior routers in a ring and an edge router at B, each with ports that outlive it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        ports = iter(free_ports(8))
        self._folder = folder
        self._stacks: dict[str, ExitStack] = {}
        self.routers: dict[str, RunningRouter] = {}
        dials: dict[str, dict[str, int]] = {"A": {}, "B": {}, "C": {}}
        texts = {}
        for name, others in dials.items():
            mine = [next(ports) for _ in range(3 if name == "B" else 2)]
            text = interior(name, others, EDGE_LISTENER if name == "B" else "")
            for port in mine:
                text = text.replace("port: 0", f"port: {port}", 1)
            texts[name] = text
            for other, theirs in dials.items():
                if other > name:
                    theirs[name] = mine[1]
        self._texts = texts
        for name in texts:
            self.start(name, stack)
        self._texts["E"] = edge("E", [edge_port(self.routers["B"])]).replace("port: 0", f"port: {next(ports)}", 1)
        self.start("E", stack)
        for name in ("A", "B", "C"):
            for other in {"A", "B", "C"} - {name}:
                wait_for_row(self.routers[name], "router.node", partial(_is_of, other))
        wait_for_row(self.routers["A"], "router.address", lambda row: row["key"] == "HE" and row["remoteCount"] > 0)
        self._stack = stack

    def start(self, name: str, stack: ExitStack) -> None:
        mine = stack.enter_context(ExitStack())
        self.routers[name] = mine.enter_context(running(self._texts[name], self._folder))
        self._stacks[name] = mine

    def restart(self, name: str) -> None:
        self.stop(name)
        self.start(name, self._stack)

    def stop(self, name: str) -> None:
        self._stacks[name].close()


class Doer:
    """Does what the command of a roll asks for, which is a client of its own that sends the router's id."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        #: What the commands asked for, as `ID VARIABLE`.
        self.asked: list[str] = []
        #: Exit statuses of the command for routers for which it fails, before it does anything.
        self.failing: dict[str, int] = {}
        #: Routers that are stopped and not started.
        self.dying: set[str] = set()

    @property
    def command(self) -> list[str]:
        port = self._server.getsockname()[1]
        return ["--", sys.executable, "-c", _ASK, str(port), PLACEHOLDER]

    def close(self) -> None:
        socket.create_connection(self._server.getsockname(), DEADLINE_S).close()  # asks for nothing: the end
        self._thread.join(DEADLINE_S)
        self._server.close()

    def _serve(self) -> None:
        while True:
            client, _ = self._server.accept()
            with client:
                words = client.makefile().readline().split()
                if not words:
                    return
                client.sendall(bytes([self._do(words[0], " ".join(words))]))

    def _do(self, name: str, asked: str) -> int:
        self.asked.append(asked)
        if name in self.failing:
            return self.failing[name]
        if name in self.dying:
            self._fleet.stop(name)
        else:
            self._fleet.restart(name)
        return 0


#: The command: sends the id in its words, and that of its environment, and exits with the status that comes back.
_ASK = f"""
import os, socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as asked:
    asked.sendall(f"{{sys.argv[2]}} {{os.environ['{VARIABLE}']}}\\n".encode())
    sys.exit(asked.recv(1)[0])
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(tmp_path, stack)


@pytest.fixture
def doer(fleet: Fleet) -> Iterator[Doer]:
    doer = Doer(fleet)
    yield doer
    doer.close()


def words_of(fleet: Fleet, *words: str) -> list[str]:
    return ["network", "roll", "-b", f"127.0.0.1:{client_port(fleet.routers['A'])}", "--over", "1", *words]


async def roll(fleet: Fleet, *words: str) -> Ran:
    return await run(*words_of(fleet, "--timeout", "60", *words))


async def drain(fleet: Fleet, name: str, *words: str) -> str:
    """Run `trouter drain` for another router than A; return the state after it."""
    ran = await run("drain", "-b", f"127.0.0.1:{client_port(fleet.routers['A'])}", "-r", name, "--json", *words)
    return str(json.loads(ran.out)["state"])


async def test_every_router_is_restarted_in_its_turn_and_the_connected_one_at_last(fleet: Fleet, doer: Doer) -> None:
    before = dict(fleet.routers)
    ran = await roll(fleet, *PATIENCE, "--edges-first", *doer.command)
    assert (ran.status, ran.err) == (0, "")
    assert doer.asked == ["E E", "B B", "C C", "A A"]
    assert [line for line in ran.lines if "done" in line] == [f"{name}: done, restarted" for name in "EBCA"]
    assert ran.lines[:4] == ["E: draining", "E: drained, the command runs", "E: coming back", "E: done, restarted"]
    assert all(fleet.routers[name] is not router for name, router in before.items())
    assert [router.matching("Drained: no client") != [] for router in before.values()] == [True] * 4


async def test_clients_at_other_routers_stay(fleet: Fleet, doer: Doer) -> None:
    url = f"amqp://127.0.0.1:{client_port(fleet.routers['A'])}"
    async with connect(url) as connection, connection.open_receiver("orders") as receiver:
        ran = await roll(fleet, *PATIENCE, "--only", "C", "--only", "B", "--json", *doer.command)
        assert (ran.status, ran.err) == (0, "")
        document = json.loads(ran.out)
        assert document["state"] == "rolled"
        assert [(each["router"], each["stage"], each["restarted"]) for each in document["routers"]] == [
            ("B", "done", True),
            ("C", "done", True),
        ]
        async with connection.open_sender("orders") as sender, trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, Message("still here"))
            delivery = await receiver.receive()
            assert delivery.message.body == "still here"
            await delivery.accept()


async def test_a_dry_run_tells_the_order_and_does_nothing(fleet: Fleet) -> None:
    assert (await roll(fleet, "--dry-run")).lines == ["B", "C", "E", "A"]
    assert (await roll(fleet, "--dry-run", "--edges-first", "--only", "E", "--only", "B")).lines == ["E", "B"]
    ran = await roll(fleet, "--dry-run", "--only", "X")
    assert (ran.status, ran.err) == (1, "trouter network roll: X is not in reach: nothing was begun\n")
    assert [await drain(fleet, name, "--status") for name in "BC"] == ["serving", "serving"]


async def test_without_a_command_that_exists_nothing_is_begun(fleet: Fleet) -> None:
    for words, why in (
        ((), "give the command that restarts a router, behind --"),
        (("--", "no-such-command", "{id}"), "there is no command 'no-such-command'"),
    ):
        ran = await roll(fleet, *words)
        assert ran.status == 2
        assert why in ran.err
    assert await drain(fleet, "B", "--status") == "serving"


async def test_a_command_that_fails_stops_the_roll_and_the_drain_is_ended_as_it_says(fleet: Fleet, doer: Doer) -> None:
    doer.failing["C"] = 3
    ran = await roll(fleet, *PATIENCE, *doer.command)
    assert ran.status == 1
    assert ran.err.splitlines() == [
        f"trouter network roll: {line}"
        for line in (
            "stopped at C: the command failed (3)",
            "C: drained, the command runs",
            "done: B",
            "not begun: E, A",
            "if C still drains: `trouter drain -r C --cancel`, through another router, lets it take clients again",
            "go on with: --only C --only E --only A",
        )
    ]
    assert await drain(fleet, "C", "--status") == "drained"
    assert await drain(fleet, "C", "--cancel") == "serving"


async def test_no_router_is_begun_while_another_one_drains(fleet: Fleet, doer: Doer) -> None:
    assert await drain(fleet, "C", "--over", "1") == "drained"
    ran = await roll(fleet, "--patience", "1", "--only", "E", *doer.command)
    assert ran.status == 1
    assert "stopped at E: it was not begun, because C drains (waited for 1 s)" in ran.err
    assert doer.asked == []
    assert await drain(fleet, "C", "--cancel") == "serving"


@pytest.mark.long
async def test_a_router_that_does_not_come_back_stops_the_roll(fleet: Fleet, doer: Doer) -> None:
    doer.dying.add("C")
    ran = await roll(fleet, "--patience", "20", "--json", *doer.command)
    assert ran.status == 1
    assert "stopped at C: " in ran.err
    assert "not begun: E, A" in ran.err
    document = json.loads(ran.out)
    assert document["state"] == "stopped"
    stages = {each["router"]: each["stage"] for each in document["routers"]}
    assert stages == {"B": "done", "C": "coming back", "E": "not begun", "A": "not begun"}
    assert doer.asked == ["B B", "C C"]


async def test_a_router_that_the_command_does_not_restart_takes_clients_again(fleet: Fleet) -> None:
    ran = await roll(fleet, *PATIENCE, "--", "true")
    assert (ran.status, ran.err) == (0, "")
    assert [line for line in ran.lines if "done" in line] == [f"{name}: done, not restarted" for name in "BCEA"]
    assert [await drain(fleet, name, "--status") for name in "ABC"] == ["serving"] * 3


@pytest.mark.long  # a roll waits for all of its patience
async def test_an_address_that_has_no_consumer_any_more_stops_the_roll(fleet: Fleet, doer: Doer) -> None:
    url = f"amqp://127.0.0.1:{client_port(fleet.routers['E'])}"
    async with connect(url) as connection, connection.open_receiver("orders"):
        await trio.to_thread.run_sync(
            wait_for_row,
            fleet.routers["A"],
            "router.address",
            lambda row: row["key"].endswith("orders") and row["remoteCount"] > 0,
        )
        ran = await roll(fleet, "--patience", "20", "--only", "E", *doer.command)
    assert ran.status == 1
    assert "stopped at E: no consumer is back for orders" in ran.err


def interrupted(words: Sequence[str], doer: Doer) -> tuple[int, str]:
    """Run a command, send it SIGINT once it has asked the doer; return its exit status and its errors."""
    command = [sys.executable, "-m", "trouter", *words]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as tool:
        until(lambda: doer.asked)
        tool.send_signal(signal.SIGINT)
        _, err = tool.communicate(timeout=DEADLINE_S)
    return tool.returncode, err


async def test_ctrl_c_tells_how_far_the_roll_came_and_what_ends_it(fleet: Fleet, doer: Doer) -> None:
    hangs = ["--", sys.executable, "-c", f"{_ASK.replace('sys.exit', 'print')}\nimport time; time.sleep({DEADLINE_S})"]
    doer.failing["B"] = 0
    words = words_of(fleet, *PATIENCE, *hangs, *doer.command[-2:])
    status, err = await trio.to_thread.run_sync(interrupted, words, doer)
    assert status == 130, err
    assert "B: drained, the command runs" in err
    assert "not begun: C, E, A" in err
    assert "if B still drains: `trouter drain -r B --cancel`" in err
    assert "Traceback" not in err
    assert await drain(fleet, "B", "--cancel") == "serving"


async def test_an_edge_router_is_no_way_to_roll_those_above_it(fleet: Fleet) -> None:
    server = f"127.0.0.1:{client_port(fleet.routers['E'])}"
    ran = await run("network", "roll", "-b", server, "--dry-run", "--timeout", "60")
    assert ran.status == 1
    assert "E is an edge router, and would lose its way to the others: nothing was begun" in ran.err
    assert (await run("network", "roll", "-b", server, "--dry-run", "--only", "E")).lines == ["E"]


def test_the_order_has_the_connected_router_at_last() -> None:
    routers = [RolledRouter(name, name.startswith("E")) for name in ("A", "B", "E1", "E2")]
    orders = [[each.id for each in ordered(routers, "A", edges_first=first)] for first in (False, True)]
    assert orders == [["B", "E1", "E2", "A"], ["E1", "E2", "B", "A"]]


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "a;reboot", "$(x)", "a/b", ""])
def test_an_id_that_a_command_could_take_for_more_is_refused(name: str) -> None:
    check_ids([RolledRouter("Router.A:1_x-y", edge=False)])
    with pytest.raises(ConnectionException, match="could be read as more than a name"):
        check_ids([RolledRouter(name, edge=False)])
