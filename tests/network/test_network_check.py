"""`trouter network check` and `diff`: a folder with a file for each router, judged by the routers themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.networks import OPEN, client_port, interior, network_with_edge, wait_for_row
from tests.routers import RunningRouter, needs_workers, process, running, stopped_cleanly
from tests.tools.live import Ran, run

pytestmark = pytest.mark.slow

TWO_WORKERS = (
    f"router {{\n    id: A\n    mode: interior\n    workers: 2\n}}\nlistener {{ {OPEN}, role: inter-router }}\n"
)


@pytest.fixture
def routers(tmp_path: Path) -> Iterator[Mapping[str, RunningRouter]]:
    """Two interior routers, and an edge router at the second one."""
    with network_with_edge(tmp_path) as running_routers:
        yield running_routers


@pytest.fixture
def folder(tmp_path: Path, routers: Mapping[str, RunningRouter]) -> Path:
    """The files with which the routers run."""
    made = tmp_path / "net"
    (made / "routers").mkdir(parents=True)
    for name, router in routers.items():
        (made / "routers" / f"{name}.conf").write_text(router.configuration.read_text())
    return made


async def command(name: str, router: RunningRouter, folder: Path, *options: str) -> Ran:
    server = f"127.0.0.1:{client_port(router)}"
    return await run("network", name, str(folder), "-b", server, "--timeout", "30", *options)


def append(folder: Path, router: str, text: str) -> None:
    path = folder / "routers" / f"{router}.conf"
    path.write_text(f"{path.read_text()}\n{text}\n")


async def test_the_files_with_which_the_routers_run_change_nothing(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    ran = await command("diff", routers["A"], folder)
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines == ["A: nothing changes", "B: nothing changes", "E: nothing changes"]


async def test_what_all_have_and_what_one_has_is_named_at_each_router(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    (folder / "common.conf").write_text("address { prefix: news, distribution: multicast }")
    append(folder, "E", "address { prefix: own }")
    ran = await command("diff", routers["A"], folder)
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines == [
        "A: 1 created, 0 updated, 0 deleted",
        "  + address/0",
        "B: 1 created, 0 updated, 0 deleted",
        "  + address/0",
        "E: 2 created, 0 updated, 0 deleted",
        "  + address/0",
        "  + address/1",
    ]


async def test_an_error_is_named_by_its_file_and_line_and_nothing_is_changed(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    common, lines = folder / "common.conf", (folder / "routers" / "B.conf").read_text().count("\n")
    common.write_text("# for all\naddress { prefix: a, color: red }\n")
    append(folder, "B", "listener { prot: 1 }")
    ran = await command("check", routers["A"], folder)
    assert ran.status == 1
    assert "trouter network check: the files of 3 of 3 routers (A, B, E) are not good: nothing was changed" in ran.err
    assert [line for line in ran.lines if not line.startswith(" ")] == [
        "A: not usable, 1 error(s)", "B: not usable, 2 error(s)", "E: not usable, 1 error(s)",
    ]  # fmt: skip
    assert sum(line.startswith(f"  problem: {common}:2: address.color: unknown attribute") for line in ran.lines) == 3
    own = folder / "routers" / "B.conf"
    assert any(line.startswith(f"  problem: {own}:{lines + 2}: listener.prot: unknown attribute") for line in ran.lines)


async def test_files_that_contradict_each_other_and_routers_without_a_file_are_named(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    (folder / "routers" / "E.conf").unlink()
    (folder / "routers" / "X.conf").write_text((folder / "routers" / "A.conf").read_text())
    ran = await command("check", routers["B"], folder, "--json")
    assert ran.status == 1
    answer = json.loads(ran.out)
    assert {row["router"]: row["good"] for row in answer["routers"]} == {"A": True, "B": True, "X": False}
    assert answer["withoutFile"] == ["E"]
    texts = [row["message"] for row in answer["network"] if row["grave"]]
    assert f"{folder / 'routers' / 'X.conf'}: its router has the id A; name the file A.conf" in texts
    assert any("the router has the id A, as that of" in text for text in texts)
    absent = next(row["fault"] for row in answer["routers"] if row["router"] == "X")
    assert absent == "no router of the network that is in reach has this id"


async def test_a_folder_without_routers_is_named(tmp_path: Path) -> None:
    ran = await run("network", "check", str(tmp_path))
    assert ran.status == 2
    assert f"{tmp_path}: there is no routers/ID.conf in it, a file for each router" in ran.err
    assert (await run("network", "check", str(tmp_path / "absent"))).err.startswith(
        f"trouter network check: {tmp_path / 'absent'} is no folder"
    )


async def test_a_file_without_an_id_is_told_to_have_one_and_hidden_files_are_left_out(
    routers: Mapping[str, RunningRouter], folder: Path
) -> None:
    (folder / "routers" / "B.conf").write_text("router { mode: interior }\n")
    (folder / "routers" / ".conf").write_text("")
    (folder / "routers" / ".#A.conf").symlink_to("an editor@its host")
    ran = await command("diff", routers["A"], folder)
    assert ran.status == 1
    assert f"{folder / 'routers' / 'B.conf'}: its router has no id: write router {{ id: B }}" in ran.err
    assert [line.partition(":")[0] for line in ran.lines if not line.startswith(" ")] == ["A", "B", "E"]


async def test_what_waits_for_a_restart_is_in_the_sum(routers: Mapping[str, RunningRouter], folder: Path) -> None:
    path = folder / "routers" / "A.conf"
    path.write_text(path.read_text().replace("mode: interior,", "mode: interior, workers: 2,"))
    ran = await command("diff", routers["A"], folder)
    assert ran.lines[0] == "A: nothing changes, 1 after a restart"


async def test_an_edge_router_leads_to_all_others(routers: Mapping[str, RunningRouter], folder: Path) -> None:
    ran = await command("diff", routers["E"], folder)
    assert (ran.status, ran.err) == (0, "")
    assert ran.lines == ["A: nothing changes", "B: nothing changes", "E: nothing changes"]


@needs_workers
async def test_the_workers_of_a_router_have_one_file(tmp_path: Path) -> None:
    with process(TWO_WORKERS, tmp_path) as several:
        several.wait_for_line(r"MAIN \(notice\) 2 workers serve")
        with stopped_cleanly(several), running(interior("B", {"A": several.ports[0]}), tmp_path) as one:
            wait_for_row(one, "router.node", lambda row: row["id"] == "A.2")
            folder = tmp_path / "net"
            (folder / "routers").mkdir(parents=True)
            (folder / "routers" / "B.conf").write_text(one.configuration.read_text())
            assert (await command("diff", one, folder)).err == "trouter network diff: no file for A: left as it is\n"
            shown = await run("network", "status", "-b", f"127.0.0.1:{client_port(one)}", "--timeout", "30", "--json")
            assert {row["id"]: row["workers"] for row in json.loads(shown.out)["routers"]} == {
                "A": "2",
                "A.2": "2",
                "B": "1",
            }


@pytest.mark.parametrize("name", ["common.conf", "routers/A.conf"])
async def test_a_pipe_in_the_place_of_a_file_is_named_and_not_waited_for(tmp_path: Path, name: str) -> None:
    (tmp_path / "routers").mkdir()
    (tmp_path / "routers" / "A.conf").write_text("router { id: A }")
    path = tmp_path / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    ran = await run("network", "check", str(tmp_path))
    assert ran.status == 2
    assert f"{path} is no file with a configuration" in ran.err
