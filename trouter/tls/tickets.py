"""Keys of session tickets that the workers of one router share (RFC 5077; RFC 8446, 4.6.1).

A server gives a client its session as a ticket, encrypted with a key that only the server has. OpenSSL makes a key at
random for each context, so a ticket is of use only at the worker that gave it. Here all workers derive the same key for
the same context. Python's ssl has no call that sets it; OpenSSL has, in the library that Python's ssl is linked with.
Which OpenSSL context belongs to one of Python's is read from the first field of that object. It is the first in
every version of Python in ``KNOWN_PYTHONS``; with others, and without that library, each worker keeps its own keys.
"""

from __future__ import annotations

import ctypes
import ssl
import sys
from collections.abc import Callable
from typing import Any, Final

#: Versions of CPython whose SSLContext begins with the pointer to OpenSSL's context.
KNOWN_PYTHONS: Final = ((3, 11), (3, 12), (3, 13), (3, 14))
#: The numbers of the two calls in OpenSSL's ssl.h, and the octets of a key: its name, and those for HMAC and AES.
GET_TICKET_KEYS: Final = 58
SET_TICKET_KEYS: Final = 59
KEY_BYTES: Final = 80

#: Returns 64 secret octets for a purpose, the same in each worker of this router.
DeriveKey = Callable[[str], bytes]


def derived_key(derive: DeriveKey, context: str) -> bytes:
    """Return the key for the tickets of a context; ``context`` is all that decides whom it lets in."""
    parts = (derive(f"TLS tickets {number}: {context}") for number in (1, 2))
    return b"".join(parts)[:KEY_BYTES]


def set_ticket_key(context: ssl.SSLContext, key: bytes) -> bool:
    """Encrypt the tickets of a server's context with ``key``, of KEY_BYTES; return whether this Python can do that."""
    control = _find_control()
    if control is None or control(_address_of(context), GET_TICKET_KEYS, 0, None) != KEY_BYTES:
        return False
    return bool(control(_address_of(context), SET_TICKET_KEYS, len(key), key))


def _find_control() -> Any:
    """Return OpenSSL's function ``SSL_CTX_ctrl``, of the library that Python's ssl uses; None if there is none."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in KNOWN_PYTHONS:
        return None
    import _ssl  # noqa: PLC0415  # a Python without ssl has not come here

    try:
        control = ctypes.CDLL(_ssl.__file__).SSL_CTX_ctrl
    except (AttributeError, OSError):  # OpenSSL is a part of the interpreter, and shows no functions
        return None
    control.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
    control.restype = ctypes.c_long
    return control


def _address_of(context: ssl.SSLContext) -> int | None:
    """Return the address of OpenSSL's context, which follows the head that all of Python's objects have."""
    return ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value
