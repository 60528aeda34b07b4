"""Calls the library of Cyrus SASL, libsasl2, by the declarations of its header sasl.h, as a server and as a client.

Each call blocks, and the caller makes one at a time. The library reads its configuration once in a process, so the
first folder and name stay in force.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
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
typedef struct { unsigned long len; unsigned char data[]; } sasl_secret_t;
int sasl_client_init(const sasl_callback_t *callbacks);
int sasl_client_new(const char *service, const char *serverFQDN, const char *iplocalport, const char *ipremoteport,
    const sasl_callback_t *callbacks, unsigned flags, sasl_conn_t **pconn);
int sasl_client_start(sasl_conn_t *conn, const char *mechlist, void *prompt_need, const char **clientout,
    unsigned *clientoutlen, const char **mech);
int sasl_server_done(void);
int sasl_client_done(void);
int sasl_client_step(sasl_conn_t *conn, const char *serverin, unsigned serverinlen, void *prompt_need,
    const char **clientout, unsigned *clientoutlen);
void sasl_dispose(sasl_conn_t **pconn);
"""
LIBRARY: Final = "libsasl2.so.2"

#: Results.
CONTINUE, OK, NO_MEMORY, TRY_AGAIN, NOT_STARTED, NO_USER, UNAVAILABLE = 1, 0, -2, -8, -12, -20, -24
#: Results that are the fault of the server, not of the client.
UNABLE: Final = frozenset({NO_MEMORY, TRY_AGAIN, UNAVAILABLE, NOT_STARTED, -23, -100})

_PATH_OF_CONFIGURATION: Final = 1
_CALLBACK_LOG: Final = 2
_LOG_ERRORS: Final = 1
_USERNAME, _AUTHUSER = 0, 16
_SECURITY_PROPERTIES: Final = 101
_NO_PLAINTEXT, _NO_ANONYMOUS = 0x01, 0x10
_CALLBACK_USER, _CALLBACK_AUTHNAME, _CALLBACK_PASS = 0x4001, 0x4002, 0x4004
SERVICE: Final = b"amqp"

log = logging.getLogger("trouter.PLUGIN")


class CyrusError(Exception):
    """The library cannot be used; the text says why."""


class Step(NamedTuple):
    """The outcome of one step: a result and the bytes for the peer, which the repr does not show."""

    result: int
    data: bytes

    def __repr__(self) -> str:
        return f"Step({self.result}, {len(self.data)} bytes)"


