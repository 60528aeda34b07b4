"""Formats messages between routers as Qpid Dispatch logs them at level trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from trouter.mesh.messages import (
    AREA,
    VERSION,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    Message,
    MobileAddressRequest,
    MobileAddressUpdate,
    Newer,
    RouterAdvertisement,
)
from trouter.mesh.names import shown

#: Limits of a line: names or addresses of one list, and characters of an address.
_MAX_LISTED: Final = 64
_MAX_KEY: Final = 128


def text_of(message: Message | Newer) -> str:
    """Return the text of a message, such as ``HELLO(id=A pv=1 area=0 inst=1 seen=['B'])``."""
    if isinstance(message, Newer):
        return f"{shown(message.id)} speaks version {message.version}"
    name, rest = _kind_of(message)
    return f"{name}(id={shown(message.id)} pv={VERSION} area={AREA} {rest})".replace(" )", ")")


def _kind_of(message: Message) -> tuple[str, str]:
    """Return the short name of a message's kind, and the text of the fields that only this kind has."""
    match message:
        case Hello():
            return "HELLO", f"inst={message.instance} seen={_listed(map(shown, message.seen))}"
        case RouterAdvertisement():
            sequences = f"ls_seq={message.link_sequence} mobile_seq={message.mobile_sequence}"
            return "RA", f"inst={message.instance} {sequences}"
        case LinkStateRequest():
            return "LSR", ""
        case LinkStateUpdate():
            return "LSU", f"inst={message.instance} ls_seq={message.link_sequence} ls={_costs(message.peers)}"
        case MobileAddressRequest():
            return "MAR", f"have_seq={message.have_sequence}"
        case MobileAddressUpdate():
            return "MAU", f"mobile_seq={message.sequence} {_addresses(message)}"


def _addresses(message: MobileAddressUpdate) -> str:
    if message.exist is not None:
        return f"exist={_keys(message.exist)}"
    return f"add={_keys(message.added)} del={_keys(message.deleted)}"


def _keys(keys: Iterable[str]) -> str:
    return _listed(key[:_MAX_KEY] for key in keys)


def _costs(peers: Mapping[str, int]) -> str:
    return repr({shown(peer): cost for peer, cost in islice(peers.items(), _MAX_LISTED)})


def _listed(texts: Iterable[str]) -> str:
    return repr([*islice(texts, _MAX_LISTED)])
