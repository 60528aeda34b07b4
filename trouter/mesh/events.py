"""The events of the mesh for its router: messages to send, and changes of the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .faults import MeshFault
from .messages import Message


@dataclass(frozen=True, slots=True)
class Send:
    """A message for the address ``to``: over the control link of ``connection``, or by the way to ``to`` if None."""

    message: Message
    to: str
    connection: int | None = None


@dataclass(frozen=True, slots=True)
class NeighbourUp:
    """``router`` became a neighbour over ``connection``, at this cost."""

    router: str
    connection: int
    cost: int


@dataclass(frozen=True, slots=True)
class NeighbourMoved:
    """The neighbour ``router`` is now reached over another ``connection``."""

    router: str
    connection: int


@dataclass(frozen=True, slots=True)
class NeighbourDown:
    """``router`` is no longer a neighbour, for the reason ``why``."""

    router: str
    why: str


@dataclass(frozen=True, slots=True)
class PathsChanged:
    """The ways through the network have changed: see ``Mesh.paths``. ``why`` describes the reason.

    All routers give the same change the same ``cause``: the router whose links changed, ``:``, and the number of its
    link state, 0 for none.
    """

    why: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class AddressesChanged:
    """The changes of ``router``'s addresses: keys ``added`` with their hints (-1 for none), and keys ``deleted``."""

    router: str
    added: Mapping[str, int]
    deleted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RouterLost:
    """``router`` is forgotten; its addresses were deleted before."""

    router: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """The router ``who`` sent something invalid over ``connection``: the ``fault`` and its details.

    Reported once in an interval for each router, connection and fault; ``times`` counts those since. ``who`` is a
    router's id, "" if unknown.
    """

    who: str
    connection: int
    fault: MeshFault
    detail: str
    times: int


@dataclass(frozen=True, slots=True)
class Forward:
    """The bytes of a message of another router for the neighbours ``hops``."""

    hops: tuple[str, ...]
    data: bytes


Change = NeighbourUp | NeighbourMoved | NeighbourDown | PathsChanged | AddressesChanged | RouterLost
Event = Forward | Send | Change | Ignored
