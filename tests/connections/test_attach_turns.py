"""A peer that attaches very many links in one write: the other tasks of the router run meanwhile."""

from __future__ import annotations

import trio

from tests.routers import PLAIN_LISTENER
from trouter.app.process import RouterProcess
from trouter.config import load
from trouter.connections.settings import EVENTS_AT_ONCE
from trouter.hooks import Plugins
from trouter.wire.framing import AMQP_HEADER, frame
from trouter.wire.performatives import Attach, Begin, Open, Performative, Source, Target, encode_performative

HANG_S = 60.0
#: More than the router reads at once.
LINKS = 4000


def write(performative: Performative) -> bytes:
    return frame(0, encode_performative(performative), 0)


async def test_others_run_between_the_answers_to_the_attaches_of_one_write(nursery: trio.Nursery) -> None:
    process = RouterProcess(load(text=PLAIN_LISTENER), Plugins.load())
    await nursery.start(process.run)
    links = process.services.hub.router.links
    before = len(links)
    port = process.listeners[0].sockets[0].getsockname()[1]
    octets = AMQP_HEADER + write(Open("peer")) + write(Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9))
    octets += b"".join(write(Attach(f"l{n}", n, True, source=Source(f"q{n}"), target=Target())) for n in range(LINKS))

    async def read() -> None:
        async for _ in stream:
            pass

    with trio.fail_after(HANG_S):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream, trio.open_nursery() as talk:
            talk.start_soon(stream.send_all, octets)
            talk.start_soon(read)
            seen, grown = before, 0
            while seen < before + LINKS:
                await trio.lowlevel.checkpoint()
                grown = max(grown, len(links) - seen)
                seen = len(links)
            talk.cancel_scope.cancel()
    assert 0 < grown <= 2 * EVENTS_AT_ONCE  # the peer's task may run twice between two turns of another
    nursery.cancel_scope.cancel()
