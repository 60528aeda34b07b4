"""Calls between workers: what a caller that ends leaves behind."""

from __future__ import annotations

import socket

import pytest

from trouter.workers.calls import answer_calls

pytestmark = pytest.mark.trio


@pytest.mark.parametrize("sent", [b"", b"rea"])
async def test_a_caller_that_ends_before_it_has_asked_is_no_error(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    caller, called = socket.socketpair()
    caller.send(sent)
    caller.close()
    with ours, called:
        theirs.setblocking(False)
        socket.send_fds(ours, [b"c"], [called.fileno()])
        ours.shutdown(socket.SHUT_WR)  # the parent ends too, so the calls are over once this one is
        with theirs:
            await answer_calls(theirs, {})
    assert not caplog.records
