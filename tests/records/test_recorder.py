"""What is emitted reaches whoever takes records."""

from __future__ import annotations

from trouter.net.recorder import Recorder
from trouter.records import PolicyDecision
from trouter.records.stream import Stream


def denial(link: int) -> PolicyDecision:
    return PolicyDecision(
        conn=1, link=link, op="send", allow=False, rule="v:g:targets:none", reason="address", repeat=1
    )


def told(stream: Stream) -> list[tuple[int | None, int]]:
    return [(record.link, record.repeat) for record in stream.take().records if isinstance(record, PolicyDecision)]


def test_nobody_is_told_of_what_nobody_takes() -> None:
    recorder, stream = Recorder(), Stream(lambda: None)
    assert not recorder.active
    recorder.emit(denial(1))
    recorder.add(stream)
    assert told(stream) == []
    recorder.remove(stream)
    recorder.remove(stream)
    assert not recorder.active


def test_each_taker_has_the_kinds_that_it_wants() -> None:
    recorder = Recorder()
    every, some = Stream(lambda: None), Stream(lambda: None, kinds={"alarm"})
    recorder.add(every)
    recorder.add(some)
    recorder.emit(denial(1))
    assert (len(every), len(some)) == (1, 0)
