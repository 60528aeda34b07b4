"""Text of strangers stays on one line, short and harmless."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from trouter.records import KINDS, ManagementChange, PolicyLoaded, Record, RecordsDropped, SaslOutcomeRecord
from trouter.records.segments import numbered
from trouter.records.stream import RecordQueue
from trouter.records.text import MAX_CHARACTERS, MAX_TEXTS, clean, tidy
from trouter.telemetry.recorder import Recorder
from trouter.wire.types import Symbol, ULong

HOSTILE = [
    'a\r\n{"k":"sasl.outcome","ok":true}',
    "\x1b[31mred\x1b[0m",
    "\x9b31m",
    "line\u2028separator\u2029\x85",
    "\u202eright to left",
    "\ud800 alone",
    "\x00",
    '","ok":true,"x":"',
    "\\n",
    "x" * 100_000,
    "\x00" * 100_000,
]


def outcome(user: str) -> SaslOutcomeRecord:
    return SaslOutcomeRecord(
        conn=1, user=user, mech=user, ok=False, code=1, reason="bad-credentials", delay_us=0, plugin="sasl_plain"
    )


def kept(record: Record) -> bytes:
    recorder, stream = Recorder(), RecordQueue(lambda: None)
    recorder.add(stream)
    recorder.emit(record)
    return msgspec.json.encode(stream.take_records().records[0])


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:20])
def test_hostile_text_stays_one_harmless_line(text: str) -> None:
    line = kept(outcome(text)).decode()
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    read = json.loads(line)
    assert read["ok"] is False
    assert read["user"] == read["mech"] == clean(text)
    assert len(read["user"]) <= MAX_CHARACTERS


def test_plain_text_stays_unchanged() -> None:
    assert clean("Zoë/Ω/日本 $1") == "Zoë/Ω/日本 $1"


def test_lists_and_maps_are_cleaned_and_bounded() -> None:
    record = ManagementChange(
        conn=1,
        op="UPDATE",
        entity_type="t",
        entity_name="n",
        attrs=["\n"] * 1000,
        status=200,
        values={f"{number}\n": "\x1b" for number in range(1000)},
    )
    tidy(record)
    assert len(record.attrs) == MAX_TEXTS
    assert record.values is not None
    assert len(record.values) == MAX_TEXTS
    assert set(record.values.values()) == {"\\x1b"}
    assert "0\\n" in record.values


def test_the_rules_of_a_vhost_stay_complete() -> None:
    record = PolicyLoaded(vhost="v", rules=[f"v:g:sources:{number}" for number in range(5000)])
    tidy(record)
    assert len(record.rules) == 5000


def test_counts_by_kind_are_kept_by_tidy() -> None:
    record = RecordsDropped(reason="disk-full", from_n=1, to_n=2, count=2, by_kind={"alarm": 2})
    tidy(record)
    assert record.by_kind == {"alarm": 2}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_text_of_every_kind_is_cleaned(kind: type[Record]) -> None:
    def value(shape: object) -> object:
        return next(
            made
            for known, made in [("list[str]", ["\n"]), ("dict[str, int]", {}), ("dict[str, str]", {"\n": "\n"}),
                                ("list[int]", [1]), ("str", "\n"), ("bool", True), ("int", 1)]
            if known in str(shape)
        )  # fmt: skip

    values: dict[str, Any] = {field.name: value(field.type) for field in msgspec.structs.fields(kind)}
    record = kind(**values)
    before = msgspec.json.encode(record)
    tidy(record)
    line = msgspec.json.encode(record)
    assert b'"\\n"' not in line
    assert line.count(b'"\\\\n"') == before.count(b'"\\n"')


def test_texts_and_numbers_of_amqp_types_are_plain_in_a_line() -> None:
    record = outcome(Symbol("name"))
    record.conn = ULong(7)
    assert json.loads(numbered(3, record))["user"] == "name"
    assert json.loads(numbered(3, record))["conn"] == 7


def test_no_field_of_a_kind_hides_the_tag_of_every_record() -> None:
    for kind in KINDS.values():
        assert "tag" not in kind.__struct_fields__
