"""A worker whose sibling closes its connection, as at the end of both."""

from __future__ import annotations

from trio.testing import MockClock

from tests.connections.plays import ROUTER
from trouter.testing.player import play
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Begin, Close, Error, Open

INTERIOR = ROUTER.replace("id: R", "id: R, mode: interior")
LISTENER = """
listener {
    host: 127.0.0.1
    port: 0
    role: inter-router
    idleTimeoutSeconds: 0
    saslMechanisms: ANONYMOUS
    allowInsecureRole: yes
}
"""
BEGIN = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
FORCED = Error("amqp:connection:forced", "the router is shutting down")


async def test_edge_routers_hear_of_no_receiver_that_is_gone_until_the_sibling_is_there_again(
    mock_clock: MockClock,
) -> None:
    async with play(INTERIOR + LISTENER) as router:
        core = router.process.router
        core.network.siblings = frozenset({"R.2"})
        sibling, neighbour = router.accept(), router.accept()
        await sibling.play(AMQP_HEADER, Open("R.2", hostname="R"), BEGIN)
        await neighbour.play(AMQP_HEADER, Open("S", hostname="R"), BEGIN)
        leaving = []
        for peer in (neighbour, sibling):
            await peer.play(Close(error=FORCED))
            leaving.append(core.shared.leaving)
        await router.accept().play(AMQP_HEADER, Open("R.2", hostname="R"), BEGIN)
        assert [*leaving, core.shared.leaving] == [False, True, False]
