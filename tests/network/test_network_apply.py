"""`trouter network apply`: a change at all routers or at none, also if a router or the command is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.management.node import node_of
from tests.networks import client_port, interior, network_with_edge, wait_for_row
from tests.routers import DEADLINE_S, ROOT, RunningRouter, process, running
from tests.tools.live import Ran, run
from tests.tools.support import ManagementServer, asking, reply, serving_node
from tests.waiting import until
from trouter.client import Message
from trouter.tools.networks.applying import ChangedRouter, JointChange, Outcome, groups_of
from trouter.tools.networks.checking import check_files
from trouter.tools.networks.folder import read_folder
from trouter.tools.networks.survey import NetworkStatus, RouterStatus, survey
from trouter.tools.node import open_node
from trouter.tools.options import ConnectionOptions

pytestmark = pytest.mark.slow

NEWS = "address { prefix: news, distribution: multicast }"


@pytest.fixture
def routers(tmp_path: Path) -> Iterator[Mapping[str, RunningRouter]]:
    """Two interior routers, and an edge router at the second one."""
    with network_with_edge(tmp_path) as running_routers:
        yield running_routers


@pytest.fixture
def folder(tmp_path: Path, routers: Mapping[str, RunningRouter]) -> Path:
    """The files with which the routers run, and an address for all."""
    return folder_of(tmp_path, {name: router.configuration.read_text() for name, router in routers.items()})


def folder_of(tmp_path: Path, texts: Mapping[str, str]) -> Path:
    made = tmp_path / "net"
    (made / "routers").mkdir(parents=True)
    for name, text in texts.items():
        (made / "routers" / f"{name}.conf").write_text(text)
    (made / "common.conf").write_text(NEWS)
    return made


async def apply(router: RunningRouter, *words: str | Path) -> Ran:
    server = f"127.0.0.1:{client_port(router)}"
    return await run("network", "apply", *map(str, words), "-b", server, "--timeout", "60")


async def status(router: RunningRouter) -> Ran:
    return await run("network", "status", "-b", f"127.0.0.1:{client_port(router)}", "--timeout", "60")


def prefixes(router: RunningRouter) -> list[str]:
    with node_of(client_port(router)) as node:
        return [row["prefix"] for row in node.query("router.config.address")]


def text_of(folder: Path, name: str) -> str:
    return f"{NEWS}\n{(folder / 'routers' / f'{name}.conf').read_text()}"


@asynccontextmanager
async def checked_change(
    router: RunningRouter, folder: Path, *last: str, patience_s: float = 60
) -> AsyncIterator[JointChange]:
    """Check the files of a folder as the command does, and yield the change that it would make; ``last`` come last.

    It waits ``patience_s`` for the answer to each step.
    """
    options = ConnectionOptions(host="127.0.0.1", port=client_port(router), timeout_s=60)
    async with open_node(options) as node, open_node(replace(options, timeout_s=patience_s)) as changing:
        known = await survey(node)
        files = read_folder(folder)
        checked = await check_files(node, files, known)
        modes = {each.id: each.mode for each in known.routers}
        changed = [
            ChangedRouter(file.id, modes[file.id] == "edge", file=file, state=each.outlook.state)
            for file, each in zip(files, checked, strict=True)
            if each.outlook is not None
        ]
        groups = [[each for each in changed if each.id not in last], [each for each in changed if each.id in last]]
        yield JointChange(changing, "c1", "ann@ops", groups, 8)


def outcomes(change: JointChange) -> dict[str, Outcome]:
    return {each.id: each.outcome for each in change.routers}


async def test_every_router_has_its_file_and_the_next_run_has_nothing_to_do(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    ran = await apply(routers["A"], folder)
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines[-4:-1] == ["B: confirmed", "E: confirmed", "A: confirmed"]
    for name, router in routers.items():
        assert prefixes(router) == ["news"]
        assert router.configuration.read_text() == text_of(folder, name)
        before = router.configuration.with_name(f"{router.configuration.name}.before").read_text()
        assert before == (folder / "routers" / f"{name}.conf").read_text()
    assert "is not finished" not in (await status(routers["A"])).out
    again = await apply(routers["E"], folder)
    assert (again.status, again.lines[-1]) == (0, "every router has its file: nothing was changed")


async def test_a_dry_run_and_a_file_that_is_not_good_change_nothing(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    ran = await apply(routers["A"], folder, "--dry-run", "--only", "B", "--only", "E")
    assert (ran.status, ran.lines[-1]) == (0, "2 router(s) would change, nothing was changed")
    path = folder / "routers" / "E.conf"
    path.write_text(f"{path.read_text()}listener {{ prot: 1 }}\n")
    ran = await apply(routers["A"], folder)
    assert ran.status == 1
    assert ran.err.endswith("trouter network apply: E cannot make the change: nothing was changed\n")
    assert any("listener.prot: unknown attribute" in line for line in ran.lines)
    assert [prefixes(router) for router in routers.values()] == [[], [], []]


async def test_what_the_operators_way_may_go_through_is_asked_for_first(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    path = folder / "routers" / "A.conf"
    path.write_text(path.read_text().replace("idleTimeoutSeconds: 0", "idleTimeoutSeconds: 9"))
    ran = await apply(routers["A"], folder)
    assert ran.status == 1
    assert "A: listener/" in ran.err
    assert ran.err.endswith("may lose each other by that: nothing was changed (--yes makes the change)\n")
    assert prefixes(routers["A"]) == []
    assert (await apply(routers["A"], folder, "--yes")).status == 0
    assert prefixes(routers["A"]) == ["news"]


async def test_a_router_that_is_away_is_refused_or_its_file_waits(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    (folder / "routers" / "X.conf").write_text("router { id: X, mode: interior }\n")
    ran = await apply(routers["A"], folder)
    assert ran.status == 1
    assert "X would miss the change: nothing was changed" in ran.err
    assert prefixes(routers["A"]) == []
    ran = await apply(routers["A"], folder, "--skip-absent")
    assert ran.status == 0
    assert "X is away: the change waits for it" in ran.err
    (line,) = (await run("network", "apply", str(folder), "--pending")).lines
    assert line.startswith("X: the change waits since ")
    (folder / "routers" / "X.conf").unlink()
    assert list(json.loads((folder / ".pending.json").read_text())) == ["X"]


async def test_a_router_that_was_changed_in_between_refuses_and_the_others_go_back(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    async with checked_change(routers["A"], folder, "B") as change:
        with node_of(client_port(routers["B"])) as node:
            node.create("router.config.address", {"prefix": "by-hand"}, name="mine")
        await change.make()
        assert outcomes(change) == {"A": Outcome.MADE, "E": Outcome.MADE, "B": Outcome.REFUSED}
        await change.take_back()
        assert outcomes(change) == {"A": Outcome.BACK, "E": Outcome.BACK, "B": Outcome.REFUSED}
    assert {name: prefixes(router) for name, router in routers.items()} == {"A": [], "B": ["by-hand"], "E": []}
    for name, router in routers.items():
        assert router.configuration.read_text() == (folder / "routers" / f"{name}.conf").read_text()


async def test_a_command_that_was_killed_leaves_a_change_that_status_shows_and_one_command_ends(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    async with checked_change(routers["A"], folder, "B") as change:
        change.routers[-1].file = None  # the command ends before it orders the change of B
        await change.make()
    (line,) = [line for line in (await status(routers["A"])).lines if line.startswith("change c1 by ann@ops")]
    assert "is not finished: made at A, E; not open at B; " in line
    other = await apply(routers["A"], folder)
    assert other.status == 1
    assert "a change is open (c1 at A, E)" in other.err
    assert prefixes(routers["B"]) == []
    resumed = await apply(routers["A"], folder, "--resume", "c1")
    assert (resumed.status, resumed.err) == (0, "")
    assert {name: prefixes(router) for name, router in routers.items()} == {"A": ["news"], "B": ["news"], "E": ["news"]}
    assert "is not finished" not in (await status(routers["A"])).out


async def test_an_open_change_is_taken_back_or_kept_from_any_router(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    for option, expected in (("--abandon", []), ("--keep", ["news"])):
        async with checked_change(routers["A"], folder) as change:
            change.id = f"c{option}"
            await change.make()
            assert change.is_made
        ran = await apply(routers["E"], option, f"c{option}")
        assert (ran.status, ran.err) == (0, "")
        assert [prefixes(router) for router in routers.values()] == [expected] * 3
        gone = await apply(routers["E"], option, f"c{option}")
        assert (gone.status, gone.err) == (
            1,
            f"trouter network apply: no router in reach has the change c{option} open\n",
        )


async def test_a_router_that_is_killed_between_the_phases_gets_nothing_and_the_others_go_back(tmp_path: Path) -> None:
    with running(interior("A", {}), tmp_path) as first:
        with process(interior("B", {"A": first.ports[1]}), tmp_path) as second:
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
            texts = {"A": first.configuration.read_text(), "B": second.configuration.read_text()}
            folder = folder_of(tmp_path, texts)
            async with checked_change(first, folder, "B", patience_s=5) as change:
                second.process.kill()
                second.wait()
                await change.make()
                assert not change.is_made
                while outcomes(change)["A"] is not Outcome.BACK:  # on a busy machine its answer may come too late
                    await change.take_back()
                assert outcomes(change)["B"] is not Outcome.MADE
        assert second.configuration.read_text() == texts["B"]
        assert first.configuration.read_text() == texts["A"]
        assert prefixes(first) == []


async def test_a_router_that_is_killed_after_its_change_is_named_and_ends_it_when_it_is_back(tmp_path: Path) -> None:
    with running(interior("A", {}), tmp_path) as first:
        with process(interior("B", {"A": first.ports[1]}), tmp_path) as second:
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
            texts = {"A": first.configuration.read_text(), "B": second.configuration.read_text()}
            folder = folder_of(tmp_path, texts)
            async with checked_change(first, folder) as change:
                await change.make()
                second.process.kill()
                second.wait()
        wait_for_row(first, "router.node", lambda row: row["id"] == "B", there=False)
        (line,) = [line for line in (await status(first)).lines if line.startswith("change c1 by ann@ops")]
        assert "is not finished: made at A; not open at B; " in line
        ran = await apply(first, "--abandon", "c1")
        assert ran.status == 1
        assert ran.err.endswith("B may have the change c1 too and does not answer: repeat this once it does\n")
        again = tmp_path / "again"
        again.mkdir()
        with running(second.configuration.read_text(), again) as restarted:
            for ending in (".before", ".change"):
                path = second.configuration.with_name(f"{second.configuration.name}{ending}")
                path.rename(again / f"{restarted.configuration.name}{ending}")
            wait_for_row(first, "router.node", lambda row: row["id"] == "B")
            assert prefixes(restarted) == ["news"]
            ran = await apply(first, "--abandon", "c1")
            assert ran.lines == ["B: taken back", "change c1: taken back"]
            assert prefixes(restarted) == []
            assert restarted.configuration.read_text() == texts["B"]


class Scripted:
    """The only router of a network; ``answers`` are those to operations, an int for a refusal, None for none at all."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self._answers = {"GET-CHANGE": {}, "GET-MGMT-NODES": ["amqp:/_topo/0/B/$management"], **answers}
        self.operations: list[str] = []

    def __call__(self, request: Message) -> Sequence[Message]:
        asked = request.application_properties
        operation = asked["operation"]
        self.operations.append(operation)
        if operation == "QUERY":
            names: list[str] = request.body["attributeNames"]
            return [reply(request, {"attributeNames": names, "results": []})]
        answer = self._answers[operation]
        if answer is None:
            return []
        return [reply(request, {}, answer, "no") if isinstance(answer, int) else reply(request, answer)]


