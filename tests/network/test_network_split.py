"""A network that splits in the middle of `trouter network apply`: what each side says, and the command that ends it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.lines import why_not
from tests.network.test_namespaces import Land
from tests.network.test_network_apply import checked_change, folder_of, outcomes, text_of
from tests.networks import client_port
from tests.routers import DEADLINE_S, ROOT
from trouter.tools.networks.applying import JointChange, Outcome

REASON = why_not()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(REASON), reason=REASON)]


@pytest.fixture
def row(tmp_path: Path) -> Iterator[Land]:
    """A, B and C in a row, on machines of their own."""
    with ExitStack() as stack:
        yield Land(tmp_path, stack, ("AB", "BC"))


@pytest.fixture
def folder(tmp_path: Path, row: Land) -> Path:
    return folder_of(tmp_path, {name: router.configuration.read_text() for name, router in row.routers.items()})


async def until_whole(land: Land) -> None:
    """Wait until A reaches C, and C reaches A: a question needs the one path, its answer the other."""
    await land.until_led("A", "C", "B")
    await land.until_led("C", "A", "B")


async def typed(land: Land, name: str, *words: str) -> tuple[int, list[str]]:
    """Type `trouter network WORDS` on the machine of a router; return the exit status and the lines."""

    def type_it() -> tuple[int, list[str]]:
        command = [sys.executable, "-m", "trouter", "network", *words, "--timeout", "60"]
        with land.inside(name):
            server = f"127.0.0.1:{client_port(land.routers[name])}"
            done = subprocess.run(
                [*command, "-b", server],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
        return done.returncode, done.stdout.splitlines()

    return await trio.to_thread.run_sync(type_it)


async def changes(land: Land, name: str) -> list[str]:
    """Return what `trouter network status` says of changes on the machine of a router, without what ends them."""
    _, lines = await typed(land, name, "status")
    return [line.partition(" is not finished: ")[2].partition("; `")[0] for line in lines if line.startswith("change ")]


@asynccontextmanager
async def change_from(land: Land, name: str, folder: Path) -> AsyncIterator[JointChange]:
    """Check the change of a folder on the machine of a router, and yield it; C is its last router."""
    async with AsyncExitStack() as stack:
        with land.inside(name):
            change = await stack.enter_async_context(checked_change(land.routers[name], folder, "C", patience_s=5))
        yield change


def news_at(land: Land, folder: Path) -> list[str]:
    """Return the routers with the new text; the others have the old one."""
    changed = []
    for name, router in land.routers.items():
        text = router.configuration.read_text()
        if text == text_of(folder, name):
            changed.append(name)
        else:
            assert text == (folder / "routers" / f"{name}.conf").read_text()
    return changed


async def test_a_change_that_all_have_is_confirmed_by_resume_once_the_network_is_whole(row: Land, folder: Path) -> None:
    async with change_from(row, "A", folder) as change:
        await change.make()
        assert change.is_made
        row.lines["BC"].cut()
        await change.confirm()
        assert outcomes(change) == {"A": Outcome.CONFIRMED, "B": Outcome.CONFIRMED, "C": Outcome.MADE}
    await row.until_lost("B", "C")
    assert await changes(row, "A") == []
    assert await changes(row, "C") == ["made at C; not open at A, B"]
    assert news_at(row, folder) == ["A", "B", "C"]
    row.lines["BC"].mend()
    await until_whole(row)
    assert await changes(row, "A") == ["made at C; not open at A, B"]
    status, lines = await typed(row, "A", "apply", str(folder), "--resume", "c1")
    assert (status, lines[-2:]) == (0, ["C: confirmed", "change c1: applied"])
    assert await changes(row, "C") == []
    assert news_at(row, folder) == ["A", "B", "C"]


async def test_a_change_whose_answer_is_lost_is_taken_back_by_abandon_once_the_network_is_whole(
    row: Land, folder: Path
) -> None:
    async with change_from(row, "A", folder) as change:
        row.lines["BC"].dead = [False, True]  # what B sends arrives, what C answers does not
        await change.make()
        assert outcomes(change) == {"A": Outcome.MADE, "B": Outcome.MADE, "C": Outcome.UNKNOWN}
        row.lines["BC"].cut()
        await row.until_lost("B", "C")
        await change.take_back()
        assert outcomes(change) == {"A": Outcome.BACK, "B": Outcome.BACK, "C": Outcome.UNKNOWN}
    assert await changes(row, "A") == []
    assert await changes(row, "C") == ["made at C; not open at A, B"]
    assert news_at(row, folder) == ["C"]
    row.lines["BC"].mend()
    await until_whole(row)
    status, lines = await typed(row, "A", "apply", str(folder))
    assert (status, "a change is open (c1 at C)" in lines[-1]) == (1, True)
    assert await typed(row, "A", "apply", "--abandon", "c1") == (0, ["C: taken back", "change c1: taken back"])
    assert await changes(row, "C") == []
    assert news_at(row, folder) == []
