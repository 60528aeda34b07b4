"""The server side of Cyrus SASL, libsasl2, as its header sasl.h describes it.

Every call blocks, and they are made one after another: whoever calls sees to that. The library reads its configuration
once, so the first folder and name that a process gives it are those that it keeps.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import cffi

DECLARATIONS: Final = """
typedef struct sasl_conn sasl_conn_t;
typedef unsigned sasl_ssf_t;
typedef struct { unsigned long id; int (*proc)(void); void *context; } sasl_callback_t;
typedef struct {
    sasl_ssf_t min_ssf; sasl_ssf_t max_ssf; unsigned maxbufsize; unsigned security_flags;
    const char **property_names; const char **property_values;
} sasl_security_properties_t;
int sasl_set_path(int path_type, char *path);
int sasl_server_init(const sasl_callback_t *callbacks, const char *appname);
int sasl_server_new(const char *service, const char *serverFQDN, const char *user_realm, const char *iplocalport,
    const char *ipremoteport, const sasl_callback_t *callbacks, unsigned flags, sasl_conn_t **pconn);
int sasl_setprop(sasl_conn_t *conn, int propnum, const void *value);
int sasl_getprop(sasl_conn_t *conn, int propnum, const void **pvalue);
int sasl_listmech(sasl_conn_t *conn, const char *user, const char *prefix, const char *sep, const char *suffix,
    const char **result, unsigned *plen, int *pcount);
int sasl_server_start(sasl_conn_t *conn, const char *mech, const char *clientin, unsigned clientinlen,
    const char **serverout, unsigned *serveroutlen);
int sasl_server_step(sasl_conn_t *conn, const char *clientin, unsigned clientinlen,
    const char **serverout, unsigned *serveroutlen);