OUTLOOK: dict[str, object] = {"state": "s", "same": False, "open": "", "refusals": []}
CHECKED: dict[str, object] = {
    "findings": [],
    "plan": {"created": ["address/0"], "updated": [], "deleted": [], "restart": []},
    "apply": OUTLOOK,
}


@asynccontextmanager
async def scripted(router: Scripted, folder: Path) -> AsyncIterator[str]:
    """Serve a router; yield where. The folder gets its file."""
    folder_of(folder, {"B": "router { id: B }"})
    server = ManagementServer(router)
    async with serving_node(server):
        yield f"127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"CHECK": {**CHECKED, "apply": None}}, "B: its version takes no changes over the network"),
        ({"CHECK": 501}, "B cannot make the change: nothing was changed"),
        ({"CHECK": {**CHECKED, "apply": {"state": 5}}}, "B cannot make the change: nothing was changed"),
        ({"CHECK": {**CHECKED, "apply": {**OUTLOOK, "refusals": ["it is Sunday"]}}}, "B: it is Sunday"),
    ],
)
async def test_an_older_router_and_one_that_answers_wrongly_are_named_and_nothing_is_changed(
    tmp_path: Path, answers: Mapping[str, object], why: str
) -> None:
    router = Scripted(answers)
    async with scripted(router, tmp_path) as server:
        ran = await run("network", "apply", str(tmp_path / "net"), "-b", server)
    assert ran.status == 1
    assert why in ran.err
    assert "nothing was changed" in ran.err
    assert "APPLY" not in router.operations


