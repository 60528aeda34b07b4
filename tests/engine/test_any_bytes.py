"""Any bytes of a peer, at any point and in any pieces: the fuzz target's invariant, and bounded memory."""

from __future__ import annotations

import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz import engine
from tests.engine.talks import LIMITS, NEAR_WRAP, OPEN, attach, begin, flow, receiving, transfer
from tests.script import encode
from trouter.engine.connection import Connection
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER, frame
from trouter.wire.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Performative,
    SaslInit,
    Transfer,
)
from trouter.wire.transfers import FrequentFrames

ID = 0xFFFFFFFE
SMALL = st.integers(0, 9)
ODD_IDS = st.sampled_from([0, 1, ID - 1, ID, 0x7FFFFFFF, 0x80000000, NEAR_WRAP])
#: Frames that are valid somewhere, in any order: they reach deeper than random bytes.
FRAMES: st.SearchStrategy[Performative] = st.one_of(
    st.sampled_from([OPEN, End(), Close(), begin(), begin(remote_channel=0), begin(handle_max=0)]),
    st.builds(attach, st.sampled_from(["0", "1", "a", "no"]), SMALL, sends=st.booleans()),
    st.builds(Attach, st.just("a"), SMALL, st.booleans()),
    st.builds(Begin, next_outgoing_id=ODD_IDS, incoming_window=SMALL, outgoing_window=SMALL),
    st.builds(flow, SMALL, SMALL, handle=st.none() | SMALL, delivery_count=st.none() | ODD_IDS, link_credit=SMALL),
    st.builds(flow, SMALL, SMALL, handle=SMALL, link_credit=SMALL, drain=st.booleans(), echo=st.booleans()),
    st.builds(transfer, SMALL, handle=SMALL, more=st.booleans(), aborted=st.booleans()),
    st.builds(Transfer, SMALL, ODD_IDS, st.sampled_from([b"", b"2", b"x"]), more=st.booleans(), settled=st.booleans()),
    st.builds(Transfer, SMALL, more=st.booleans(), aborted=st.booleans()),
    st.builds(
        Disposition, st.booleans(), ODD_IDS, st.none() | ODD_IDS, st.booleans(), st.sampled_from([None, Accepted()])
    ),
    st.builds(Detach, SMALL, st.booleans()),
)
PIECES = st.one_of(
    st.builds(encode, FRAMES, st.integers(0, 3), st.just(b"")),
    st.builds(encode, FRAMES, st.just(0), st.just(b"")),
    st.just(frame(0, b"")),
    st.builds(frame, st.integers(0, 3), st.binary(max_size=20)),
    st.binary(max_size=12),
)
BEGINNINGS = {
    "client": AMQP_HEADER + encode(OPEN) + encode(begin(remote_channel=0)) + encode(attach("0", 0)),
    "server": AMQP_HEADER
    + encode(OPEN)
    + encode(begin())
    + encode(attach("a", 0))
    + encode(attach("b", 1, sends=False)),
    "sasl": SASL_HEADER + encode(SaslInit("ANONYMOUS", b"me")) + AMQP_HEADER + encode(OPEN),
    "nothing": b"",
}


@pytest.mark.fuzz
@given(
    how=st.integers(0, 15),
    cut=st.sampled_from([0, 1, 7, 50]),
    beginning=st.sampled_from(sorted(BEGINNINGS)),
    keep=st.integers(0, 400),
    pieces=st.lists(PIECES, max_size=25),
)
def test_any_frames_and_bytes_behind_any_beginning(
    how: int, cut: int, beginning: str, keep: int, pieces: list[bytes]
) -> None:
    engine.check(bytes((how, cut)) + BEGINNINGS[beginning][-keep:] + b"".join(pieces))
    engine.check(bytes((how, cut)) + BEGINNINGS[beginning] + b"".join(pieces))


@pytest.mark.fuzz
@given(how=st.integers(0, 15), pieces=st.lists(PIECES, min_size=5, max_size=40))
def test_frames_in_an_open_session(how: int, pieces: list[bytes]) -> None:
    kind = "server" if how & 1 else "client"
    engine.check(bytes((how & ~2, 0)) + BEGINNINGS[kind] + b"".join(pieces))


def test_a_peer_that_sends_and_falls_silent_has_none_of_its_octets_kept() -> None:
    frequent, reads = FrequentFrames(), []
    for _ in range(3):
        connection = Connection(LIMITS, OPEN, [], None, server=True, frequent=frequent)
        connection.receive_data(AMQP_HEADER + b"".join(map(encode, (OPEN, begin()))))
        reads.append(encode(flow()) * 1000)
        connection.receive_data(reads[-1])
        assert not connection.failed
    # the list and the loop hold each, and the shared readers the last
    own = sys.getrefcount(bytes(1000)) + 2
    assert [sys.getrefcount(read) for read in reads] == [own, own, own + 1]


@pytest.mark.parametrize("piece", [1, 100, 511, 5000])
def test_no_more_of_the_stream_is_kept_than_one_frame(piece: int) -> None:
    talk = receiving(credit=100_000)
    connection = talk.connection
    data = b"".join(
        encode(Transfer(0, (NEAR_WRAP + number) & 0xFFFFFFFF, b"t", settled=True), 0, bytes(400))
        for number in range(500)
    )
    kept = 0
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for start in range(0, len(data), piece):
        connection.receive_data(data[start : start + piece])
        connection.flush()
        connection.out.clear()
        connection.outbox.clear()
        talk.sink.calls.clear()
        talk.sink.deliveries.clear()
        talk.sink.bodies.clear()
        if start % 50_000 < piece:
            kept = max(kept, tracemalloc.get_traced_memory()[0] - before)
    tracemalloc.stop()
    assert not connection.failed
    assert connection.events == []
    assert kept < 16384 + 2 * piece + 20_000
