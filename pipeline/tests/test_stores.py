"""Tables in an object store: moto's S3, two writers at once, and a store that fails."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from traceback import TracebackException

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from pipeline.tests.readers import Readers
from pipeline.tests.stores import BUCKET, SECRET, Store, running
from trouter_pipeline.delta import BadTable, Folder
from trouter_pipeline.files import TableBusy
from trouter_pipeline.places import BadPlace, Place, Unreached
from trouter_pipeline.tables import Table

pytestmark = pytest.mark.one_twin

WRONG = f"{SECRET}-of-somebody-else"
FIRST, SECOND = date(2026, 3, 1), date(2026, 3, 2)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with running() as found:
        yield found


@pytest.fixture(autouse=True)
def _recovered(store: Store) -> Iterator[None]:
    yield
    store.recovers()


def rows(*values: tuple[date, int]) -> pa.Table:
    return pa.table({"date": pa.array([day for day, _ in values], pa.date32()), "value": [n for _, n in values]})


def commit(root: Place, days: Sequence[date], *values: tuple[date, int], table: Table | None = None) -> Table:
    table = table or Table(root, "numbers")
    table.commit(rows(*values), days, inputs={}, job="numbers", version=1, parameters={})
    return table


def values(root: Place, at: int | None = None) -> list[tuple[date, int]]:
    found = Table(root, "numbers", at).rows()
    return sorted(zip(found["date"].to_pylist(), found["value"].to_pylist(), strict=True))


def test_days_are_replaced_and_former_versions_stay(store: Store) -> None:
    root = store.root("days")
    commit(root, [FIRST, SECOND], (FIRST, 1), (SECOND, 2))
    commit(root, [SECOND], (SECOND, 3), (SECOND, 4))
    assert values(root) == [(FIRST, 1), (SECOND, 3), (SECOND, 4)]
    assert values(root, 1) == [(FIRST, 1), (SECOND, 2)]
    uri = f"s3://{BUCKET}/days/tables/numbers"
    assert sorted(DeltaTable(uri, storage_options=store.options).to_pyarrow_table()["value"].to_pylist()) == [1, 3, 4]
    seen = pl.scan_delta(uri, storage_options=store.plain, version=1).collect()
    assert sorted(seen["value"].to_list()) == [1, 2]


def test_partitions_with_any_text_are_read_by_everybody(store: Store) -> None:
    from trouter_pipeline.parquet import write

    names = ["changes/east", "a b", "ü", "50%", None]
    place = Folder(store.root("texts"))
    version = place.create({"address": "string", "n": "long"}, ("address",))
    frame = pa.table({"address": names, "n": pa.array(range(len(names)), pa.int64())})
    with place.staged() as staged:
        files = place.place(staged, write(frame, staged, ("address",)))
    later = place.commit(version, files, (), {}, shown="texts")
    assert sorted(file.path for file in later.files) == sorted(file.path for file in files)
    assert {file.partition[0] for file in later.files} == set(names)
    seen = pl.scan_delta(f"s3://{BUCKET}/texts", storage_options=store.plain).collect()
    assert dict(zip(seen["n"], seen["address"], strict=True)) == dict(enumerate(names))
    assert [later.rows(file)["n"].to_pylist() for file in later.files] == [
        [names.index(f.partition[0])] for f in later.files
    ]


def _append(root: Place, number: int) -> int:
    """Add one row to a table that others write as well; return its version."""
    from trouter_pipeline.parquet import write

    place = Folder(root)
    version = place.create({"writer": "long", "n": "long"}, ("writer",))
    for n in range(5):
        frame = pa.table({"writer": pa.array([number], pa.int64()), "n": pa.array([n], pa.int64())})
        with place.staged() as staged:
            files = place.place(staged, write(frame, staged, ("writer",)))
        version = place.commit(version, files, (), {"n": n}, shown="append")
    return version.number


def test_writers_at_once_lose_nothing_and_each_version_is_one_of_them(store: Store) -> None:
    root = store.root("appended")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert max(pool.map(_append, [root, root], [1, 2])) == 10
    last = Folder(root).version()
    assert last is not None
    assert last.number == 10
    found = pa.concat_tables([last.rows(f).append_column("writer", pa.array([f.partition[0]])) for f in last.files])
    assert sorted(zip(found["writer"].to_pylist(), found["n"].to_pylist(), strict=True)) == [
        (writer, n) for writer in "12" for n in range(5)
    ]


def test_of_two_jobs_on_one_day_one_is_refused_and_leaves_no_file(store: Store) -> None:
    root = store.root("busy")
    commit(root, [FIRST], (FIRST, 1))
    one, other = Table(root, "numbers"), Table(root, "numbers")
    assert one.version() is not None
    assert other.version() is not None
    commit(root, [FIRST], (FIRST, 2), table=one)
    before = store.keys("busy")
    with pytest.raises(TableBusy, match=f"s3://{BUCKET}/busy/tables/numbers was changed meanwhile, by version 2"):
        commit(root, [FIRST], (FIRST, 3), table=other)
    assert store.keys("busy") == before
    assert values(root) == [(FIRST, 2)]


def test_an_answer_that_is_lost_after_the_commit_is_no_conflict(store: Store) -> None:
    root = store.root("unheard")
    commit(root, [FIRST], (FIRST, 1))
    store.fails(method="PUT", holding="_delta_log/00000000000000000002.json", times=1, done=True)
    commit(root, [FIRST], (FIRST, 2))
    assert values(root) == [(FIRST, 2)]


@pytest.mark.parametrize("holding", ["_delta_log/00000000000000000002.json", "date=2026-03-01"])
def test_a_store_that_does_not_answer_writes_nothing_that_is_seen(store: Store, holding: str) -> None:
    root = store.root(f"away-{'log' if 'log' in holding else 'file'}")
    commit(root, [FIRST], (FIRST, 1))
    store.fails(method="*", holding=holding, times=1000)
    with pytest.raises(Unreached, match="the store does not answer as it should: run the command again") as caught:
        commit(root, [FIRST], (FIRST, 2))
    assert f"s3://{BUCKET}/away-" in str(caught.value)
    assert "503" in str(caught.value)
    store.recovers()
    assert values(root) == [(FIRST, 1)]
    commit(root, [FIRST], (FIRST, 2))
    assert values(root) == [(FIRST, 2)]


def test_a_store_that_fails_for_a_moment_is_asked_again(store: Store) -> None:
    root = store.root("moment")
    store.fails(method="*", holding="", times=2)
    commit(root, [FIRST], (FIRST, 1))
    assert values(root) == [(FIRST, 1)]


def test_a_bucket_that_is_missing_is_named_with_the_cure(store: Store) -> None:
    root = Place.of("s3://nowhere/pipeline", store.options)
    for act in (lambda: Table(root, "numbers").version(), lambda: commit(root, [FIRST], (FIRST, 1))):
        with pytest.raises(Unreached, match="s3://nowhere/pipeline/tables/numbers: there is no such bucket: create it"):
            act()


def test_wrong_credentials_are_named_with_the_cure_and_without_the_secret(store: Store) -> None:
    commit(store.root("guarded"), [FIRST], (FIRST, 1))
    root = store.root("guarded", aws_access_key_id="somebody-else", aws_secret_access_key=WRONG)
    for act in (lambda: Table(root, "numbers").version(), lambda: commit(root, [FIRST], (FIRST, 2))):
        with pytest.raises(Unreached, match="access is denied: correct the storage options") as caught:
            act()
        shown = TracebackException.from_exception(caught.value, capture_locals=True)
        assert WRONG not in "".join(shown.format())
    assert values(store.root("guarded")) == [(FIRST, 1)]


def test_http_must_be_allowed(store: Store) -> None:
    with pytest.raises(Unreached, match="give the storage option aws_allow_http=true"):
        Table(store.root("plain", aws_allow_http="false"), "numbers").version()


def test_a_file_that_was_vacuumed_is_named(store: Store) -> None:
    root = store.root("gone")
    commit(root, [FIRST], (FIRST, 1))
    table = commit(root, [FIRST], (FIRST, 2))
    (left,) = [key for key in store.keys("gone") if key.endswith("parquet")][:1]
    assert len(table.place.vacuum(0, really=False)) == 1
    assert left in store.keys("gone")
    assert len(table.place.vacuum(0, really=True)) == 1
    assert values(root) == [(FIRST, 2)]
    with pytest.raises(BadTable, match="version 1 names this file, but it does not exist; it may have been vacuumed"):
        values(root, 1)


def test_the_calling_thread_alone_reads_a_parquet_file(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    readers = Readers(monkeypatch)
    place = store.root("alone") / "many.parquet"
    made = pa.table({f"column-{n}": pa.array(range(3000)) for n in range(40)})
    with place.output() as file:
        pq.write_table(made, file, row_group_size=1000)
    with place.parquet() as opened:
        assert opened.names == made.column_names
        assert opened.metadata.num_row_groups == 3
        assert opened.read() == made
        assert opened.read(["column-7"]) == made.select(["column-7"])
        assert opened.read_group(1) == made.slice(1000, 1000)
        assert pa.Table.from_batches(opened.batches(["column-3"])) == made.select(["column-3"])
    assert readers.opened == 1
    assert readers.threads == {threading.main_thread().name}
    del opened
    assert not readers.held


def test_the_columns_of_a_small_file_are_not_asked_for_one_by_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = Readers(monkeypatch)
    place = store.root("few") / "many.parquet"
    with place.output() as file:
        pq.write_table(pa.table({f"column-{n}": pa.array(range(300)) for n in range(40)}), file)
    with place.parquet() as opened:
        assert opened.read().num_columns == 40
    assert readers.reads == 2  # the footer, and all rows


def test_secrets_are_in_no_text_of_a_place_and_in_no_file_of_a_table(store: Store) -> None:
    root = store.root("secret")
    commit(root, [FIRST], (FIRST, 1))
    assert SECRET not in f"{root} {root!r} {Table(root, 'numbers').folder!r}"
    assert not [key for key in store.keys("secret") if SECRET.encode() in store.get(key)]
    assert pickle.loads(pickle.dumps(root)) == root  # for the tasks of Spark, which need it


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hdfs://host/x", "hdfs:// is no place for tables"),
        ("s3://key:secret@lake/x", "give credentials by storage options"),
        ("s3://lake/x?token=1", "give credentials by storage options"),
        ("s3:///x", "write s3://BUCKET/PATH"),
        ("file://host/x", "write file:///PATH"),
    ],
)
def test_other_uris_are_refused_without_showing_them(text: str, why: str) -> None:
    with pytest.raises(BadPlace, match=why) as caught:
        Place.of(text)
    assert "secret" not in str(caught.value)
    assert "token=" not in str(caught.value)


def test_writers_that_overwrite_each_other_are_refused() -> None:
    with pytest.raises(BadPlace, match="two writers would overwrite each other's versions"):
        Place.of("s3://lake/x", {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"})


def test_options_of_the_environment_count_and_given_ones_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://here")
    options = Place.of("s3://lake/x", {"AWS_REGION": "us-east-1"}).storage_options
    assert options is not None
    assert options["aws_region"] == "us-east-1"
    assert options["aws_endpoint_url"] == "http://here"
    assert options["aws_conditional_put"] == "etag"


def test_workers_that_write_into_a_folder_need_no_deltalake() -> None:
    code = "import sys; import trouter_pipeline.parquet; assert 'deltalake' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_uri_is_a_folder(tmp_path: Path) -> None:
    root = Place.of(f"file://{tmp_path}/a%20b")
    commit(root, [FIRST], (FIRST, 1))
    assert (tmp_path / "a b" / "tables" / "numbers").is_dir()
    assert values(root) == [(FIRST, 1)]
