"""The last message of a query: a spool that was put back from a backup is known by it, and no other one is refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipeline.tests.served import served
from trouter.client import Message
from trouter_pipeline.flight.access import Access
from trouter_pipeline.lasts import note, require_same
from trouter_pipeline.shards import OpenSpool, let_go, open_shards
from trouter_pipeline.spool import Spool, SpoolReplaced


def fill(folder: Path, count: int, first_us: int) -> str:
    with Spool.open(folder, segment_bytes=300, address="a") as spool:
        for number in range(count):
            spool.append(Message(b"%d" % number).encode(), ingest_us=first_us + number)
            spool.sync()
        spool.reap()
        return spool.uuid


class Query:
    """A query over one spool, in a folder or of a server."""

    def __init__(self, tmp_path: Path, place: str) -> None:
        self._checkpoint = tmp_path / "checkpoint"
        self._checkpoint.mkdir(exist_ok=True)
        self._place = place

    def _open(self) -> list[OpenSpool]:
        return open_shards([self._place])

    def note(self, upto: int) -> None:
        shards = self._open()
        note(self._checkpoint, shards, {shards[0].uuid: upto}, Access())

    def require_same(self) -> None:
        require_same(self._checkpoint, self._open(), Access())

    def let_go(self, upto: int) -> None:
        shards = self._open()
        let_go(shards, {shards[0].uuid: upto})


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    fill(tmp_path / "spool", 10, 1_000)
    return tmp_path / "spool"


@pytest.fixture(params=["folder", "server"])
def query(request: pytest.FixtureRequest, spool: Path, tmp_path: Path) -> Iterator[Query]:
    with ExitStack() as stack:
        yield Query(tmp_path, str(spool) if request.param == "folder" else stack.enter_context(served(spool)))


def test_another_message_in_the_place_of_the_last_one_is_another_spool(
    query: Query, spool: Path, tmp_path: Path
) -> None:
    shutil.copytree(spool, tmp_path / "backup")
    fill(spool, 5, 2_000)
    query.note(15)
    query.require_same()
    shutil.rmtree(spool)
    shutil.copytree(tmp_path / "backup", spool)
    query.require_same()  # it ends before that message, which reading reports
    fill(spool, 20, 3_000)
    with pytest.raises(SpoolReplaced, match=f"^message 14 of spool .* than the query of {tmp_path}/checkpoint had: "):
        query.require_same()


def test_a_spool_that_goes_on_or_moved_is_the_same_one(query: Query, spool: Path, tmp_path: Path) -> None:
    query.require_same()
    query.note(0)
    query.note(10)
    query.note(10)
    fill(spool, 5, 2_000)
    query.require_same()
    shutil.copytree(spool, tmp_path / "moved")
    shutil.rmtree(spool)
    (tmp_path / "moved").rename(spool)
    query.require_same()


def test_a_message_that_was_deleted_cannot_be_another_one(query: Query, spool: Path) -> None:
    query.note(10)
    query.let_go(10)
    fill(spool, 20, 2_000)
    query.let_go(30)
    fill(spool, 1, 3_000)
    assert len([*spool.glob("*.spool")]) < 5
    query.require_same()


def test_a_note_that_power_took_is_none(query: Query, tmp_path: Path) -> None:
    query.note(10)
    (tmp_path / "checkpoint/last-messages.json").write_bytes(b"")
    query.require_same()
    query.note(5)
    query.require_same()
