"""Handshakes of clients behind a load balancer: with a PROXY header, with TLS, and with a certificate by their names.

Each is a whole one: connect, [PROXY header], [TLS], AMQP's header, open, close, one after the other.
`python -m bench.balanced` prints what header and name cost by themselves, in one process.
"""

from __future__ import annotations

import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from trouter.config.hosts import peer_address, proxy_addresses
from trouter.net.proxy_protocol import HeaderReader
from trouter.tls.sni import ServerObject, choose_certificate, find_by_name
from trouter.wire.framing import AMQP_HEADER, frame
from trouter.wire.performatives import Close, Open, encode_performative

from . import greeting
from .measure import Sample
from .servers import Server

PROXIES: Final = proxy_addresses("10.0.0.10, 10.0.0.11, 127.0.0.1")
#: Handshakes of one sample.
COUNT: Final = 100
#: No limit applies to this machine.
EXEMPT: Final = 'handshakeExempt: "127.0.0.0/8"'
#: The headers name a client of this machine, so that it counts for the same limits as the others.
LINE: Final = b"PROXY TCP4 127.0.0.9 127.0.0.1 4000 5672\r\n"
#: As HAProxy's send-proxy-v2 writes it.
BLOCK: Final = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + bytes((127, 0, 0, 9, 127, 0, 0, 1)) + struct.pack(">HH", 4000, 5672)
)
_SAYS: Final = (
    AMQP_HEADER
    + frame(0, encode_performative(Open("bench", hostname="localhost")))
    + frame(0, encode_performative(Close()))
)


def listeners(folder: Path, proxied: int, secured: int, named: int) -> str:
    """Return three listeners, on these ports: with PROXY headers, TLS, and TLS with certificates by name."""
    own = greeting.secured(folder, secured)
    profile = own.partition("\nlistener")[0]
    extra = profile.replace("name: bench", "name: by-name")
    common = "listener {\n host: 127.0.0.1\n saslMechanisms: ANONYMOUS\n authenticatePeer: no\n"
    return (
        f"{own}{extra}\n{common} port: {proxied}\n proxyProtocolHosts: 127.0.0.1\n}}\n"
        f"{common} port: {named}\n sslProfile: bench\n sniProfiles: by-name\n requireSsl: yes\n}}\n"
    )


def handshakes(
    server: Server, port: int, head: bytes = b"", wrap: Callable[[socket.socket], socket.socket] | None = None
) -> Sample:
    """Measure COUNT handshakes with a port, each with ``head`` before it, or ``wrap``ped."""
    before_ns = server.cpu_ns()
    for _ in range(COUNT):
        with socket.create_connection(("127.0.0.1", port)) as sock:
            if wrap is None:
                talk(sock, head)
            else:
                with wrap(sock) as secured:
                    talk(secured)
    return Sample((server.cpu_ns() - before_ns) / 1e3 / COUNT, 0.0, COUNT)


def talk(sock: socket.socket, head: bytes = b"") -> None:
    """Open and close, and read what the router says to it."""
    sock.sendall(head + _SAYS)
    while sock.recv(4096):
        pass


def wrapper(folder: Path) -> Callable[[socket.socket], socket.socket]:
    """Return the function that completes TLS as a client that asks for ``localhost``; no session is resumed."""
    context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    return lambda sock: context.wrap_socket(sock, server_hostname="localhost", suppress_ragged_eofs=True)


def least_us(work: Callable[[], int], times: int) -> float:
    """Return the least CPU time of some runs, in microseconds; ``work`` returns nanoseconds."""
    return min(work() for _ in range(times)) / 1e3


def read_header(header: bytes) -> int:
    """Return the CPU time in which a listener learns its client from a header that has come, in nanoseconds."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.sendall(header)
        began_ns = time.thread_time_ns()
        address = peer_address("127.0.0.1")
        known = any(each.holds(address) for each in PROXIES)
        reader = HeaderReader(near)
        known = reader.read_available() and known
        client = reader.client()
        took_ns = time.thread_time_ns() - began_ns
    assert known and client is not None  # noqa: PT018
    return took_ns


def shake(server: ssl.SSLContext, client: ssl.SSLContext) -> int:
    """Return the CPU time of a server's end of a whole TLS handshake in memory, in nanoseconds."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    began_ns = time.thread_time_ns()
    far = server.wrap_bio(to_server, to_client, server_side=True)
    took_ns = time.thread_time_ns() - began_ns
    while far.version() is None or to_server.pending:
        with suppress(ssl.SSLWantReadError):
            near.do_handshake()
        began_ns = time.thread_time_ns()
        with suppress(ssl.SSLWantReadError):
            far.do_handshake()
        took_ns += time.thread_time_ns() - began_ns
    return took_ns


def main() -> None:
    """Print what a PROXY header and a name cost by themselves, in this process, and a TLS handshake of OpenSSL."""
    print(f"PROXY header, version 1: {least_us(lambda: read_header(LINE), 4000):.1f} us")
    print(f"PROXY header, version 2: {least_us(lambda: read_header(BLOCK), 4000):.1f} us")
    with tempfile.TemporaryDirectory() as folder:
        greeting.secured(Path(folder), 0)
        plain, named, chosen = (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for _ in range(3))
        for each in (plain, named, chosen):
            each.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")
        client = ssl.create_default_context(cafile=f"{folder}/cert.pem")
    loaded: Any = object()  # the profile: nothing of it is read here
    table = {"localhost": loaded}
    named.sslobject_class = ServerObject
    named.sni_callback = choose_certificate(
        lambda name: (loaded, chosen) if find_by_name(table, name) else None, strict=True
    )
    runs: dict[str, list[int]] = {"plain": [], "named": []}
    for _ in range(2000):
        runs["plain"].append(shake(plain, client))
        runs["named"].append(shake(named, client))
    least = {name: min(found) / 1e3 for name, found in runs.items()}
    print(
        f"TLS handshake of OpenSSL alone: {least['plain']:.1f} us, with a certificate by name {least['named']:.1f} us"
    )


if __name__ == "__main__":
    main()
