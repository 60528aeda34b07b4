"""The source as Spark calls it, without Spark: offsets, slices, losses, and its own receiver."""

from __future__ import annotations

import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from pipeline.tests.spooled import fill, numbered, send
from tests.routers import DEADLINE_S, PLAIN_LISTENER, ROOT, RunningRouter, running
from tests.waiting import until
from trouter_pipeline.batch_source import AmqpReader, LoadedAnew
from trouter_pipeline.decoding import FrameFault
from trouter_pipeline.embedded import ReceiverFailed
from trouter_pipeline.options import BadOption, Options, Side
from trouter_pipeline.schema import SCHEMA
from trouter_pipeline.slices import Slice, Undecodable, cut
from trouter_pipeline.spool import (
    NoCursor,
    SegmentMissing,
    Spool,
    SpoolBusy,
    SpoolCorrupt,
    SpoolError,
    SpoolGap,
    SpoolReader,
    SpoolReplaced,
)
from trouter_pipeline.spool.cursors import add_cursor
from trouter_pipeline.stream_source import SourceOf40, _Source

BAD = [b"", b"garbage", numbered(1)[0][:-1]]


def options(spool: Path | str, **more: str) -> Options:
    return Options.parse({"spool": str(spool), "receiver": "none", **more}, Side.READ)


def stream(spool: Path | str, **more: str) -> SourceOf40:
    return SourceOf40(options(spool, **more), SCHEMA)


def batch(spool: Path | str, **more: str) -> AmqpReader:
    return AmqpReader(options(spool, **more), SCHEMA)


def rows(reader: Any, parts: Sequence[Any]) -> list[dict[str, Any]]:
    """Read as on workers: only pickled objects get there."""
    found = []
    for part in parts:
        read = pickle.loads(pickle.dumps(reader.read))
        for each in read(pickle.loads(pickle.dumps(part))):
            assert isinstance(each, pa.RecordBatch)
            found += each.to_pylist()
    return found


def bodies(reader: Any, parts: Sequence[Any]) -> list[int]:
    return sorted(int(row["body"]) for row in rows(reader, parts))


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    fill(tmp_path / "spool", numbered(100))
    return tmp_path / "spool"


# --- batches over spools


def test_a_batch_read_has_all_that_the_spools_keep_in_slices_of_even_size(tmp_path: Path) -> None:
    fill(tmp_path / "s" / "0", numbered(50))
    fill(tmp_path / "s" / "1", numbered(7, first=50), shard=1)
    reader = batch(tmp_path / "s", readParallelism="4")
    parts = cast("list[Slice]", reader.partitions())
    assert [part.end - part.start for part in parts] == [12, 13, 12, 13, 1, 2, 2, 2]
    assert bodies(reader, parts) == list(range(57))
    found = rows(reader, parts)
    assert {(row["shard"], row["address"]) for row in found} == {(0, "orders"), (1, "orders")}
    assert len({row["spool_id"] for row in found}) == 2


def test_the_pickled_reader_has_no_secret(spool: Path) -> None:
    for reader in (
        batch(spool, url="amqp://u:hidden@h", password="hidden"),
        stream(spool, url="amqp://u:hidden@h", tlsKeyPassword="hidden"),
    ):
        assert b"hidden" not in pickle.dumps(reader.read)


def test_a_folder_without_a_spool_and_a_spool_invisible_to_a_worker_are_errors(spool: Path, tmp_path: Path) -> None:
    with pytest.raises(SegmentMissing, match=r"no spool is visible in .*Is the folder on this machine, or mounted"):
        batch(tmp_path / "nothing").partitions()
    reader = batch(spool)
    parts = reader.partitions()
    spool.rename(tmp_path / "elsewhere")
    with pytest.raises(SegmentMissing, match="not visible here"):
        rows(reader, parts)