class Library:
    """libsasl2, initialized for this process."""

    def __init__(self, folder: str, name: str) -> None:
        """Read ``folder``/``name``.conf; CyrusError."""
        self._ffi = cffi.FFI()
        self._ffi.cdef(DECLARATIONS)
        try:
            self._lib: Any = self._ffi.dlopen(LIBRARY)
        except OSError:
            raise CyrusError(f"the library {LIBRARY} is not installed") from None
        #: Conversations that no exchange uses any more; the next call of any exchange disposes of them.
        self._dropped: list[Any] = []
        #: Address of such a conversation -> the objects that must live until it is disposed of.
        self._kept: dict[int, object] = {}
        self._logger = self._ffi.callback("int(void *, int, const char *)", _make_logger(self._ffi), error=0)
        self._callbacks = self._ffi.new("sasl_callback_t[2]")
        self._callbacks[0].id = _CALLBACK_LOG
        self._callbacks[0].proc = self._ffi.cast("int (*)(void)", self._logger)
        self._start(folder, name)

    def _start(self, folder: str, name: str) -> None:
        if self._is_server_already():
            raise CyrusError(
                "another part of this process has started Cyrus SASL as a server already, so that "
                f"{folder}/{name}.conf would not be read. python-qpid-proton as a server does this. "
                "Run that part in a process of its own"
            )
        self._lib.sasl_set_path(_PATH_OF_CONFIGURATION, self._ffi.new("char[]", folder.encode()))
        result = self._lib.sasl_server_init(self._callbacks, name.encode())
        if result == OK:
            result = self._lib.sasl_client_init(self._callbacks)
            if result != OK:
                self._lib.sasl_server_done()
        if result != OK:
            raise CyrusError(f"Cyrus SASL does not start with {folder}/{name}.conf (result {result})")

    def _is_server_already(self) -> bool:
        """Return whether the library has read a configuration before; it would count one more user of that one."""
        place, null = self._ffi.new("sasl_conn_t **"), self._ffi.NULL
        if self._lib.sasl_server_new(SERVICE, null, null, null, null, null, 0, place) == NOT_STARTED:
            return False
        self._lib.sasl_dispose(place)
        return True

    def stop(self) -> None:
        """End the use of the library, when no conversation is under way; it can then be started anew."""
        self._dispose()
        self._lib.sasl_client_done()
        self._lib.sasl_server_done()

    def mechanisms(self) -> tuple[str, ...]:
        """Return the library's mechanisms as a server, in its order; CyrusError."""
        return self._listed(self.converse())

    def client_mechanisms(self) -> tuple[str, ...]:
        """Return the library's mechanisms as a client with a user and a password; CyrusError."""
        return self._listed(self.call("localhost", "user", "password", plain=True))

    def _listed(self, conversation: Conversation | Call) -> tuple[str, ...]:
        result, length, count = self._ffi.new("const char **"), self._ffi.new("unsigned *"), self._ffi.new("int *")
        done = self._lib.sasl_listmech(conversation.pointer, self._ffi.NULL, b"", b" ", b"", result, length, count)
        if done != OK:
            return ()
        return tuple(bytes(self._ffi.buffer(result[0], length[0])).decode("ascii", "replace").split())

    def converse(self) -> Conversation:
        """Return a conversation with a new client; CyrusError."""
        self._dispose()
        place, null = self._ffi.new("sasl_conn_t **"), self._ffi.NULL
        result = self._lib.sasl_server_new(SERVICE, null, null, null, null, null, 0, place)
        if result != OK:
            raise CyrusError(f"Cyrus SASL takes no more clients (result {result})")
        conversation = Conversation(self._ffi, self._lib, place[0])
        weakref.finalize(conversation, self._dropped.append, place[0]).atexit = False
        self._secure(place[0], _NO_ANONYMOUS)
        return conversation

    def call(self, host: str, user: str, password: str, *, plain: bool) -> Call:
        """Return a conversation with a server, whose mechanism may send the password only if ``plain``; CyrusError."""
        self._dispose()
        call = Call(self._ffi, self._lib, user, password)
        place, null = self._ffi.new("sasl_conn_t **"), self._ffi.NULL
        result = self._lib.sasl_client_new(SERVICE, host.encode(), null, null, call.callbacks, 0, place)
        if result != OK:
            raise CyrusError(f"Cyrus SASL makes no more calls (result {result})")
        call.pointer = place[0]
        # The callbacks are called until the conversation is disposed of, so they live on with what disposes of it.
        weakref.finalize(call, self._drop_call, place[0], call.kept).atexit = False
        self._secure(place[0], _NO_ANONYMOUS | (0 if plain else _NO_PLAINTEXT))
        return call

    def _drop_call(self, pointer: Any, kept: object) -> None:
        self._kept[int(self._ffi.cast("uintptr_t", pointer))] = kept
        self._dropped.append(pointer)

    def _dispose(self) -> None:
        while self._dropped:
            pointer = self._dropped.pop()
            self._lib.sasl_dispose(self._ffi.new("sasl_conn_t **", pointer))
            self._kept.pop(int(self._ffi.cast("uintptr_t", pointer)), None)

    def _secure(self, pointer: Any, flags: int) -> None:
        properties = self._ffi.new("sasl_security_properties_t *")  # all else zero: no layer of its own on the wire
        properties.security_flags = flags
        result = self._lib.sasl_setprop(pointer, _SECURITY_PROPERTIES, properties)
        if result != OK:
            raise CyrusError(f"Cyrus SASL refuses its properties (result {result})")


