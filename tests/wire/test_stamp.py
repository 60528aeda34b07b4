"""Add a user-id to messages that have none."""

from __future__ import annotations

import pytest

from trouter.wire.codec import decode, encode
from trouter.wire.sections import THROUGH_PROPERTIES, MessageScan
from trouter.wire.stamp import stamped
from trouter.wire.types import Described, ULong

DATA = encode(Described(ULong(0x75), b"octets"))
HEADER = encode(Described(ULong(0x70), [True]))
ANNOTATIONS = encode(Described(ULong(0x72), {}))


def properties(*fields: object) -> bytes:
    return encode(Described(ULong(0x73), list(fields)))


def stamp(message: bytes, user: bytes = b"alice") -> bytes:
    scan = MessageScan()
    data = b"###" + message + b"###"
    scan.scan_sections(data, 3, 3 + len(message), THROUGH_PROPERTIES, True)
    return stamped(data, 3, 3 + len(message), scan, user)


def sections(message: bytes) -> list[tuple[int, object]]:
    found, offset = [], 0
    while offset < len(message):
        value, offset = decode(message, offset, len(message))
        found.append((int(value.descriptor), value.value))
    return found


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ((), [None, b"alice"]),
        (("id",), ["id", b"alice"]),
        (("id", None), ["id", b"alice"]),
        (("id", b""), ["id", b"alice"]),
        ((None, None, "to", "subject"), [None, b"alice", "to", "subject"]),
        ((None, None, "x" * 300), [None, b"alice", "x" * 300]),
    ],
)
def test_the_other_properties_stay(fields: tuple[object, ...], expected: list[object]) -> None:
    before = HEADER + ANNOTATIONS
    assert sections(stamp(before + properties(*fields) + DATA)) == [
        *sections(before), (0x73, expected), *sections(DATA)
    ]  # fmt: skip


@pytest.mark.parametrize("before", [b"", HEADER, ANNOTATIONS, HEADER + ANNOTATIONS])
def test_properties_are_made_where_they_belong(before: bytes) -> None:
    assert sections(stamp(before + DATA)) == [*sections(before), (0x73, [None, b"alice"]), *sections(DATA)]


def test_a_long_name_fits() -> None:
    assert sections(stamp(DATA, b"n" * 300))[0] == (0x73, [None, b"n" * 300])
