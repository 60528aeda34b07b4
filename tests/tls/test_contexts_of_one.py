"""A connection's own context, in whose place the listener's comes, leaves nothing of the listener's out."""

from __future__ import annotations

import gc
import socket
import ssl
import weakref
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import pytest
import trio
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from tests.routers import DEADLINE_S
from tests.tls.pki import Authority, Pair
from trouter.config import SslProfileEntity
from trouter.tls.channel import TlsChannel
from trouter.tls.contexts import ServerUse, context_of_one, server_context

pytestmark = pytest.mark.attack
#: The attributes of profiles. Level 4 needs groups of 192 bits, for which a client has to say another hello.
PROFILES = {
    "defaults": {},
    "TLS 1.2 only": {"protocols": "TLSv1.2"},
    "TLS 1.3 only": {"protocols": "TLSv1.3"},
    "TLS 1.1 and 1.3": {"protocols": "TLSv1.1 TLSv1.3", "below_system_minimum": True},
    "one cipher": {"protocols": "TLSv1.2", "ciphers": "ECDHE-ECDSA-CHACHA20-POLY1305"},
    "level 3": {"ciphers": "DEFAULT:@SECLEVEL=3"},
    "level 4": {"ciphers": "DEFAULT:@SECLEVEL=4"},
}
VERSIONS = (None, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
#: What a listener and a client with a good certificate agree on, by the client's version; None for nothing.
AGREED = {
    "defaults": ("TLSv1.3", None, "TLSv1.2", "TLSv1.3"),
    "TLS 1.2 only": ("TLSv1.2", None, "TLSv1.2", None),
    "TLS 1.3 only": ("TLSv1.3", None, None, "TLSv1.3"),
    "TLS 1.1 and 1.3": ("TLSv1.3", "TLSv1.1", None, "TLSv1.3"),
    "one cipher": ("TLSv1.2", None, "TLSv1.2", None),
    "level 3": ("TLSv1.3", None, "TLSv1.2", "TLSv1.3"),
    "level 4": ("TLSv1.3", None, "TLSv1.2", "TLSv1.3"),
}


class Outcome(NamedTuple):
    """The end of a handshake: what was agreed on, the client's certificate, and the fault on the server's side."""

    version: str | None
    cipher: str = ""
    shown: bytes | None = None
    fault: str = ""


@dataclass
class Scene:
    trusted: Authority
    server: Pair
    clients: dict[str, Pair | None]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    folder = tmp_path_factory.mktemp("one")
    trusted, other = Authority(folder, strong=True), Authority(folder, "Another Authority", strong=True)
    clients = {"good": trusted.issue("CN=alice"), "of another": other.issue("CN=alice"), "none": None}
    clients["weak"] = trusted.issue("CN=alice", key=ec.generate_private_key(ec.SECP256R1()))
    return Scene(trusted, trusted.issue("CN=router", "localhost"), clients)


def listening(scene: Scene, profile: str, demand: str) -> ssl.SSLContext:
    files = {"cert_file": str(scene.server.cert), "private_key_file": str(scene.server.key)}
    entity = SslProfileEntity(name="p", **files, **PROFILES[profile])  # type: ignore[arg-type]
    return server_context(entity, ServerUse(demand), (scene.trusted.certificate,))


def calling(scene: Scene, version: ssl.TLSVersion | None, pair: Pair | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(scene.trusted.file)
    context.check_hostname = False
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = version or ssl.TLSVersion.TLSv1_1
    if version is not None:
        context.maximum_version = version
    if pair is not None:
        context.load_cert_chain(pair.cert, pair.key)
    return context


def outcome(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None) -> Outcome:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(to_server, to_client, server_side=True)
    here = client.wrap_bio(to_client, to_server, server_hostname=name)
    for _ in range(4):
        with suppress(ssl.SSLError):
            here.do_handshake()
        try:
            there.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            return Outcome(None, fault=f"{error.reason} {getattr(error, 'verify_message', '')}")
    return Outcome(there.version(), (there.cipher() or ("",))[0], there.getpeercert(binary_form=True))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["localhost", None])
@pytest.mark.parametrize("demand", ["required", "optional"])
@pytest.mark.parametrize("profile", PROFILES)
def test_each_client_agrees_on_the_same_as_with_the_listeners_context(
    scene: Scene, profile: str, demand: str, name: str | None
) -> None:
    context = listening(scene, profile, demand)
    for version, (kind, pair) in product(VERSIONS, scene.clients.items()):
        client = calling(scene, version, pair)
        found = outcome(context_of_one(context), client, name)
        assert found == outcome(context, client, name), (version, kind)
        verified = kind == "good" or (kind == "weak" and profile != "level 4")  # too weak a one is not shown at all
        if kind == "good":
            assert found.version == AGREED[profile][VERSIONS.index(version)], (version, found)
        elif found.version is not None:
            assert verified or (kind != "of another" and demand == "optional")
        if found.version is not None:
            assert found.shown == (pair.certificate.public_bytes(Encoding.DER) if pair and verified else None)


async def test_a_connections_own_context_lives_as_long_as_the_connection(scene: Scene) -> None:
    """OpenSSL calls its callback again for a second hello, by the address that Python's object had."""
    own = context_of_one(listening(scene, "level 4", "required"))
    alive = weakref.ref(own)
    channel = TlsChannel(own, server=True)
    del own
    client = calling(scene, ssl.TLSVersion.TLSv1_3, scene.clients["good"])
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.settimeout(DEADLINE_S)

        def call() -> None:
            arrived, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = client.wrap_bio(arrived, leaving)
            for hello in range(2):
                with pytest.raises(ssl.SSLWantReadError):
                    tls.do_handshake()
                far.sendall(leaving.read())
                arrived.write(far.recv(1 << 16))
                gc.collect()
                assert alive() is not None, f"after hello {hello}"
            tls.do_handshake()
            far.sendall(leaving.read())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, call)
            await channel.handshake(near, trio.lowlevel, trio.to_thread.run_sync)
    assert len(channel.chain()) == 2
