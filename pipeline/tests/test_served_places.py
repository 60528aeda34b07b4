"""The places of a server's readers: one that stops taking messages keeps nobody waiting."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from pyarrow import flight

from pipeline.tests.served import PATIENCE_S, signed_of
from pipeline.tests.spooled import fill, numbered
from pipeline.tests.test_source_reading import batch, rows
from trouter_pipeline.flight import protocol
from trouter_pipeline.flight.places import NoPlace, Places
from trouter_pipeline.flight.server import Settings, SpoolServer

pytestmark = pytest.mark.attack

HUGE = 40 << 20


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_the_reader_that_stopped_first_loses_its_place() -> None:
    clock, lines = Clock(), list[str]()
    places = Places(2, lines.append, stalled_s=60, now_s=clock)
    first, second = places.take("a"), places.take("b")
    clock.now_s = 59
    places.keep(first)
    with pytest.raises(NoPlace, match="2 readers are served already: try again"):
        places.take("c")
    clock.now_s = 61
    third = places.take("c")
    assert lines == ["the reader at b took no message for 61 s, and lost its place to another one"]
    places.keep(first)
    with pytest.raises(NoPlace, match="lost its place: try again"):
        places.keep(second)
    places.leave(second)
    places.leave(third)
    places.take("d")


def test_no_more_readers_lose_their_places_than_there_are() -> None:
    clock = Clock()
    places = Places(2, lambda line: None, stalled_s=60, now_s=clock)
    stopped = [places.take(name) for name in "ab"]
    for _ in stopped:
        clock.now_s += 60
        places.take("c")
    clock.now_s += 60
    with pytest.raises(NoPlace, match="2 others have stopped and keep their connections"):
        places.take("d")
    places.leave(stopped[0])
    places.take("d")


def test_a_reader_that_stops_without_closing_gives_its_place_to_the_next(tmp_path: Path) -> None:
    folder, lines = tmp_path / "orders", list[str]()
    huge = b"\0\x53\x75\xb0" + HUGE.to_bytes(4, "big") + bytes(HUGE)
    fill(folder, [*numbered(1), huge])
    settings = Settings(host="127.0.0.1", port=0, folders={"orders": folder}, readers=1, stalled_s=0)
    with SpoolServer(settings, lines.append) as server:
        url = f"grpc://127.0.0.1:{server.port}/orders"
        reader = batch(url, connectTimeoutS=str(PATIENCE_S), readParallelism="1")
        (part,) = reader.partitions()
        client = flight.connect(f"grpc://127.0.0.1:{server.port}")
        stopped = client.do_get(flight.Ticket(msgspec.json.encode(protocol.Ticket(signed_of(part), 0))))
        stopped.read_chunk()  # and no more: the other message is more than what is under way
        assert len(rows(reader, [part])) == 2
        assert [line for line in lines if "lost its place" in line]
        with pytest.raises(flight.FlightUnavailableError, match="lost its place: try again"):
            stopped.read_all()
        client.close()