def test_a_segment_that_is_not_there_is_an_error_and_not_no_rows(tmp_path: Path) -> None:
    fill(tmp_path / "s", numbered(3))
    fill(tmp_path / "s", [b"\0\x53\x75\xb0" + (3000).to_bytes(4, "big") + bytes(3000)] * 6, segment_bytes=4096)
    segments = sorted((tmp_path / "s").glob("*.spool"))
    assert len(segments) > 3
    reader = batch(tmp_path / "s", readParallelism="1")
    parts = reader.partitions()
    segments[2].unlink()
    with pytest.raises(SpoolError, match="not visible here"):
        rows(reader, parts)


def test_a_slice_of_a_spool_that_was_replaced_is_not_read(spool: Path) -> None:
    reader = batch(spool)
    parts = reader.partitions()
    shutil.rmtree(spool)
    fill(spool, numbered(100))
    with pytest.raises(SpoolReplaced, match="and the slice is of"):
        rows(reader, parts)


def test_a_large_message_is_read_up_to_the_limit_and_a_larger_one_stops_the_query(tmp_path: Path) -> None:
    large = b"\0\x53\x75\xb0" + (100 << 20).to_bytes(4, "big") + bytes(100 << 20)
    fill(tmp_path / "s", [large])
    reader = batch(tmp_path / "s", maxMessageBytes=str(len(large)))
    (part,) = reader.partitions()
    (found,) = reader.read(part)
    assert pa.compute.binary_length(found.column("body")).to_pylist() == [100 << 20]
    reader = batch(tmp_path / "s")
    (part,) = reader.partitions()
    with pytest.raises(FrameFault, match=f"message 0 has {len(large)} bytes, and maxMessageBytes is {64 << 20}"):
        list(reader.read(part))


# --- invalid messages


def test_permissive_has_a_row_for_each_bad_message(tmp_path: Path) -> None:
    fill(tmp_path / "s", [*numbered(2), *BAD, *numbered(2, first=2)])
    reader = batch(tmp_path / "s")
    found = rows(reader, reader.partitions())
    assert [row["seq"] for row in found] == list(range(7))
    assert [row["raw"] for row in found] == [None, None, *BAD, None, None]
    assert [bool(row["error"]) for row in found] == [False, False, True, True, True, False, False]


def test_failfast_names_the_first_bad_message_and_passes_nothing_over(tmp_path: Path) -> None:
    fill(tmp_path / "s", [*numbered(2), *BAD])
    reader = batch(tmp_path / "s", mode="FAILFAST", readParallelism="1")
    with pytest.raises(Undecodable, match="message 2: the message is empty"):
        rows(reader, reader.partitions())


def test_dead_letters_are_in_files_that_a_second_try_does_not_double(tmp_path: Path) -> None:
    fill(tmp_path / "s", [*numbered(2), *BAD, *numbered(2, first=2)])
    letters = tmp_path / "letters"
    reader = batch(tmp_path / "s", mode="deadletter", deadLetterPath=str(letters), readParallelism="2")
    parts = reader.partitions()
    for _ in range(2):
        assert bodies(reader, parts) == [0, 1, 2, 3]
        kept = pq.read_table(letters).sort_by("seq").to_pylist()
        assert [(row["seq"], row["raw"]) for row in kept] == list(zip((2, 3, 4), BAD, strict=True))
        assert all(row["error"] for row in kept)
    half = reader.read(parts[0])
    next(half)
    cast("Any", half).close()
    assert not [path for path in letters.iterdir() if path.name.startswith(".")]


# --- schemas