class Conversation:
    """The authentication of one client."""

    def __init__(self, ffi: Any, lib: Any, pointer: Any) -> None:
        self._ffi = ffi
        self._lib = lib
        self.pointer = pointer

    def start(self, mechanism: str, response: bytes | None) -> Step:
        """Begin ``mechanism`` with the client's initial response, None without one; return the outcome."""
        data = self._ffi.NULL if response is None else response
        return self._go(self._lib.sasl_server_start, mechanism.encode(), data, len(response or b""))

    def go_on(self, response: bytes) -> Step:
        """Pass on the client's answer to the last challenge; return the outcome."""
        return self._go(self._lib.sasl_server_step, response, len(response))

    def user(self) -> str | None:
        """Return the authenticated user; None without a name, or if the client wants to act for another user."""
        names = [self._name(_USERNAME), self._name(_AUTHUSER)]
        return names[0] if names[0] == names[1] else None

    def tried(self) -> tuple[str, str]:
        """Return the names that the client has given so far: its own, and the one to act for; "" for none."""
        return self._name(_AUTHUSER) or "", self._name(_USERNAME) or ""

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


class Call:
    """The router's authentication to one server."""

    def __init__(self, ffi: Any, lib: Any, user: str, password: str) -> None:
        self._ffi = ffi
        self._lib = lib
        self.pointer: Any = None
        name, secret = ffi.new("char[]", user.encode()), password.encode()
        held = ffi.new("sasl_secret_t *", [len(secret), secret])

        def give_name(_: Any, which: int, result: Any, length: Any) -> int:
            result[0] = name if which == _CALLBACK_AUTHNAME else ffi.NULL
            if length != ffi.NULL:
                length[0] = len(user.encode()) if which == _CALLBACK_AUTHNAME else 0
            return OK

        def give_secret(_: Any, __: Any, ___: int, result: Any) -> int:
            result[0] = held
            return OK

        name_proc = ffi.callback("int(void *, int, const char **, unsigned *)", give_name, error=UNAVAILABLE)
        secret_proc = ffi.callback("int(sasl_conn_t *, void *, int, sasl_secret_t **)", give_secret, error=UNAVAILABLE)
        given = [(_CALLBACK_USER, name_proc)]
        if user:
            given.append((_CALLBACK_AUTHNAME, name_proc))
        if secret:
            given.append((_CALLBACK_PASS, secret_proc))
        self.callbacks = ffi.new("sasl_callback_t[]", len(given) + 1)
        for place, (identity, function) in zip(self.callbacks, given, strict=False):
            place.id = identity
            place.proc = ffi.cast("int (*)(void)", function)
        self.kept = (name, held, name_proc, secret_proc, self.callbacks)

    def start(self, mechanisms: Sequence[str]) -> tuple[str, int, bytes | None]:
        """Return the mechanism that the library chooses, the result, and the initial response, None without one."""
        ffi = self._ffi
        out, length, chosen = ffi.new("const char **"), ffi.new("unsigned *"), ffi.new("const char **")
        listed = " ".join(mechanisms).encode()
        result = self._lib.sasl_client_start(self.pointer, listed, ffi.NULL, out, length, chosen)
        name = "" if chosen[0] == ffi.NULL else bytes(ffi.string(chosen[0], 64)).decode("ascii", "replace")
        return name, result, None if out[0] == ffi.NULL else bytes(ffi.buffer(out[0], length[0]))

    def go_on(self, challenge: bytes) -> Step:
        """Return the result and the answer to a challenge."""
        out, length = self._ffi.new("const char **"), self._ffi.new("unsigned *")
        result = self._lib.sasl_client_step(self.pointer, challenge, len(challenge), self._ffi.NULL, out, length)
        data = bytes(self._ffi.buffer(out[0], length[0])) if out[0] != self._ffi.NULL else b""
        return Step(result, data)


def _make_logger(ffi: Any) -> Callable[[Any, int, Any], int]:
    """Return the callback that logs errors of the library; messages of other levels may hold secrets."""

    def log_error(_: Any, level: int, message: Any) -> int:
        if level == _LOG_ERRORS and message != ffi.NULL:
            text = bytes(ffi.string(message, 200)).decode("utf-8", "replace")
            log.warning("Cyrus SASL: %s", "".join(each if each.isprintable() else "?" for each in text))
        return OK

    return log_error
