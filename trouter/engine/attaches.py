"""The parts of a peer's attach that a link keeps, and the memory that they take.

A frame of 16 kB can decode to a megabyte of small values. So a router drops the field that it never reads as soon as
it has decoded an attach, and the filters and all properties and capabilities of the link once it has answered. The
bytes that are left are measured, and charged to the connection (docs/limits.md).
"""

from __future__ import annotations

import sys
from types import NoneType
from typing import Any, Final

from trouter.wire.performatives import Attach, Coordinator, Source, Target

#: Bytes of an attach that a link keeps without a charge: the objects of an ordinary one, with short addresses.
FREE_BYTES: Final = 2048
#: Bytes of the objects of an attach without its texts.
_BARE_BYTES: Final = 1024
#: Bytes that the garbage collector adds to each container.
_COLLECTED_BYTES: Final = 16
#: Types of which all empty values are one object; and those whose values hold no others.
_SHARED_IF_EMPTY: Final = (bool, str, bytes, tuple, NoneType)
_FLAT: Final = (str, bytes, int, float)


def drop_unread(attach: Attach) -> None:
    """Drop the field of an attach that a router never reads: it resumes no deliveries."""
    attach.unsettled = None


def essentials(attach: Attach) -> Attach:
    """Return what is read of an attach after its answer: the name, the modes, and the addresses of the termini."""
    return Attach(
        name=attach.name,
        handle=attach.handle,
        role=attach.role,
        snd_settle_mode=attach.snd_settle_mode,
        rcv_settle_mode=attach.rcv_settle_mode,
        source=_short_source(attach.source),
        target=_short_target(attach.target),
        initial_delivery_count=attach.initial_delivery_count,
    )


def _short_source(source: object) -> Source | None:
    if source is None:
        return None
    return Source(**_address_of(source)) if isinstance(source, Source) else Source()


def _short_target(target: object) -> Target | Coordinator | None:
    if target is None or isinstance(target, Coordinator):
        return None if target is None else Coordinator()
    return Target(**_address_of(target)) if isinstance(target, Target) else Target()


def _address_of(terminus: Source | Target) -> dict[str, Any]:
    return {
        "address": terminus.address if isinstance(terminus.address, str) else None,
        "expiry_policy": terminus.expiry_policy,
        "timeout": terminus.timeout,
        "dynamic": terminus.dynamic,
        "capabilities": tuple(dict.fromkeys(terminus.capabilities)),
    }


def charged_essentials(attach: Attach) -> int:
    """Return the bytes that ``essentials`` takes beyond ``FREE_BYTES``."""
    size = len(attach.name)
    for terminus in (attach.source, attach.target):
        if isinstance(terminus, Source | Target):
            if isinstance(terminus.address, str):
                size += sys.getsizeof(terminus.address)
            size += sum(map(sys.getsizeof, terminus.capabilities))
    return max(0, size + _BARE_BYTES - FREE_BYTES)


def charged_bytes(value: object) -> int:
    """Return the bytes that a decoded value takes beyond ``FREE_BYTES``."""
    return max(0, size_bytes(value) - FREE_BYTES)


def size_bytes(value: object) -> int:
    """Return the bytes that a decoded value takes, with all values in it."""
    size, todo = 0, [value]
    while todo:
        each = todo.pop()
        if not each and isinstance(each, _SHARED_IF_EMPTY):
            continue  # one object for all
        size += sys.getsizeof(each)
        if isinstance(each, _FLAT):
            continue
        size += _COLLECTED_BYTES
        if isinstance(each, dict):
            todo += each
            todo += each.values()
        elif isinstance(each, list | tuple):
            todo += each
        else:  # a composite, or one of the classes of types.py; uuids too have their values in slots
            todo += [getattr(each, name) for name in getattr(type(each), "__slots__", ())]
    return size