def test_some_columns_and_the_columns_of_a_body_can_be_read(tmp_path: Path) -> None:
    from trouter.client import Message

    fill(tmp_path / "s", [Message(b'{"card": "c1", "amount": 7}').encode(), b"garbage", *numbered(1)])
    some = StructType([StructField("body", BinaryType()), StructField("seq", LongType())])
    reader = AmqpReader(options(tmp_path / "s"), some)
    assert [tuple(row) for row in rows(reader, reader.partitions())] == [("body", "seq")] * 3
    letter = StructType([StructField("reason", StringType()), StructField("body", BinaryType())])
    cards = StructType(
        [StructField("seq", LongType()), StructField("card", StringType()), StructField("dead_letter", letter)]
    )
    reader = AmqpReader(options(tmp_path / "s", bodyFormat="json"), cards)
    found = rows(reader, reader.partitions())
    assert [row["card"] for row in found] == ["c1", None, None]
    assert [(row["dead_letter"] or {}).get("body") for row in found] == [None, b"garbage", b"0"]


@pytest.mark.parametrize(
    ("column", "kind", "fault"),
    [("card", StringType(), "'card' that is not the source's; is bodyFormat"), ("seq", StringType(), "seq as string")],
)
def test_a_schema_that_cannot_be_is_refused_at_once(spool: Path, column: str, kind: Any, fault: str) -> None:
    with pytest.raises(BadOption, match=fault):
        AmqpReader(options(spool), StructType([StructField(column, kind)]))


# --- streams over spools


def test_batches_of_a_stream_follow_each_other_and_stay_within_the_limit(spool: Path) -> None:
    source = stream(spool, maxRowsPerBatch="40")
    start = source.initialOffset()
    seen = []
    for _ in range(4):
        end = source.latestOffset()
        seen += bodies(source, source.partitions(start, end))
        start = end
    assert seen == list(range(100))
    assert source.latestOffset() == start
    source.stop()


def test_a_restart_reads_the_planned_batch_and_goes_on_behind_it(spool: Path) -> None:
    source = stream(spool, maxRowsPerBatch="60")
    start = source.initialOffset()
    end = source.latestOffset()
    source.stop()
    fill(spool, numbered(50, first=100))
    again = stream(spool, maxRowsPerBatch="60")
    assert bodies(again, again.partitions(start, end)) == list(range(60))
    after = again.latestOffset()
    assert bodies(again, again.partitions(end, after)) == list(range(60, 120))
    again.stop()
    settled = stream(spool, maxRowsPerBatch="60")  # everything was committed: Spark 4.0 begins with nothing
    assert settled.partitions(after, after) == []
    last = settled.latestOffset()
    assert bodies(settled, settled.partitions(after, last)) == list(range(120, 150))
    settled.stop()


def test_offsets_are_kept_for_each_shard_and_a_small_one_is_not_starved(tmp_path: Path) -> None:
    large = fill(tmp_path / "s" / "0", numbered(100))
    small = fill(tmp_path / "s" / "1", numbered(5, first=100), shard=1)
    source = stream(tmp_path / "s", maxRowsPerBatch="20")
    start = source.initialOffset()
    assert start == {large: 0, small: 0}
    end = source.latestOffset()
    assert end == {large: 15, small: 5}
    assert len(rows(source, source.partitions(start, end))) == 20
    source.stop()


def test_a_shard_that_comes_later_is_read_from_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trouter_pipeline.stream_source._LOOK_S", 0.0)
    fill(tmp_path / "s" / "0", numbered(3))
    source = stream(tmp_path / "s")
    start = source.initialOffset()
    end = source.latestOffset()
    assert bodies(source, source.partitions(start, end)) == [0, 1, 2]
    late = fill(tmp_path / "s" / "1", numbered(2, first=3), shard=1)
    after = source.latestOffset()
    assert after == end | {late: 2}
    assert bodies(source, source.partitions(end, after)) == [3, 4]
    source.stop()


def test_only_committed_messages_may_be_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    message = b"\0\x53\x75\xb0" + (3000).to_bytes(4, "big") + bytes(3000)
    uuid = fill(folder, [message] * 6, segment_bytes=4096)
    source = stream(folder)
    source.initialOffset()
    source.commit({uuid: 4})
    first = SpoolReader(folder).first
    assert 0 < first <= 4
    assert len(rows(source, source.partitions({uuid: 4}, {uuid: 6}))) == 2
    with pytest.raises(SpoolGap, match=f"begins with message {first}: messages 0 to {first - 1} are gone"):
        source.partitions({uuid: 0}, {uuid: 6})
    source.stop()


