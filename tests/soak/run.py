"""Soak a network of routers and write a report: `python -m tests.soak.run [--minutes N] [--rate R] [--out FOLDER]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

import trio

import trouter
from tests.chaos.sites import Site
from tests.chaos.traffic import run_blocking
from tests.chaos.worlds import World
from trouter import _twin
from trouter.config.operational import FINDING
from trouter.logs.book import KEPT

from .churn import CHURN, delete_made, node_at
from .figures import LEAST_SPAN_S, Counts, Figures, left_over
from .network import census, change_policy, network
from .pace import Soak, keep_up
from .report import write_report
from .traffic import TRAFFIC

OUT: Final = Path("build/soak")
_SAMPLE_S: Final = 5.0
_WARM_UP: Final = 1 / 6
#: Speed of the rehearsal, in multiples of the soak's default pace, and the rounds of each churn after which it ends.
_REHEARSAL_RATE: Final = 10.0
_ROUNDS: Final = 8
#: Seconds that only a hang takes.
_HANG_S: Final = 300.0
#: Seconds between two counts, and the count of looks after which objects that are left over are taken as permanent.
_LOOK_S: Final = 2.0
_LOOKS: Final = 30


async def soak(world: World, folder: Path, minutes: float, rate: float, looks: int = _LOOKS) -> Figures:
    """Rehearse, count, run the soak, and count again; write all figures to the folder as they arise.

    ``looks`` is how many counts in a row must show the same classes left over before the count ends.
    """
    with trio.fail_after(_HANG_S):
        await _rehearse(world)
        if minutes * 60 * (1 - _WARM_UP) >= LEAST_SPAN_S:
            await _fill_logs(world)
    before = await _counted_at_rest(world)
    _write(folder / "before.json", before)
    _write(folder / "about.json", _about(minutes, rate))
    going = Soak(world, rate)
    with (folder / "samples.jsonl").open("w", encoding="utf-8") as samples, trio.fail_after(minutes * 60 + _HANG_S):
        async with trio.open_nursery() as clients:
            _start(clients, going)
            await _sample(going, samples, minutes * 60)
            clients.cancel_scope.cancel()
    await _tidy_up(going)
    _write(folder / "after.json", await _counted_when_returned(world, before, looks))
    return Figures.read(folder)


def _start(nursery: trio.Nursery, going: Soak) -> None:
    for kind, clients in TRAFFIC.items():
        for client in clients:
            nursery.start_soon(keep_up, going, kind, client)
    for kind, client in CHURN.items():
        nursery.start_soon(keep_up, going, kind, client)


async def _rehearse(world: World) -> None:
    """Let every client connect, work and leave, so that the routers have made what they make on first use."""
    going = Soak(world, _REHEARSAL_RATE)
    async with trio.open_nursery() as clients:
        _start(clients, going)
        while _rounds(going) < _ROUNDS:  # noqa: ASYNC110  # counters, which many clients count up
            await trio.sleep(0.1)
        clients.cancel_scope.cancel()
    await _tidy_up(going)


async def _fill_logs(world: World) -> None:
    """Fill the log that each router keeps in memory, so that its growth up to the limit does not count as a slope."""
    async with trio.open_nursery() as reloads:
        for site in world.sites.values():
            reloads.start_soon(run_blocking, _reload_often, site)


def _reload_often(site: Site) -> None:
    for turn in range(KEPT // 2):  # each change of the policy writes two lines of log
        change_policy(site, turn)


async def _tidy_up(going: Soak) -> None:
    """Delete the entities that clients could not delete, and restore the first policy of each router by a change."""
    await delete_made(going)
    for site in going.world.sites.values():
        for turn in range(2):
            await run_blocking(change_policy, site, turn)


def _rounds(going: Soak) -> int:
    """Return how many rounds the slowest client has done."""
    return min([going.churned[kind] for kind in CHURN] + [going.received[kind] for kind in TRAFFIC])


async def _sample(going: Soak, samples: TextIO, seconds: float) -> None:
    """Sample until the time is over and each client has done at least one round."""
    began_s = time.monotonic()
    at_s = 0.0
    while at_s < seconds or not _rounds(going):
        await trio.sleep(min(_SAMPLE_S, seconds))
        at_s = time.monotonic() - began_s
        samples.write(json.dumps(_sampled(going, at_s)) + "\n")
        samples.flush()


def _sampled(going: Soak, at_s: float) -> dict[str, object]:
    sites = going.world.sites
    return {
        "at_s": round(at_s, 1),
        "resident": {name: site.router.resident_bytes() for name, site in sites.items()},
        "files": {name: site.router.open_files() for name, site in sites.items()},
        "cpu_s": {**{name: _cpu_s(site.pid) for name, site in sites.items()}, "clients": time.process_time()},
        "sent": going.sent,
        "received": going.received,
        "churned": going.churned,
        "interrupted": going.interrupted,
    }


def _cpu_s(pid: int) -> float:
    """Return the processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _count(world: World) -> Counts:
    """Count each router's objects: by type of GET-MEMORY, by Python class, and its open descriptors."""
    counts: dict[str, dict[str, int]] = {}
    for name, site in world.sites.items():
        async with node_at(world, name) as node:
            memory = {str(row["name"]): int(row["count"]) for row in await node.call_self("GET-MEMORY")}
            await node.query(FINDING.full_name)  # findings are kept from the first query until the next reload
        await trio.sleep(0.2)
        objects: dict[str, int] = json.loads(await trio.to_thread.run_sync(census, world, name))
        counts[name] = {**memory, **objects, "open descriptors": site.router.open_files()}
    return counts


async def _counted_at_rest(world: World) -> Counts:
    """Count until no class that is judged shrinks any more."""
    counts = await _count(world)
    for _ in range(_LOOKS):
        await trio.sleep(_LOOK_S)
        later = await _count(world)
        if not left_over(later, counts):
            return later
        counts = later
    return counts


async def _counted_when_returned(world: World, before: Counts, looks: int) -> Counts:
    """Count until nothing is left over, or the same classes were left over for ``looks`` counts."""
    seen: list[set[tuple[str, str]]] = []
    while True:
        counts = await _count(world)
        rest = {(each.router, each.name) for each in left_over(before, counts)}
        seen = [*seen, rest] if rest in seen else [rest]
        if not rest or len(seen) == looks:
            return counts
        await trio.sleep(_LOOK_S)


def _about(minutes: float, rate: float) -> dict[str, object]:
    return {
        "trouter": trouter.__version__,
        "twin": _twin.running(),
        "python": sys.version.split()[0],
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "minutes": minutes,
        "rate": rate,
        "warm_up_s": minutes * 60 * _WARM_UP,
        "traffic": list(TRAFFIC),
        "churn": list(CHURN),
    }


def _write(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, indent=1), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every count returned to its first value, 1 if one did not."""
    parser = argparse.ArgumentParser(prog="make soak", description="Traffic and churn for long; what is left of it?")
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default: 30)")
    parser.add_argument(
        "--rate", type=float, default=0.7, help="the pace; the default, 0.7, takes about 15 %% of a core in all"
    )
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER", help=f"for the figures (default: {OUT})")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for old in ("samples.jsonl", "before.json", "after.json", "about.json"):
        (options.out / old).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder, network(Path(folder)) as world:
        figures = trio.run(soak, world, options.out, options.minutes, options.rate)
    print(write_report(figures, options.out))
    return int(bool(figures.problems()))


if __name__ == "__main__":
    sys.exit(main())
