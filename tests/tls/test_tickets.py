"""Tickets of sessions that several processes accept (RFC 5077; RFC 8446, 4.6.1)."""

from __future__ import annotations

import hashlib
import os
import ssl
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tls.pki import Authority
from trouter.config import SslProfileEntity
from trouter.tls import tickets
from trouter.tls.contexts import ServerUse
from trouter.tls.loaded import load
from trouter.tls.tickets import KEY_BYTES, DeriveKey, derived_key

ANYONE = ServerUse("none")
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def deriving(secret: bytes) -> DeriveKey:
    return lambda purpose: hashlib.sha512(secret + purpose.encode()).digest()


@pytest.fixture
def entity(tmp_path: Path) -> SslProfileEntity:
    authority = Authority(tmp_path)
    pair = authority.issue("CN=router", "router.example")
    return SslProfileEntity(
        name="p", cert_file=str(pair.cert), private_key_file=str(pair.key), ca_cert_file=str(authority.file)
    )


def loaded(entity: SslProfileEntity, use: ServerUse = ANYONE, secret: bytes = b"a") -> ssl.SSLContext:
    """Return the context for a use, as a worker of the router with this secret makes it."""
    return load(entity, [use], time.time(), deriving(secret)).contexts[use]


class Client:
    """A client that resumes its session with whatever server it comes to."""

    def __init__(self, entity: SslProfileEntity, version: ssl.TLSVersion) -> None:
        self._context = ssl.create_default_context(cafile=entity.ca_cert_file)
        self._context.minimum_version = self._context.maximum_version = version
        self._session: ssl.SSLSession | None = None

    def resumes(self, context: ssl.SSLContext) -> bool:
        """Return whether a server with this context accepted the session of the connection before."""
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = context.wrap_bio(to_server, to_client, server_side=True)
        client = self._context.wrap_bio(to_client, to_server, server_hostname="router.example", session=self._session)
        for end in (client, server, client, server):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
        server.write(b"hello")  # behind the tickets
        assert client.read() == b"hello"
        self._session = client.session
        return bool(client.session_reused)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_is_resumed_at_another_process_of_the_router(
    entity: SslProfileEntity, version: ssl.TLSVersion
) -> None:
    client = Client(entity, version)
    assert [client.resumes(loaded(entity)) for _ in range(3)] == [False, True, True]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_is_not_resumed_where_other_clients_are_let_in(
    entity: SslProfileEntity, version: ssl.TLSVersion
) -> None:
    """A resumed session is not verified again: a client without a certificate would get in everywhere."""
    client = Client(entity, version)
    client.resumes(loaded(entity))
    assert not client.resumes(loaded(entity, ServerUse("optional")))
    client.resumes(loaded(entity))
    assert not client.resumes(loaded(replace(entity, name="other")))
    client.resumes(loaded(entity))
    assert not client.resumes(loaded(replace(entity, ciphers="ECDHE-ECDSA-AES256-GCM-SHA384")))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_ends_when_a_file_changes(entity: SslProfileEntity, version: ssl.TLSVersion) -> None:
    client = Client(entity, version)
    client.resumes(loaded(entity))
    assert entity.ca_cert_file is not None
    os.utime(entity.ca_cert_file, (1, 1))
    assert not client.resumes(loaded(entity))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_is_not_resumed_at_another_router(entity: SslProfileEntity, version: ssl.TLSVersion) -> None:
    client = Client(entity, version)
    client.resumes(loaded(entity))
    assert not client.resumes(loaded(entity, secret=b"another"))


def test_every_octet_of_a_key_is_derived() -> None:
    first, second = (derived_key(deriving(secret), "context") for secret in (b"a", b"b"))
    assert len(first) == KEY_BYTES
    assert not any(first[place : place + 8] == second[place : place + 8] for place in range(0, KEY_BYTES, 8))


def test_without_openssls_call_each_process_keeps_its_own_key(
    entity: SslProfileEntity, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tickets, "KNOWN_PYTHONS", ())
    caplog.set_level("INFO", "trouter.SERVER")
    client = Client(entity, ssl.TLSVersion.TLSv1_3)
    client.resumes(loaded(entity))
    assert not client.resumes(loaded(entity))
    assert "sslProfile p: this Python cannot share sessions of TLS among workers" in caplog.text
