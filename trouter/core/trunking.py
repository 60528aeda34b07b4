"""Links between routers, attached by us or by the neighbour (inter-router.md 1.3-1.6)."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from typing import Final

from trouter.engine.link import IncomingLink, OutgoingLink, add_link
from trouter.engine.link_base import Link
from trouter.engine.session import Session
from trouter.wire.performatives import Attach, Error, Source, Target

from .arrival import DEFAULT_PRIORITY
from .egress import Egress
from .ingress import Ingress
from .links import LinkOptions, attach_link, make_incoming, make_outgoing, make_receiver
from .network import PRIORITIES, Trunk
from .readers import every
from .routerport import RouterPort
from .streams import StreamPool
from .terms import PeerTerms

CONTROL: Final = "qd.router"
DATA: Final = "qd.router-data"
#: A data link for unfinished messages; its attach is like that of other data links.
STREAM: Final = "stream"

#: The largest control message, in bytes; larger ones are discarded.
MAX_CONTROL_BYTES: Final = 16 * 1024 * 1024
#: Data links of a neighbour, streams included.
MAX_DATA_LINKS: Final = 512

CONNECTION_ROLE: Final = Error("qd:connection-role", "Link attach forbidden on inter-router connection")
TOO_MANY: Final = Error("amqp:resource-limit-exceeded", f"a neighbour has no more than {MAX_DATA_LINKS} data links")
ONE_CONTROL: Final = Error("amqp:not-allowed", "there is one control link in each direction")

_NAME_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+_"


def capability_of(attach: Attach) -> str:
    """Return the router's capability in our terminus of the attach; empty for none."""
    terminus = attach.source if attach.role else attach.target
    capabilities = terminus.capabilities if isinstance(terminus, Source | Target) else ()
    return next((each for each in (CONTROL, DATA) if each in capabilities), "")


def answer(router: RouterPort, link: Link, trunk: Trunk, wanted: Attach, capacity: int) -> Error | None:
    """Accept a link of a neighbour; return the error if it is refused."""
    kind = capability_of(wanted)
    taken = trunk.control_in if link.incoming else trunk.control_out
    if kind == CONTROL and taken is not None:
        return ONE_CONTROL
    if kind == DATA and (trunk.data_in if link.incoming else trunk.data_out) >= MAX_DATA_LINKS:
        return TOO_MANY
    _make_endpoint(router, link, trunk, kind, capacity)
    attach_link(link, wanted.source, wanted.target)
    _begin(router, link, trunk)
    return None


def begin_links(router: RouterPort, trunk: Trunk, sessions: list[Session], capacity: int) -> None:
    """Attach our links in the order that gives them their priorities; ``sessions`` are ours, one for each pair.

    There are 1 + ``PRIORITIES`` of them.
    """
    for place, session in enumerate(sessions):
        for incoming in (True, False):
            attach_own(router, trunk, session, DATA if place else CONTROL, incoming, capacity)


def attach_own(router: RouterPort, trunk: Trunk, session: Session, kind: str, incoming: bool, capacity: int) -> Link:
    """Attach a link of ours to a neighbour, and return it; Misuse if the peer allows no more."""
    link = add_link(session, f"qdlink.{_token()}", incoming)
    _make_endpoint(router, link, trunk, kind, capacity)
    capability = CONTROL if kind == CONTROL else DATA
    attach_link(
        link,
        Source(capabilities=(capability,), expiry_policy="link-detach"),
        Target(capabilities=(capability,), expiry_policy="link-detach"),
    )
    _begin(router, link, trunk)
    return link


def open_streams(
    router: RouterPort, trunk: Trunk, begin: Callable[[], Session], end: Callable[[Session], None]
) -> None:
    """Provide links for unfinished messages from now on; ``begin`` and ``end`` as in ``StreamPool``."""

    def attach(session: Session) -> Egress:
        session.urgency = DEFAULT_PRIORITY
        sink = attach_own(router, trunk, session, STREAM, False, trunk.capacity).sink
        assert isinstance(sink, Egress)  # noqa: S101 - we send on it
        return sink

    def detach(outgoing: Egress) -> None:
        router.detach_link(outgoing.link, True)

    trunk.stream_pool = StreamPool(begin, end, attach, detach)


def _token() -> str:
    return "".join(_NAME_ALPHABET[byte & 63] for byte in secrets.token_bytes(15))


def _make_endpoint(router: RouterPort, link: Link, trunk: Trunk, kind: str, capacity: int) -> None:
    """Make the routing endpoint of a link, and enter it in the trunk."""
    is_control = kind == CONTROL
    terms = PeerTerms(
        link_capacity=capacity,
        strip_in=False,
        strip_out=is_control,
        log=None if is_control else trunk.log,
        connection_number=trunk.number,
    )
    options = LinkOptions(terms=terms, trunk=trunk, routes_at_once=trunk.came >= PRIORITIES)
    if isinstance(link, IncomingLink):
        if is_control:
            process = every(partial(router.network.receive_control, trunk))
            trunk.control_in = make_receiver(router, link, options, process, MAX_CONTROL_BYTES)
        else:
            trunk.add_data_in(make_incoming(router, link, options))
    elif isinstance(link, OutgoingLink):
        outgoing = make_outgoing(router, link, options)
        if is_control:
            link.session.urgency = PRIORITIES
            trunk.control_out = outgoing
        elif kind == DATA:
            link.session.urgency = min(trunk.data_out, PRIORITIES - 1)
            trunk.add_data(outgoing)


def _begin(router: RouterPort, link: Link, trunk: Trunk) -> None:
    sink = link.sink
    assert isinstance(sink, Ingress | Egress)  # noqa: S101 - `_make_endpoint` has just put it there
    router.add_endpoint(sink, trunk.number)
    if not isinstance(sink, Egress):
        sink.account.grant_first_credit()
    elif sink.link.credit > 0:
        sink.on_credit(link)
    router.network.update_trunk(trunk)


__all__ = ["CONTROL", "DATA", "PRIORITIES", "answer", "attach_own", "begin_links", "capability_of"]