def test_a_named_cursor_is_where_a_stream_begins_and_what_its_commits_move(spool: Path) -> None:
    (uuid,) = {reader.uuid for reader in [SpoolReader(spool)]}
    add_cursor(spool, "tables")
    SpoolReader(spool, "tables").consumed(40)
    source = stream(spool, cursor="tables")
    assert source.initialOffset() == {uuid: 40}
    source.commit({uuid: 60})
    source.stop()
    assert (SpoolReader(spool, "tables").position, SpoolReader(spool).position) == (60, 0)
    assert bodies(batch(spool, cursor="tables"), batch(spool, cursor="tables").partitions()) == list(range(60, 100))
    with pytest.raises(NoCursor, match="no cursor 'tabels'"):
        stream(spool, cursor="tabels").initialOffset()
    with pytest.raises(BadOption, match="cursor is for receiver=none"):
        options(spool, cursor="tables", receiver="embedded", url="amqp://h", address="a")
    with pytest.raises(BadOption, match="cursor: '\\.\\.' is no name"):
        options(spool, cursor="..")


def test_tolerated_loss_is_reported_with_the_lost_messages(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "s"
    message = b"\0\x53\x75\xb0" + (3000).to_bytes(4, "big") + bytes(3000)
    uuid = fill(folder, [message] * 6, segment_bytes=4096)
    SpoolReader(folder).consumed(4)
    first = SpoolReader(folder).first
    source = stream(folder, failOnDataLoss="false")
    with caplog.at_level(logging.ERROR):
        assert len(rows(source, source.partitions({uuid: 0}, {uuid: 6}))) == 6 - first
    assert f"messages 0 to {first - 1} are gone, and were not read" in caplog.text
    source.stop()


@pytest.mark.parametrize("cursor", ["default", "tables"])
@pytest.mark.parametrize("kept", [0, 3])
def test_a_new_query_misses_messages_that_are_gone_before_its_cursor_passed_them(
    tmp_path: Path, cursor: str, kept: int
) -> None:
    folder = tmp_path / "s"
    message = b"\0\x53\x75\xb0" + (3000).to_bytes(4, "big") + bytes(3000)
    fill(folder, [message] * 6, segment_bytes=4096)
    if cursor != "default":
        add_cursor(folder, cursor)
    segments = sorted(folder.glob("*.spool"))
    for segment in segments[: len(segments) - kept]:
        segment.unlink()
    gone = SpoolReader(folder).first
    assert gone
    source = stream(folder, cursor=cursor)
    with pytest.raises(SpoolGap, match=f"messages 0 to {gone - 1} are gone, and were not read"):
        source.partitions(source.initialOffset(), source.latestOffset())
    source.stop()
    lenient = stream(folder, cursor=cursor, failOnDataLoss="false")
    assert len(rows(lenient, lenient.partitions(lenient.initialOffset(), lenient.latestOffset()))) == 6 - gone
    lenient.stop()


def test_a_spool_that_was_replaced_is_never_taken_for_the_old_one(
    spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = stream(spool)
    start = source.initialOffset()
    end = source.latestOffset()
    source.stop()
    shutil.rmtree(spool)
    new = fill(spool, numbered(5))
    (old,) = end
    strict = stream(spool)
    with pytest.raises(SpoolReplaced, match=f"spool {old}, .* the spool was replaced, or the checkpoint is another"):
        strict.partitions(start, end)
    strict.stop()
    lenient = stream(spool, failOnDataLoss="false")
    with caplog.at_level(logging.ERROR):
        assert lenient.partitions(start, end) == []
        after = lenient.latestOffset()
        lenient.latestOffset()
    assert after == {new: 5}
    assert bodies(lenient, lenient.partitions(end, after)) == [0, 1, 2, 3, 4]
    assert 1 <= caplog.text.count("was replaced") <= 2
    lenient.stop()


def test_a_spool_that_ends_before_the_read_offset_is_an_error(spool: Path) -> None:
    uuid = SpoolReader(spool).uuid
    source = stream(spool)
    assert source.partitions({uuid: 150}, {uuid: 150}) == []
    with pytest.raises(SpoolGap, match="ends before message 100, and was read up to 150 before"):
        source.latestOffset()
    source.stop()


# --- with a receiver of its own


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with running(PLAIN_LISTENER, tmp_path_factory.mktemp("router")) as started:
        yield started


def embedded(router: RunningRouter, folder: Path, address: str, **more: str) -> Options:
    given = {"url": f"amqp://127.0.0.1:{router.port}", "address": address, "spool": str(folder), **more}
    return Options.parse(given, Side.READ)


def test_a_batch_with_a_receiver_keeps_its_messages_when_planned_again(router: RunningRouter, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    sender = threading.Thread(target=send, args=(f"127.0.0.1:{router.port}", "batched", 25))
    sender.start()
    few = embedded(router, folder, "batched", maxMessages="10", idleTimeoutMs="2000")
    first = AmqpReader(few, SCHEMA, "one")
    parts = first.partitions()
    assert bodies(first, AmqpReader(few, SCHEMA, "one").partitions()) == list(range(10))  # as Spark 4.0 plans
    assert bodies(first, parts) == bodies(first, parts) == list(range(10))
    second = AmqpReader(embedded(router, folder, "batched", maxMessages="1000", idleTimeoutMs="2000"), SCHEMA, "two")
    others = second.partitions()
    sender.join(DEADLINE_S)
    assert bodies(second, others) == list(range(10, 25))
    assert bodies(first, parts) == list(range(10))
    assert bodies(batch(folder), batch(folder).partitions()) == list(range(25))
    with pytest.raises(LoadedAnew, match="for a later one was loaded"):
        AmqpReader(few, SCHEMA, "one").partitions()
    assert bodies(second, AmqpReader(few, SCHEMA, "two").partitions()) == list(range(10, 25))


def test_no_messages_are_no_rows(router: RunningRouter, tmp_path: Path) -> None:
    reader = AmqpReader(embedded(router, tmp_path / "s", "nobody", idleTimeoutMs="100"), SCHEMA, "one")
    assert reader.partitions() == []
    assert list(reader.read(None)) == []


def test_a_reader_that_lost_its_batch_file_names_the_file_and_the_remedy(router: RunningRouter, tmp_path: Path) -> None:
    Spool.open(tmp_path, address="batched").close()
    (tmp_path / "batch.json").write_text('{"spool": ')
    reader = AmqpReader(embedded(router, tmp_path, "batched"), SCHEMA)
    with pytest.raises(SpoolCorrupt, match=r"batch\.json, offset 0: .*; delete it, and all messages of the spool come"):
        reader.partitions()


def test_a_stream_receives_between_batches_and_settles_at_its_end(router: RunningRouter, tmp_path: Path) -> None:
    source = cast("_Source", SourceOf40(embedded(router, tmp_path / "s", "streamed"), SCHEMA))
    start = source.initialOffset()
    (uuid,) = start
    send(f"127.0.0.1:{router.port}", "streamed", 20)
    end = cast("SourceOf40", source).latestOffset()
    assert end == {uuid: 20}
    assert bodies(source, source.partitions(start, end)) == list(range(20))
    with pytest.raises(SpoolBusy, match=f"{os.getpid()}"):
        Spool.open(tmp_path / "s")
    source.commit(end)
    source.stop()
    Spool.open(tmp_path / "s").close()


def test_an_available_now_waits_until_no_more_come_and_reads_just_that(router: RunningRouter, tmp_path: Path) -> None:
    source = SourceOf40(embedded(router, tmp_path / "s", "now", idleTimeoutMs="5000"), SCHEMA)
    start = source.initialOffset()
    sender = threading.Thread(target=send, args=(f"127.0.0.1:{router.port}", "now", 30))
    sender.start()
    source._settle_on_target()
    sender.join(DEADLINE_S)
    send(f"127.0.0.1:{router.port}", "now", 5, first=30)
    end = source.latestOffset()
    assert bodies(source, source.partitions(start, end)) == list(range(30))
    assert source.latestOffset() == end
    source.stop()


def test_the_failure_of_the_receiver_is_the_error_of_the_query(tmp_path: Path) -> None:
    text = "router { id: R }\nlistener { host: 127.0.0.1, port: 0, authenticatePeer: yes, saslMechanisms: PLAIN }\n"
    with running(text, tmp_path) as strict:
        given = {"url": f"amqp://127.0.0.1:{strict.port}", "address": "a", "spool": str(tmp_path / "s")}
        source = SourceOf40(Options.parse(given | {"user": "u", "password": "hidden"}, Side.READ), SCHEMA)

        def offsets() -> None:
            source.initialOffset()  # raises the error itself if the receiver has failed by then
            until(lambda: source._receiver is not None and source._receiver._failure is not None)
            source.latestOffset()

        with pytest.raises(ReceiverFailed, match="receiving from a failed") as failure:
            offsets()
        assert "hidden" not in str(failure.value)
        source.stop()
        reader = AmqpReader(
            Options.parse({**given, "url": "amqp://127.0.0.1:1", "connectTimeoutS": "0.3"}, Side.READ), SCHEMA
        )
        with pytest.raises(
            ReceiverFailed, match=r"no link to a: cannot connect to amqp://127.0.0.1:1: Connection refused"
        ):
            reader.partitions()


SOURCE = """
import os, sys, time
from pathlib import Path
from trouter_pipeline.options import Options, Side
from trouter_pipeline.schema import SCHEMA
from trouter_pipeline.stream_source import SourceOf40

url, folder = sys.argv[1:]
given = {"url": url, "address": "ended", "spool": folder, "lingerMs": "60000"}
source = SourceOf40(Options.parse(given, Side.READ), SCHEMA)
source.initialOffset()
print("up", flush=True)
while not source._spool.frames.count:
    time.sleep(0.01)
parent = os.getppid()
print("came", flush=True)
while os.getppid() == parent:  # a read would not be woken by a signal that comes just before it
    time.sleep(0.01)
"""


def test_sigterm_settles_received_messages(router: RunningRouter, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SOURCE, f"amqp://127.0.0.1:{router.port}", str(tmp_path / "s")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        sender = threading.Thread(target=send, args=(f"127.0.0.1:{router.port}", "ended", 1))
        sender.start()
        assert process.stdout.readline() == b"came\n"
        assert sender.is_alive()  # because it lingers for a minute
        process.send_signal(signal.SIGTERM)
        sender.join(DEADLINE_S)
        assert not sender.is_alive()
        assert process.wait(DEADLINE_S) == -signal.SIGTERM
    assert bodies(batch(tmp_path / "s"), batch(tmp_path / "s").partitions()) == [0]


def test_a_range_is_cut_by_its_messages_unless_a_number_is_given(tmp_path: Path) -> None:
    fill(tmp_path / "s", numbered(1))
    with closing(SpoolReader(tmp_path / "s")) as shard:
        cases = ((1, 0, 1), (3, 0, 2), (100_000, 0, 2), (100_001, 0, 3), (1_000_000, 0, 20), (9, 4, 4))
        for count, parts, slices in cases:
            found = list(cut(shard, 7, 7 + count, parts))
            assert len(found) == slices
            assert [each.start for each in found] == [7, *(each.end for each in found[:-1])]
            assert found[-1].end == 7 + count
