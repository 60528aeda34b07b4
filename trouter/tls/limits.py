"""The limits that this machine's OpenSSL configuration sets for every TLS connection.

Python's ssl overrides them in each context, so they are read from the library itself.
"""

from __future__ import annotations

import ctypes
import ssl
from functools import cache
from typing import Final, NamedTuple

_GET_MIN_PROTO_VERSION: Final = 130


class TlsLimits(NamedTuple):
    """``minimum`` is the lowest TLS version in OpenSSL's numbers, 0 for none; ``level`` the security level."""

    minimum: int
    level: int


@cache
def machine_limits() -> TlsLimits:
    """Return the machine's limits, read once; Python's own if the library cannot be queried."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = TlsLimits(int(context.minimum_version), context.security_level)
    try:
        return _of_library()
    except (AttributeError, OSError):  # the library is linked into the interpreter, or cannot be found
        return own


def _of_library() -> TlsLimits:
    """Return the limits of a new context of the library; AttributeError, OSError."""
    import _ssl  # noqa: PLC0415  # private, and loaded already: through it the very library is found that it uses

    library = ctypes.CDLL(_ssl.__file__)
    library.TLS_method.restype = ctypes.c_void_p
    library.SSL_CTX_new.restype = ctypes.c_void_p
    library.SSL_CTX_new.argtypes = [ctypes.c_void_p]
    library.SSL_CTX_free.argtypes = [ctypes.c_void_p]
    library.SSL_CTX_ctrl.restype = ctypes.c_long
    library.SSL_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
    library.SSL_CTX_get_security_level.argtypes = [ctypes.c_void_p]
    context = library.SSL_CTX_new(library.TLS_method())
    if not context:
        raise OSError("OpenSSL cannot create a context")
    try:
        minimum = int(library.SSL_CTX_ctrl(context, _GET_MIN_PROTO_VERSION, 0, None))
        return TlsLimits(minimum, int(library.SSL_CTX_get_security_level(context)))
    finally:
        library.SSL_CTX_free(context)
