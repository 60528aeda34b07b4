"""The output of `trouter stat` on a network, compared with golden files.

TROUTER_GOLDEN=write writes them anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.network.conftest import LOOKS, Ring
from tests.networks import client_port
from tests.tools.live import Ran, run, steady, without_numbers
from trouter.cli import main

GOLDEN = Path(__file__).parent / "golden"
#: Views of counters, which depend on the number of earlier requests.
IN_WORDS = {"addresses", "general-of-d"}
#: A date, and numbers that depend on the order of connections.
_VARYING = (
    (re.compile(r"(?<=Last Topology Change: ).*"), "THEN"),
    (re.compile(r"(?m)^(  [ABCD] +- +)\d\d"), r"\1N "),
    (re.compile(r"(?m)^(  [ABCD] +- +)\d\b"), r"\1N"),
    (re.compile(r" +$", re.MULTILINE), ""),
)


def settled(text: str) -> str:
    text = steady(text)
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return text


@pytest.mark.parametrize("name", LOOKS)
def test_a_view_of_the_network_equals_its_golden_file(name: str, ring: Ring) -> None:
    ran = ring.looks[name]
    assert (ran.status, ran.err) == (0, ""), ran.out
    text = settled(ran.out)
    if name in IN_WORDS:
        text = without_numbers(text)
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("TROUTER_GOLDEN") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_there_is_no_golden_file_too_many() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(LOOKS)


async def asked(ring: Ring, *options: str, of: str = "A", timeout: str = "30") -> Ran:
    return await run("stat", "-b", f"127.0.0.1:{client_port(ring.routers[of])}", "-t", timeout, *options)


async def test_the_history_shows_how_the_network_came_together(ring: Ring) -> None:
    ran = await asked(ring, "--topology")
    assert (ran.status, ran.err) == (0, "")
    assert "Topology Changes" in ran.out
    heads = next(line for line in ran.lines if "change" in line)
    assert heads.split() == ["change", "began", "took", "at", "rest", "moved", "in", "reach", "why"]
    assert re.search(r"D is in reach via [BC], cost 2 \(", ran.out)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--paths", "X", "A"], "trouter stat: A knows no router X, only A, B, C, D: is it started with this id"),
        (["--paths", "A", "X"], "trouter stat: A knows no router X, only A, B, C, D: is it started with this id"),
    ],
)
async def test_a_path_to_an_unknown_router_is_reported_with_the_known_routers(
    ring: Ring, options: list[str], said: str
) -> None:
    ran = await asked(ring, *options)
    assert (ran.status, ran.err[: len(said)]) == (1, said)


async def test_an_unknown_router_is_reported_with_the_command_to_run_next(ring: Ring) -> None:
    ran = await asked(ring, "-g", "-r", "X", timeout="3")  # on a busy machine, attaching takes a part of it
    assert ran.status == 1
    cure = "(is router X in reach? `stat -n` lists "
    assert ran.err.startswith(f"trouter stat: no answer from _topo/0/X/$management {cure}")


@pytest.mark.parametrize("options", [["-r", "B"], ["--all-routers"], ["-n"]])
def test_a_path_goes_with_no_other_choice(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["stat", "--paths", "A", "B", *options])
    assert ended.value.code == 2
    assert "--paths" in capsys.readouterr().err
