"""Reads the user database of Cyrus SASL, sasldb2, which holds passwords in clear, so that operators can migrate it.

It is a hash of Berkeley DB (magic 0x061561), of which only the pages are read: a header, offsets of items, and the
items, keys and data by turns. A key is ``user NUL realm NUL userPassword``. Nothing in the file is trusted.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

MAX_FILE_BYTES: Final = 64 << 20
_MAGIC: Final = 0x061561
_MAGIC_AT: Final = 12
_PAGE_SIZE_AT: Final = 20
_ENCRYPTED_AT: Final = 24
_PAGE_SIZES: Final = frozenset(1 << bits for bits in range(9, 17))
#: Pages with items, unsorted and sorted; an item that stands on its page.
_HASH_PAGES: Final = frozenset({2, 13})
_ON_PAGE: Final = 1
_HEADER_BYTES: Final = 26
_ENTRIES_AT: Final = 20
_TYPE_AT: Final = 25
_ATTRIBUTE: Final = "userPassword"


class SasldbError(Exception):
    """The file is not what it should be; never says what is in it."""


class Account(NamedTuple):
    """A user of a realm. The repr shows no password."""

    user: str
    realm: str
    password: bytes

    def __repr__(self) -> str:
        return f"Account({self.user!r}, {self.realm!r})"


def read_sasldb(path: Path) -> list[Account]:
    """Return all users of the database, by realm and name; SasldbError, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise SasldbError(f"larger than {MAX_FILE_BYTES >> 20} MiB")
    found = {(account.realm, account.user): account for account in _accounts(content)}
    return [found[key] for key in sorted(found)]


def _accounts(content: bytes) -> Iterator[Account]:
    for key, data in _pairs(content):
        try:
            user, realm, attribute = key.decode().split("\0")
        except ValueError:  # what else there may be is not about passwords
            continue
        if attribute == _ATTRIBUTE and user:
            yield Account(user, realm, data)


def _pairs(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    order, size = _layout(content)
    for start in range(size, len(content) - size + 1, size):
        page = content[start : start + size]
        if page[_TYPE_AT] in _HASH_PAGES:
            items = list(_items(page, order))
            yield from zip(items[::2], items[1::2], strict=False)


def _layout(content: bytes) -> tuple[str, int]:
    """Return the byte order and the size of a page."""
    for order in "<>":
        if len(content) >= 512 and struct.unpack_from(f"{order}I", content, _MAGIC_AT)[0] == _MAGIC:
            size: int = struct.unpack_from(f"{order}I", content, _PAGE_SIZE_AT)[0]
            if size not in _PAGE_SIZES or content[_ENCRYPTED_AT]:
                break
            return order, size
    raise SasldbError("not a database of Cyrus SASL in the format of Berkeley DB (hash)")


def _items(page: bytes, order: str) -> Iterator[bytes]:
    """Return the items of a page; they stand from its end to its front, each ends where the one before begins."""
    (count,) = struct.unpack_from(f"{order}H", page, _ENTRIES_AT)
    end = len(page)
    if _HEADER_BYTES + 2 * count > end:
        raise SasldbError("a page is damaged")
    for offset in struct.unpack_from(f"{order}{count}H", page, _HEADER_BYTES):
        if not _HEADER_BYTES + 2 * count <= offset < end:
            raise SasldbError("a page is damaged")
        # An item elsewhere (a long one, or duplicates) is none of ours, but keeps its place in the row.
        yield page[offset + 1 : end] if page[offset] == _ON_PAGE else b""
        end = offset
