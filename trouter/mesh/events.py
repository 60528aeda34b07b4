"""What the mesh tells its router: messages to be sent, and changes of the network to be taken into the routing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .faults import MeshFault
from .messages import Message


@dataclass(frozen=True, slots=True)
class Send:
    """``message`` is to go to the address ``to``; over the control link of ``connection``, or wherever ``to`` leads."""

    message: Message
    to: str
    connection: int | None = None


@dataclass(frozen=True, slots=True)
class NeighbourUp:
    """``router`` is a neighbour over ``connection``; what the way there costs."""

    router: str
    connection: int
    cost: int


@dataclass(frozen=True, slots=True)
class NeighbourMoved:
    """The neighbour ``router`` is reached over another ``connection`` from now on."""

    router: str
    connection: int


@dataclass(frozen=True, slots=True)
class NeighbourDown:
    """``router`` is a neighbour no longer, and ``why``."""

    router: str
    why: str


@dataclass(frozen=True, slots=True)
class PathsChanged:
    """The ways through the network are others now: see ``Mesh.paths``. ``why`` names what brought it about.

    ``cause`` is the same wherever the same news brings it about: the router whose links have changed, ``:``, and which
    of its link states it was, 0 for none.
    """

    why: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class AddressesChanged:
    """What ``router`` listens on: keys ``added`` with their hints (-1 for none), and keys ``deleted``."""

    router: str
    added: Mapping[str, int]
    deleted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RouterLost:
    """``router`` is forgotten; its addresses were deleted before."""

    router: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """``who`` sent what was not believed, over ``connection``: the ``fault``, and what exactly was wrong.

    Told once in an interval for each pair of the two, with how many ``times`` it has happened since. ``who`` is the id
    of a router, or "" if none is known.
    """

    who: str
    connection: int
    fault: MeshFault
    detail: str
    times: int


Event = Send | NeighbourUp | NeighbourMoved | NeighbourDown | PathsChanged | AddressesChanged | RouterLost | Ignored
