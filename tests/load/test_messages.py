"""The messages of a load are valid, and exactly as long as requested."""

from __future__ import annotations

import pytest

from trouter.load.messages import make_messages
from trouter.wire.codec import decode_all
from trouter.wire.sections import MessageScan
from trouter.wire.types import Described

THROUGH_PROPERTIES = 4


@pytest.mark.parametrize("size", [1, 100, 255, 256, 10_000, 1 << 20])
def test_a_message_is_one_data_section_of_the_requested_size(size: int) -> None:
    made = make_messages(size)
    assert made.repeats == 0
    (message,) = made.each
    section = decode_all(message)
    assert isinstance(section, Described)
    assert section.descriptor == 0x75
    assert isinstance(section.value, bytes)
    assert len(section.value) == size


@pytest.mark.parametrize("size", [(1 << 20) + 1, 3_000_000, 10**9])
def test_a_large_message_is_completed_by_the_filler(size: int) -> None:
    made = make_messages(size)
    (message,) = made.each
    head = b"\x00\x53\x75\xb0" + size.to_bytes(4, "big")
    assert message.startswith(head)
    assert len(message) - len(head) + made.repeats * len(made.filler) == size
    assert len(message) < 1 << 20


def test_messages_for_addresses_name_them_in_to() -> None:
    made = make_messages(10, ("a", "b.c", "d" * 300))
    scan = MessageScan()
    assert len(made.each) == 3
    for message, address in zip(made.each, ("a", "b.c", "d" * 300), strict=True):
        assert scan.scan_sections(message, 0, len(message), THROUGH_PROPERTIES, True) == 1
        assert scan.read_to(message) == address
