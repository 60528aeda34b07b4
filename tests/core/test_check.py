"""The checks of messages, and the memory that they use."""

from __future__ import annotations

import pytest

from trouter.core.addresses import MAX_ADDRESS_BYTES
from trouter.core.check import MAX_KNOWN, MAX_KNOWN_BYTES, MessageCheck


def ignores_denials(what: str, text: str) -> None:
    """Ignore a denial; these tests cause none."""


@pytest.mark.parametrize(
    ("data", "asked"), [(1, 1), (MAX_KNOWN_BYTES, 1), (MAX_KNOWN_BYTES + 1, 2), (MAX_ADDRESS_BYTES, 2)]
)
def test_only_short_addresses_are_remembered(data: int, asked: int) -> None:
    """An address may be as long as a frame, and a sender may make up any number of them."""
    texts: list[str] = []

    def may_send(text: str) -> bool:
        texts.append(text)
        return True

    check = MessageCheck(None, None, may_send, ignores_denials)
    assert [check.allows_address(b"a" * data) for _ in range(2)] == [True, True]
    assert texts == ["a" * data] * asked


def test_bytes_that_are_no_address_are_denied_without_a_policy_check() -> None:
    def may_send(text: str) -> bool:
        raise AssertionError(text)

    check = MessageCheck(None, None, may_send, ignores_denials)
    assert not check.allows_address(b"a" * (MAX_ADDRESS_BYTES + 1))
    assert not check.allows_address(b"\xff")


def test_the_verdicts_that_are_remembered_are_few() -> None:
    asked: list[str] = []

    def may_send(text: str) -> bool:
        asked.append(text)
        return text == "0"

    check = MessageCheck(None, None, may_send, ignores_denials)
    for number in range(MAX_KNOWN + 1):
        assert check.allows_address(str(number).encode()) is (number == 0)
    assert check.allows_address(b"0")
    assert len(asked) == MAX_KNOWN + 2
