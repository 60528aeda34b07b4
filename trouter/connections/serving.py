"""One connection: its nursery, its events, and its end.

The poller reads and routes (``stream``). A task of the nursery handles the rare events, and nothing more is read until
it has; the others run beside it, as those of an edge router's sessions that wait for answers. Whatever ends the
connection cancels the nursery's scope, and with it all tasks; then the router sends its close.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SessionBegun,
    SessionEnded,
)
from trouter.telemetry.refusals import TIMEOUT

from .membership import Membership
from .peer import Peer
from .peer_login import LoginFailed


async def serve(
    make_peer: Callable[[trio.CancelScope], Peer], beside: Callable[[Peer], Awaitable[None]] | None = None
) -> None:
    """Serve the connection that ``make_peer`` makes in its scope, until it ends and all that it had is released.

    A bug of ours in what its tasks do closes it with ``amqp:internal-error``; one in its end is raised.

    ``beside`` runs in one more task.
    """
    peer: Peer | None = None
    try:
        try:
            async with trio.open_nursery() as nursery:
                peer = make_peer(nursery.cancel_scope)
                del make_peer  # and what only the making needed
                if beside is not None:
                    nursery.start_soon(beside, peer)
                await _obey(peer, nursery)
                nursery.cancel_scope.cancel()
        except* Exception as bugs:  # a bug in the handling of an event: the peer gets a close
            if peer is None:
                raise
            peer.lifetime.end_after_bug(bugs)
        if peer is not None:
            await _close_connection(peer)
    finally:
        if peer is not None:
            peer.release_all()


async def _obey(peer: Peer, nursery: trio.Nursery) -> None:
    """Handle the events of a connection until it is over."""
    stream, engine = peer.stream, peer.engine
    peer.hub.flush()  # the first octets of an outgoing connection
    if peer.security.began_s is None or not peer.settings.one_handshake:
        _restart_handshake(peer)
    else:
        peer.lifetime.scope.deadline = peer.security.began_s + peer.settings.handshake_timeout_s
    await _receive_early(peer, nursery)
    while not (engine.finished or stream.gone):  # the poller reads; its events are handled in between
        stream.begin_reading()
        await trio.lowlevel.wait_task_rescheduled(stream.stop_waiting)
        await _handle_events(peer, nursery)
        await stream.wait_for_room()
    if peer.membership is not None:
        await peer.membership.sessions.wait_for_answers()


async def _close_connection(peer: Peer) -> None:
    """Close a connection whose tasks have ended, unless its peer has gone; settle its links and deliveries."""
    lifetime, stream, engine = peer.lifetime, peer.stream, peer.engine
    if lifetime.opened and not (stream.gone or engine.finished) and trio.current_time() >= peer.login.expires_at_s:
        lifetime.end_expired()
    if not (lifetime.opened or stream.gone or lifetime.is_ending or engine.finished):
        lifetime.note_refusal(TIMEOUT)
        lifetime.log_failure(f"timed out: no open within {peer.settings.handshake_timeout_s:g} s")
    elif not stream.gone:
        engine.close(lifetime.close_error)
        peer.hub.flush()
    if peer.membership is not None:
        await _lose_in_turns(peer, peer.membership)
    if not stream.gone:
        await stream.close_after_reading()


async def _lose_in_turns(peer: Peer, membership: Membership) -> None:
    """Lose the links of a connection that has ended, with turns for other connections in between."""
    hub, turns, share = peer.hub, peer.poller.turns, peer.stream.share
    began_s = await turns.take(share)
    for lose in membership.remaining_loss(peer):
        lose()
        if turns.lasts_long(began_s):
            hub.flush()
            began_s = await turns.give_way(share, began_s)
    hub.flush()
    turns.end(share, began_s)


async def _receive_early(peer: Peer, nursery: trio.Nursery) -> None:
    """Process the bytes that were read before the peer was made."""
    peer.hub.update_clock()
    if peer.stream.receive_early(peer.security.early):
        peer.hub.flush()
        await _handle_events(peer, nursery)
        await peer.stream.wait_for_room()


async def _handle_events(peer: Peer, nursery: trio.Nursery) -> None:
    """Handle the events in turns of the peer's user, and what else was read with them.

    Before its open a peer waits for no further turn than that in which it was made; what it costs is its host's.
    """
    engine, stream, turns = peer.engine, peer.stream, peer.poller.turns
    while engine.events:
        share = stream.share
        began_s = turns.now() if peer.membership is None else await turns.take(share)
        while engine.events:
            events = engine.events[:]
            engine.events.clear()
            for event in events:
                if turns.is_over(began_s):
                    peer.hub.flush()
                    began_s = await turns.give_way(share, began_s)
                if peer.lifetime.is_ending:  # everything is ignored
                    continue
                if peer.membership is None and not isinstance(event, ConnectionOpened | ConnectionClosed):
                    turns.end(share, began_s)  # a login may wait for a plugin
                    await _log_in(peer, event)
                    began_s = turns.now()
                else:
                    await _handle(peer, event, nursery)
            peer.hub.flush()
        turns.end(share, began_s)
        if engine.has_more and not stream.gone:
            await trio.lowlevel.checkpoint()
            await stream.wait_for_room()
            began_s = await turns.take(share)
            stream.receive_rest()
            turns.end(share, began_s)


async def _handle(peer: Peer, event: Event, nursery: trio.Nursery) -> None:
    """Handle any event that is not of the login."""
    membership = peer.membership
    if isinstance(event, ConnectionOpened):
        peer.answer_open(event.open)
    elif isinstance(event, ConnectionClosed):
        peer.note_close(event)
    elif membership is not None:
        await _handle_request(peer, membership, event, nursery)


async def _handle_request(peer: Peer, membership: Membership, event: Event, nursery: trio.Nursery) -> None:
    if isinstance(event, LinkAttached):
        await membership.sessions.answer_link_event(event, nursery)
    elif isinstance(event, LinkDetached):
        _note_detach(peer, event, membership)
        if not peer.lifetime.is_ending:
            await membership.sessions.answer_link_event(event, nursery)
    elif isinstance(event, SessionBegun):
        membership.sessions.answer_begin(event.session, ours=event.begin.remote_channel is not None)
    elif isinstance(event, SessionEnded):
        await membership.sessions.answer_session_end(event)


async def _log_in(peer: Peer, event: Event) -> None:
    """Answer an event of the login; then the peer's input goes on."""
    try:
        with peer.stream.noticing_absence():
            goes_on = await peer.login.take_step(event)
    except LoginFailed as failed:
        peer.stream.lose_peer(str(failed))
        return
    if not (peer.login.outgoing or peer.settings.one_handshake):
        _restart_handshake(peer)
    if goes_on:
        peer.hub.update_clock()
        if peer.login.outgoing:
            peer.engine.open()
        peer.engine.receive_data(b"")


def _restart_handshake(peer: Peer) -> None:
    """Let the peer's time until its open begin now."""
    peer.lifetime.scope.deadline = trio.current_time() + peer.settings.handshake_timeout_s


def _note_detach(peer: Peer, event: LinkDetached, membership: Membership) -> None:
    """End a dialled connection if the peer detached the control link: without it the connection is useless."""
    trunk = membership.trunk
    if peer.login.outgoing and trunk is not None and trunk.is_control(event.link.sink):
        why = "for no reason" if event.error is None else f"{event.error.condition} {event.error.description or ''}"
        peer.lifetime.end_unusable(
            f"the peer refuses links between routers ({why.rstrip()}): is its listener's role inter-router?"
        )
