"""Emitted records reach the sinks of records."""

from __future__ import annotations

import pytest

from trouter.records import Alarm, PolicyDecision, Record
from trouter.records.stream import RecordQueue
from trouter.telemetry.recorder import Recorder


def denial(link: int) -> PolicyDecision:
    return PolicyDecision(
        conn=1, link=link, op="send", allow=False, rule="v:g:targets:none", reason="address", repeat=1
    )


def seen(stream: RecordQueue) -> list[tuple[int | None, int]]:
    return [
        (record.link, record.repeat) for record in stream.take_records().records if isinstance(record, PolicyDecision)
    ]


def test_no_taker_gets_records_that_no_taker_wants() -> None:
    recorder, stream = Recorder(), RecordQueue(lambda: None)
    assert not recorder.active
    recorder.emit(denial(1))
    recorder.add(stream)
    assert seen(stream) == []
    recorder.remove(stream)
    recorder.remove(stream)
    assert not recorder.active


def test_each_stream_gets_the_kinds_that_it_subscribed_to() -> None:
    recorder = Recorder()
    every, some = RecordQueue(lambda: None), RecordQueue(lambda: None, kinds={"alarm"})
    recorder.add(every)
    recorder.add(some)
    recorder.emit(denial(1))
    assert (len(every), len(some)) == (1, 0)


def about(tenant: str | None, vhost: str | None = None) -> PolicyDecision:
    return PolicyDecision(
        conn=1, tenant=tenant, vhost=vhost, op="open", allow=True, rule="r", reason="allowed", repeat=1
    )


@pytest.mark.parametrize(
    ("tenants", "excepted", "wanted"),
    [
        (None, (), ["acme", "other", "of acme", "nobody's", "alarm"]),
        ({"acme"}, (), ["acme", "of acme"]),
        (None, {"acme"}, ["other", "nobody's", "alarm"]),
        ({"acme", "other"}, {"acme"}, ["other"]),
    ],
)
def test_a_stream_gets_the_records_of_its_tenants(
    tenants: set[str] | None, excepted: set[str], wanted: list[str]
) -> None:
    records: dict[str, Record] = {
        "acme": about("acme"),
        "other": about("other", "main"),
        "of acme": about(None, "acme"),
        "nobody's": about(None),
        "alarm": Alarm(name="records", severity="critical", subject="acme", state="raised"),
    }
    stream = RecordQueue(lambda: None)
    stream.tenants, stream.except_tenants = tenants, excepted
    for record in records.values():
        stream.put(record)
    taken = stream.take_records().records
    assert [name for name, record in records.items() if any(each is record for each in taken)] == wanted