@pytest.mark.parametrize("part", [{}, {"part": ""}, {"part": "policies"}])
async def test_a_router_that_would_take_a_policy_for_its_whole_configuration_gets_none(
    tmp_path: Path, part: Mapping[str, str]
) -> None:
    router = Scripted({"CHECK": {**CHECKED, "apply": {**OUTLOOK, **part}}, "APPLY": {}, "CONFIRM-CHANGE": {}})
    (tmp_path / "all.conf").write_text("vhost { hostname: a }\n")
    async with scripted(router, tmp_path) as server:
        ran = await run("network", "policy", "push", str(tmp_path), "-b", server, "--yes")
    assert (ran.status, "APPLY" in router.operations) == (1, False)
    assert "trouter network policy push: B: its version takes no policy alone over the network\n" in ran.err


@pytest.mark.parametrize(
    ("answers", "status", "words"),
    [
        ({"APPLY": 500, "REVERT-CHANGE": 404}, 1, "every router has what it had before"),
        ({"APPLY": 409, "REVERT-CHANGE": 404}, 1, "every router has what it had before"),
        ({"APPLY": None, "REVERT-CHANGE": {}}, 1, "every router has what it had before"),
        ({"APPLY": None, "REVERT-CHANGE": None}, 1, "B may still have it"),
        ({"APPLY": {}, "CONFIRM-CHANGE": 500}, 1, "it is still open at B: internal server error: no"),
        ({"APPLY": {}, "CONFIRM-CHANGE": {}}, 0, ""),
    ],
)
async def test_a_router_that_fails_or_does_not_answer_leaves_no_doubt_about_its_state(
    tmp_path: Path, answers: Mapping[str, object], status: int, words: str
) -> None:
    router = Scripted({"CHECK": CHECKED, **answers})
    async with scripted(router, tmp_path) as server:
        ran = await run("network", "apply", str(tmp_path / "net"), "-b", server, "--timeout", "2")
    assert (ran.status, words in ran.err) == (status, True), ran.err
    assert ("apply --abandon" in ran.err) == ("open" in words or "still" in words)


