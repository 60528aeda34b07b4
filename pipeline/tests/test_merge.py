"""`trouter pipeline land --merge`: messages of spools as changes, of which the table has the last of each key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import proton
import pytest

from pipeline.tests.landed import read_with_duckdb
from pipeline.tests.test_land import fill
from trouter.client import Message, Properties
from trouter.wire.types import ULong
from trouter_pipeline.changes import ARRIVAL, Merge
from trouter_pipeline.jobs.land import Parameters, Summary, run
from trouter_pipeline.landing import NotLanded, landed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id bigint, change bigint, op string, amount double"
BY_CHANGE = Merge(keys=["id"], sequence=["change"], buckets=3)


def change(key: Any, number: Any, op: str | None = "update", amount: float | None = None) -> bytes:
    return Message(json.dumps({"id": key, "change": number, "op": op, "amount": amount}).encode()).encode()


def merge(spark: SparkSession, root: Path, *spools: Path, how: Merge = BY_CHANGE, **given: Any) -> Summary:
    named: dict[str, Any] = {"body_format": "json", "schema": COLUMNS, **given}
    return run(spark, root, Parameters(spools=list(map(str, spools)), name="t", merge=how, **named))


def rows(root: Path, what: str = "address, id, change, amount", name: str = "t") -> list[tuple[Any, ...]]:
    return sorted(read_with_duckdb(root, name, what))


def reasons(spark: SparkSession, root: Path) -> list[str]:
    return sorted(row["dead_letter"]["reason"] for row in landed(spark, root, "t", dead=True).collect())


def test_a_row_is_its_last_change_in_each_source(spark: SparkSession, tmp_path: Path) -> None:
    east, west, root = tmp_path / "east", tmp_path / "west", tmp_path / "root"
    fill(east, "e", change(1, 1, "insert", 1.0), change(2, 2, "insert", 2.0), change(1, 4, amount=4.0), change(1, 3))
    fill(west, "w", change(1, 1, "insert", 10.0), change(2, 2, "c"), change(2, 3, "d"))
    first = merge(spark, root, east, west)
    assert (first.rows, first.dead) == ({"e": 4, "w": 3}, {})
    assert rows(root) == [("e", 1, 4, 4.0), ("e", 2, 2, 2.0), ("w", 1, 1, 10.0)]
    assert rows(root, "address, id, change", "t_deleted") == [("w", 2, 3)]
    fill(east, "e", change(2, 5, "delete"), change(1, 2, amount=0.0), change(3, 6, "insert", 6.0))
    fill(west, "w", change(2, 1, "insert"), change(2, 2, "c"))
    merge(spark, root, east, west)
    assert rows(root) == [("e", 1, 4, 4.0), ("e", 3, 6, 6.0), ("w", 1, 1, 10.0)]
    assert rows(root, "address, id, change", "t_deleted") == [("e", 2, 5), ("w", 2, 3)]
    assert merge(spark, root, east, west) == Summary()
    fill(east, "e", change(1, 9))
    with pytest.raises(NotLanded, match="was landed with --merge id, and not without --merge: give the former options"):
        run(spark, root, Parameters(spools=[str(east), str(west)], name="t", body_format="json", schema=COLUMNS))


@pytest.mark.pipeline_long
def test_what_is_no_change_is_a_dead_letter_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    fill(
        spool, "e", change(1, 1), change(None, 1), change("1", 1), change(1, None), change(1, 2, "t"),
        change(1, 2, None), Message(b"").encode(), b"no message", Message(b"{").encode(),
    )  # fmt: skip
    summary = merge(spark, root, spool)
    assert (summary.rows, summary.dead) == ({"e": 1}, {"e": 8})
    assert rows(root) == [("e", 1, 1, None)]
    found = reasons(spark, root)
    assert sorted(each for each in found if "descriptor" not in each and "message" not in each) == [
        "Expected `int | null`, got `str` - at `$.id`", "Input data was truncated", "Input data was truncated",
        "the key id is null",
        "the operation null is unknown", "the operation t is unknown", "the sequence change is null",
    ]  # fmt: skip


@pytest.mark.pipeline_long
def test_a_body_of_another_kind_deletes_no_row(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"

    def of_row(number: str, body: Any, *, inferred: bool = False) -> bytes:
        return bytes(proton.Message(body, inferred=inferred, properties={"id": number}).encode())

    fill(
        spool, "e", of_row("1", b'{"amount":1}', inferred=True), of_row("1", {"amount": 2}), of_row("1", 3),
        of_row("2", b'{"amount":2}', inferred=True), of_row("2", None),
    )  # fmt: skip
    how = Merge(keys=["property:id"], buckets=1)
    summary = merge(spark, root, spool, how=how, schema="amount double")
    assert (summary.rows, summary.dead) == ({"e": 3}, {"e": 2})
    assert rows(root, "id, amount") == [("1", 1.0)]  # an empty body deleted the other one
    letters = [row["dead_letter"] for row in landed(spark, root, "t", dead=True).sort("seq").collect()]
    assert [bytes(each["message"]) for each in letters] == [of_row("1", {"amount": 2}), of_row("1", 3)]
    assert {each["application_properties"]["id"]["value"] for each in letters} == {"1"}


@pytest.mark.pipeline_long
def test_changes_of_debezium_are_opened(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"

    def event(op: str, lsn: int, before: Any, after: Any) -> dict[str, Any]:
        return {"before": before, "after": after, "op": op, "ts_ms": 1, "source": {"lsn": lsn, "table": "orders"}}

    events = [
        event("r", 10, None, {"id": 1, "state": "new"}),
        {"schema": {"type": "struct"}, "payload": event("u", 30, {"id": 1}, {"id": 1, "state": "paid"})},
        event("u", 20, {"id": 1}, {"id": 1, "state": "packed"}),
        event("c", 40, None, {"id": 2, "state": "new"}),
        event("d", 50, {"id": 2, "state": None}, None),
        {"id": 3},
    ]
    fill(spool, "orders", *(Message(json.dumps(each).encode()).encode() for each in events))
    how = Merge(keys=["id"], sequence=["source.lsn"])
    summary = merge(spark, root, spool, how=how, body_format="debezium", schema="id bigint, state string")
    assert (summary.rows, summary.dead) == ({"orders": 5}, {"orders": 1})
    assert rows(root, "id, state, op, lsn") == [(1, "paid", "u", 30)]
    assert rows(root, "id, lsn", "t_deleted") == [(2, 50)]
    assert reasons(spark, root) == ["the key id is null"]
    with pytest.raises(
        NotLanded, match=r"--sequence lsn: changes of Debezium are ordered by one or more of source.lsn"
    ):
        merge(
            spark, tmp_path, spool, how=Merge(keys=["id"], sequence=["lsn"]), body_format="debezium", schema="id bigint"
        )


@pytest.mark.pipeline_long
def test_properties_of_messages_say_what_changes_and_no_body_deletes(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"

    def letter(key: str, number: Any, body: bytes | None) -> bytes:
        return Message(body, properties=Properties(subject=key), application_properties={"n": number}).encode()

    fill(spool, "e", letter("a", 1, b"one"), letter("b", 1, b"two"), letter("b", 10, None), letter("b", 9, b"three"),
         letter("a", "x", b"four"), letter("c", ULong(1 << 63), b""))  # fmt: skip
    how = Merge(keys=["subject"], sequence=["property:n"])
    summary = merge(spark, root, spool, how=how, body_format="", schema="")
    assert (summary.rows, summary.dead) == ({"e": 5}, {"e": 1})
    assert rows(root, "subject, n::bigint, body") == [("a", 1, b"one")]
    assert rows(root, "subject, n::varchar", "t_deleted") == [("b", "10"), ("c", str(1 << 63))]
    assert reasons(spark, root) == ["the sequence n is null"]


@pytest.mark.parametrize(
    ("how", "wrong"),
    [
        (Merge(keys=["name"]), "--merge name: there is no such column; there are spool_id, .*amount"),
        (Merge(keys=["amount"]), "--merge amount: a column of type double cannot be that"),
        (Merge(keys=["id"], sequence=["property:change"]), "property:change: there is a column change already"),
        (Merge(keys=["id"], operation="kind"), "--op kind: there is no such column"),
        (Merge(keys=["id"], delete_when="op is"), "--delete-when 'op is': "),
        (Merge(keys=["id"], delete_when="gone = 1"), "--delete-when 'gone = 1': .*gone"),
    ],
    ids=["no key", "a real number", "twice", "no operation", "no condition", "no column"],
)
def test_columns_that_cannot_be_merged_by_are_refused(
    spark: SparkSession, tmp_path: Path, how: Merge, wrong: str
) -> None:
    fill(tmp_path / "spool", "e", change(1, 1))
    with pytest.raises(NotLanded, match=wrong):
        merge(spark, tmp_path / "root", tmp_path / "spool", how=how)


@pytest.mark.pipeline_long
def test_without_a_sequence_the_last_arrival_stays_and_a_condition_deletes(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    how = Merge(keys=["id"], delete_when="amount < 0")
    assert how.sequence == ARRIVAL
    fill(spool, "e", change(1, 5, amount=5.0), change(1, 4, amount=4.0), change(2, 1), change(2, 1, amount=-1.0))
    merge(spark, root, spool, how=how)
    assert rows(root) == [("e", 1, 4, 4.0)]
    assert rows(root, "id, seq", "t_deleted") == [(2, 3)]


@pytest.mark.parametrize("how", [None, BY_CHANGE], ids=["landed", "merged"])
def test_a_field_with_the_name_of_a_column_of_ours_is_refused(
    spark: SparkSession, tmp_path: Path, how: Merge | None
) -> None:
    """It would be replaced by the day of arrival."""
    fill(tmp_path / "spool", "e", change(1, 1))
    parameters = Parameters(
        spools=[str(tmp_path / "spool")], body_format="json", schema=f"{COLUMNS}, date date", merge=how
    )
    with pytest.raises(NotLanded, match="--schema: the table has a column date of its own, so that it cannot be a"):
        run(spark, tmp_path, parameters)


@pytest.mark.pipeline_long
def test_names_need_not_be_words_of_sql(spark: SparkSession, tmp_path: Path) -> None:
    spool, root = tmp_path / "spool", tmp_path / "root"
    body, properties = {"a-b": 1, "in order": 2, "select": 3}, {"the op": "c"}
    fill(spool, "e", Message(json.dumps(body).encode(), application_properties=properties).encode())
    how = Merge(keys=["a-b"], sequence=["in order"], operation="property:the op", buckets=1)
    merge(spark, root, spool, how=how, schema="`a-b` bigint, `in order` bigint, `select` bigint")
    assert rows(root, '"a-b", "in order", "select", "the op"') == [(1, 2, 3, "c")]
