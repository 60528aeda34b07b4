"""The relaying of messages from a control link (inter-router.md 2.5, 5.5).

A message is processed here, sent on to neighbours, both, or neither. A router that sends it on adds itself to the trace
and changes nothing else, and no router gets it twice. A long trace is no reason to drop it, as it is for clients'
messages: a router that knows little of the network yet underestimates its size, and would never learn more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from trouter.wire.annotations import RouterAnnotations, compose_annotations, parse_annotations
from trouter.wire.errors import DecodeError
from trouter.wire.sections import THROUGH_PROPERTIES, MessageScan

from .faults import MeshFault
from .messages import AREA
from .paths import Paths

#: The addresses of routers for messages of other routers: hellos, links, addresses.
HELLO_ADDRESS: Final = "qdhello"
LINKS_ADDRESS: Final = "qdrouter"
MOBILE_ADDRESS: Final = "qdrouter.ma"

_SCHEME: Final = "amqp:/"
_EVERYBODY: Final = "all"
_HERE: Final = ""


class Dropped(Exception):
    """A message loops or has no way: no router gets it."""

    def __init__(self, fault: MeshFault, detail: str = "") -> None:
        super().__init__(fault.value)
        self.fault = fault
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Relay:
    """The next hops of one control message."""

    #: The address here that receives it, one of the three; "" if it is not for this router.
    address: str
    #: The neighbours to send it on to, and the bytes for them.
    hops: tuple[str, ...] = ()
    data: bytes = b""
    #: All neighbours that it has not passed, if it is for all.
    around: tuple[str, ...] = ()
    #: The router at which it entered the network; None if it does not say.
    origin: str | None = None


def relay(data: bytes, me: str, paths: Paths) -> Relay:
    """Return where the message ``data`` goes from the router ``me``; DecodeError if it is invalid, or Dropped."""
    scan = MessageScan()
    scan.scan_sections(data, 0, len(data), THROUGH_PROPERTIES, True)
    start, end = scan.annotations_start, scan.annotations_end
    if start < 0:
        start = end = scan.insert_at
    notes = parse_annotations(data, start, end, True) if start < end else RouterAnnotations()
    known = (me, _EVERYBODY, *paths.next_hop)
    router, address = _destination(scan.read_to(data) if notes.to is None else notes.to, known)
    if router == _HERE:
        return Relay(address)
    own = f"{AREA}/{me}"
    if own in notes.trace:
        raise Dropped(MeshFault.LOOPED)
    origin = None if notes.ingress is None else notes.ingress.removeprefix(f"{AREA}/")
    if router == me:
        return Relay(address, origin=origin)
    around: tuple[str, ...] = ()
    if router == _EVERYBODY:
        hops = _fresh(paths.routers_beyond(me if origin is None else origin), paths, notes.trace)
        around = _fresh(paths.next_hop, paths, notes.trace)
    else:
        hops = _fresh({router} & paths.next_hop.keys(), paths, notes.trace)
        address = ""
    if not (hops or address):
        raise Dropped(MeshFault.NO_WAY)
    relayed = b""
    if hops or around:
        ingress = own if notes.ingress is None else notes.ingress
        noted = compose_annotations(
            notes.user, notes.user_count, notes.phase, notes.stream, notes.to, ingress, (*notes.trace, own)
        )
        relayed = data[:start] + noted + data[end:]
    return Relay(address, hops, relayed, around, origin)


def first_hops(to: str, paths: Paths) -> tuple[str, ...]:
    """Return the neighbours for a message of our own to the address ``to``."""
    router, _ = _destination(to, paths.next_hop)
    return _fresh(paths.next_hop if router == _EVERYBODY else {router} & paths.next_hop.keys(), paths, ())


def _fresh(ends: Iterable[str], paths: Paths, trace: tuple[str, ...]) -> tuple[str, ...]:
    """Return the neighbours that lead to ``ends`` and are not in the ``trace``."""
    hops = {paths.next_hop[end] for end in ends}
    return tuple(sorted(hop for hop in hops if f"{AREA}/{hop}" not in trace))


def _destination(to: str | None, known: Collection[str]) -> tuple[str, str]:
    """Return the router that ``to`` names, which may be all routers or this one, and the address there; DecodeError.

    Both may have slashes: the longest ``known`` id is taken.
    """
    kind, _, rest = (to or "").removeprefix(_SCHEME).partition("/")
    place, slash, address = rest.rpartition("/")
    if kind == "_local" and rest and not slash:
        return _HERE, rest
    area, _, router = place.partition("/")
    if kind == "_topo" and area in (AREA, _EVERYBODY) and router:
        if "/" in router:
            path = f"{router}/{address}"
            router = max((each for each in known if path.startswith(f"{each}/")), key=len, default=router)
            address = path[len(router) + 1 :]
        return router, address
    raise DecodeError("it is for no router")