void sasl_dispose(sasl_conn_t **pconn);
"""
LIBRARY: Final = "libsasl2.so.2"

#: Results.
CONTINUE, OK, NO_MEMORY, TRY_AGAIN, NO_USER, UNAVAILABLE = 1, 0, -2, -8, -20, -24
#: Of the server's making, not of the client's.
UNABLE: Final = frozenset({NO_MEMORY, TRY_AGAIN, UNAVAILABLE, -12, -23, -100})

_PATH_OF_CONFIGURATION: Final = 1
_CALLBACK_LOG: Final = 2
_LOG_ERRORS: Final = 1
_USERNAME, _AUTHUSER = 0, 16
_SECURITY_PROPERTIES: Final = 101
_NO_ANONYMOUS: Final = 0x10
SERVICE: Final = b"amqp"

log = logging.getLogger("trouter.PLUGIN")


class CyrusError(Exception):
    """The library cannot be used; says why."""


class Step(NamedTuple):
    """What came of one step: a result and the bytes for the client, which the repr does not show."""

    result: int
    data: bytes

    def __repr__(self) -> str:
        return f"Step({self.result}, {len(self.data)} bytes)"


class Library:
    """libsasl2, initialized for this process."""

    def __init__(self, folder: str, name: str) -> None:
        """Read ``folder``/``name``.conf. CyrusError."""
        self._ffi = cffi.FFI()
        self._ffi.cdef(DECLARATIONS)
        try:
            self._lib: Any = self._ffi.dlopen(LIBRARY)
        except OSError:
            raise CyrusError(f"the library {LIBRARY} is not installed") from None
        #: Conversations that nobody has any more; disposed of at the next call, by whoever may call.
        self._dropped: list[Any] = []
        self._told = self._ffi.callback("int(void *, int, const char *)", _make_logger(self._ffi), error=0)
        self._callbacks = self._ffi.new("sasl_callback_t[2]")
        self._callbacks[0].id = _CALLBACK_LOG
        self._callbacks[0].proc = self._ffi.cast("int (*)(void)", self._told)
        self._lib.sasl_set_path(_PATH_OF_CONFIGURATION, self._ffi.new("char[]", folder.encode()))
        result = self._lib.sasl_server_init(self._callbacks, name.encode())
        if result != OK:
            raise CyrusError(f"Cyrus SASL does not start with {folder}/{name}.conf (result {result})")

    def mechanisms(self) -> tuple[str, ...]:
        """What the library can do here, in its own order. CyrusError."""
        conversation = self.converse()
        result, length, count = self._ffi.new("const char **"), self._ffi.new("unsigned *"), self._ffi.new("int *")
        done = self._lib.sasl_listmech(conversation.pointer, self._ffi.NULL, b"", b" ", b"", result, length, count)
        if done != OK:
            return ()
        return tuple(bytes(self._ffi.buffer(result[0], length[0])).decode("ascii", "replace").split())

    def converse(self) -> Conversation:
        """A conversation with a new client; CyrusError."""
        while self._dropped:
            place = self._ffi.new("sasl_conn_t **", self._dropped.pop())
            self._lib.sasl_dispose(place)
        place, null = self._ffi.new("sasl_conn_t **"), self._ffi.NULL
        result = self._lib.sasl_server_new(SERVICE, null, null, null, null, null, 0, place)
        if result != OK:
            raise CyrusError(f"Cyrus SASL takes no more clients (result {result})")
        conversation = Conversation(self._ffi, self._lib, place[0])
        weakref.finalize(conversation, self._dropped.append, place[0]).atexit = False
        properties = self._ffi.new("sasl_security_properties_t *")  # all zero: no layer of its own on the wire
        properties.security_flags = _NO_ANONYMOUS
        result = self._lib.sasl_setprop(place[0], _SECURITY_PROPERTIES, properties)
        if result != OK:
            raise CyrusError(f"Cyrus SASL refuses its properties (result {result})")
        return conversation


class Conversation:
    """One client's authentication."""

    def __init__(self, ffi: Any, lib: Any, pointer: Any) -> None:
        self._ffi = ffi
        self._lib = lib
        self.pointer = pointer

    def start(self, mechanism: str, response: bytes | None) -> Step:
        """Begin ``mechanism``, with the client's initial response if there was one."""
        data = self._ffi.NULL if response is None else response
        return self._go(self._lib.sasl_server_start, mechanism.encode(), data, len(response or b""))

    def go_on(self, response: bytes) -> Step:
        """The client's answer to the last challenge."""
        return self._go(self._lib.sasl_server_step, response, len(response))

    def user(self) -> str | None:
        """Who was let in; None if that is nobody in particular, or somebody who wants to be somebody else."""
        names = [self._name(_USERNAME), self._name(_AUTHUSER)]
        return names[0] if names[0] == names[1] else None

    def _go(self, call: Callable[..., int], *arguments: Any) -> Step:
        out, length = self._ffi.new("const char **"), self._ffi.new("unsigned *")
        result = call(self.pointer, *arguments, out, length)
        data = bytes(self._ffi.buffer(out[0], length[0])) if out[0] != self._ffi.NULL else b""
        return Step(result, data)

    def _name(self, which: int) -> str | None:
        place = self._ffi.new("const void **")
        if self._lib.sasl_getprop(self.pointer, which, place) != OK or place[0] == self._ffi.NULL:
            return None
        try:
            return bytes(self._ffi.string(self._ffi.cast("const char *", place[0]), 1024)).decode()
        except UnicodeDecodeError:
            return None


def _make_logger(ffi: Any) -> Callable[[Any, int, Any], int]:
    """Errors of the library go to the log; what is more talkative may hold secrets."""

    def tell(_: Any, level: int, message: Any) -> int:
        if level == _LOG_ERRORS and message != ffi.NULL:
            text = bytes(ffi.string(message, 200)).decode("utf-8", "replace")
            log.warning("Cyrus SASL: %s", "".join(each if each.isprintable() else "?" for each in text))
        return OK

    return tell
