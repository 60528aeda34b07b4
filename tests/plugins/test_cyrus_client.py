"""sasl_scram and sasl_plain against the client of Cyrus SASL, by which clients written in C and C++ authenticate."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trouter.hooks import Authenticated, Challenge, ListenerFacts, PeerFacts, Plugins, Refused, RouterFacts
from trouter_plugins import sasl_plain, sasl_scram
from trouter_plugins.users_file import put_user

SECRET = b"open s\xc3\xa9same"
NO_MECHANISM = -4
CB_USER, CB_AUTHNAME, CB_PASS = 0x4001, 0x4002, 0x4004

try:
    SASL = ctypes.CDLL("libsasl2.so.2")
except OSError:
    pytest.skip("libsasl2.so.2 is not installed", allow_module_level=True)

SIMPLE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(ctypes.c_uint)
)
PASSWORD = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p)
)


class Callback(ctypes.Structure):
    _fields_ = [("id", ctypes.c_ulong), ("proc", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class Client:
    """One exchange of the library's client."""

    def __init__(self, user: bytes, password: bytes) -> None:
        self._conn = ctypes.c_void_p()
        secret = ctypes.create_string_buffer(ctypes.sizeof(ctypes.c_ulong) + len(password) + 1)
        ctypes.memmove(secret, bytes(ctypes.c_ulong(len(password))) + password, len(secret) - 1)

        def name(_: Any, which: int, result: Any, length: Any) -> int:
            result[0] = b"" if which == CB_USER else user
            return 0

        def give_password(_: Any, __: Any, ___: int, result: Any) -> int:
            result[0] = ctypes.cast(secret, ctypes.c_void_p)
            return 0

        simple, password_of = SIMPLE(name), PASSWORD(give_password)
        self._kept = (simple, password_of, secret)
        procs = ((CB_USER, simple), (CB_AUTHNAME, simple), (CB_PASS, password_of))
        made = [Callback(key, ctypes.cast(proc, ctypes.c_void_p), None) for key, proc in procs]
        self._callbacks = (Callback * 4)(*made)
        assert SASL.sasl_client_new(b"amqp", b"here", None, None, self._callbacks, 0, ctypes.byref(self._conn)) == 0

    def start(self, mechanism: str) -> bytes:
        out, length, chosen = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_char_p()
        result = SASL.sasl_client_start(
            self._conn, mechanism.encode(), None, ctypes.byref(out), ctypes.byref(length), ctypes.byref(chosen)
        )
        if result == NO_MECHANISM:
            pytest.skip(f"the modules of Cyrus SASL that are installed do not have {mechanism}")
        assert result in (0, 1), result
        return ctypes.string_at(out, length.value)

    def go_on(self, challenge: bytes) -> bytes | None:
        """Return the answer to a challenge; None if the library refuses it."""
        out, length = ctypes.c_void_p(), ctypes.c_uint()
        result = SASL.sasl_client_step(
            self._conn, challenge, len(challenge), None, ctypes.byref(out), ctypes.byref(length)
        )
        return ctypes.string_at(out, length.value) if result in (0, 1) else None

    def close(self) -> None:
        SASL.sasl_dispose(ctypes.byref(self._conn))


@pytest.fixture
def plugins(tmp_path: Path) -> Iterator[Plugins]:
    assert SASL.sasl_client_init(None) == 0
    put_user(tmp_path / "users", "alice", SECRET, ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1"))
    plugins = Plugins([sasl_plain, sasl_scram])
    plugins.configure(RouterFacts("QDR.A", sasl_users_file=str(tmp_path / "users")))
    yield plugins
    SASL.sasl_client_done()


async def outcome(plugins: Plugins, mechanism: str, user: bytes, password: bytes) -> object:
    listener = ListenerFacts("here", "", "amqp", sasl_mechanisms=(mechanism,))
    exchange = plugins.open_sasl(mechanism, PeerFacts(1, listener, "h", 1, encrypted=True, loopback=False))
    assert exchange is not None
    client = Client(user, password)
    try:
        answer = await exchange.respond(client.start(mechanism))
        while isinstance(answer, Challenge):
            response = client.go_on(answer.data)
            if response is None:
                return "the client gave up"
            answer = await exchange.respond(response)
    finally:
        client.close()
    return answer


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"])
async def test_the_right_password_lets_in_and_no_other(plugins: Plugins, mechanism: str) -> None:
    assert await outcome(plugins, mechanism, b"alice", SECRET) == Authenticated("alice")
    assert isinstance(await outcome(plugins, mechanism, b"alice", b"open sesame"), Refused)
    assert isinstance(await outcome(plugins, mechanism, b"bob", SECRET), Refused)