def interrupted(command: Sequence[str], is_time: Callable[[], bool]) -> tuple[int, str]:
    """Run a command, send it SIGINT once it is time; return its exit status and its errors."""
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as tool:
        until(is_time)
        tool.send_signal(signal.SIGINT)
        _, err = tool.communicate(timeout=DEADLINE_S)
    return tool.returncode, err


@pytest.mark.parametrize(("operation", "is_open"), [("CHECK", False), ("APPLY", True), ("CONFIRM-CHANGE", True)])
async def test_ctrl_c_in_each_phase_says_what_is_open_and_what_ends_it(
    tmp_path: Path, operation: str, is_open: bool
) -> None:
    router = Scripted({"CHECK": CHECKED, "APPLY": {}, "CONFIRM-CHANGE": {}, operation: None})
    async with scripted(router, tmp_path) as server:
        words = ["network", "apply", str(tmp_path / "net"), "-b", server, "--timeout", str(DEADLINE_S)]
        command = [sys.executable, "-m", "trouter", *words]
        status, err = await trio.to_thread.run_sync(interrupted, command, lambda: operation in router.operations)
    assert status == 130, err
    assert ("--abandon" in err) == is_open, err
    assert "Traceback" not in err


async def test_a_change_comes_to_the_connected_router_at_last() -> None:
    routers = [ChangedRouter(name, name.startswith("E")) for name in ("A", "B", "E1", "E2")]
    orders = [
        [[each.id for each in group] for group in groups_of(routers, "A", edges_first=first)] for first in (False, True)
    ]
    assert orders == [[["B"], ["E1", "E2"], ["A"]], [["E1", "E2"], ["B"], ["A"]]]


async def test_with_secure_defaults_no_hop_may_be_without_tls() -> None:
    def answer(request: Message) -> Sequence[Message]:
        asked = request.application_properties
        if asked["operation"] == "GET-MGMT-NODES":
            return [reply(request, ["amqp:/_topo/0/B/$management"])]
        if asked["operation"] == "GET-CHANGE":
            return [reply(request, {})]
        tables: dict[str, list[dict[str, object]]] = {
            "connection": [
                {"role": "inter-router", "container": "A", "host": "192.0.2.1:5671", "isEncrypted": False},
                {"role": "inter-router", "container": "C", "host": "192.0.2.2:5671", "isEncrypted": True},
                {"role": "edge", "container": "D", "host": "127.0.0.1:5671", "isEncrypted": False, "dir": "out"},
            ],
            "router": [{"secureDefaults": True, "allowNetworkChanges": False}],
        }
        rows = tables.get(asked["entityType"].rpartition(".")[2], [])
        names: list[str] = request.body["attributeNames"]
        return [
            reply(request, {"attributeNames": names, "results": [[row.get(each) for each in names] for row in rows]})
        ]

    async with asking(ManagementServer(answer)) as node:
        (router,) = (await survey(node)).routers
    assert (router.wants_tls, router.without_tls) == (True, ("A",))


async def test_hops_between_routers_that_do_not_answer_may_be_without_tls() -> None:
    answered, silent = RouterStatus(id="A", mode="interior"), RouterStatus(id="B", mode="interior", fault="refused")
    assert NetworkStatus((answered, silent), ()).clear_hops() == []  # A tells of its connection with B
    hops = NetworkStatus((answered, silent, replace(silent, id="C")), ()).clear_hops()
    assert hops == ["perhaps those between B, C, which do not answer"]
