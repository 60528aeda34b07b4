"""Clients that complete TLS handshakes with a router repeatedly, and send nothing afterwards.

`python -m bench.greeting PORT CAFILE FROM` runs until SIGTERM; it prints a line when it has begun, and at its end the
handshakes per second.
"""

from __future__ import annotations

import signal
import socket
import ssl
import sys
import threading
import time
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from .beside import beside

#: Concurrent handshakes.
AT_ONCE: Final = 8


def secured(folder: Path, port: int) -> str:
    """Return a listener with TLS; its certificate is in ``folder``."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=90))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    (folder / "cert.pem").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "key.pem").chmod(0o600)
    profile = f"name: bench\n certFile: {folder / 'cert.pem'}\n privateKeyFile: {folder / 'key.pem'}\n"
    listener = f"host: 127.0.0.1\n port: {port}\n sslProfile: bench\n requireSsl: yes\n"
    return f"sslProfile {{\n {profile}}}\nlistener {{\n {listener}}}\n"


def greeted(port: int, folder: Path, here: str = "127.0.0.1") -> AbstractContextManager[list[float]]:
    """Run the clients, on the address ``here``, for the length of the block.

    Afterwards the list has their handshakes per second.
    """
    return beside("bench.greeting", port, folder / "cert.pem", here)


def greet(port: int, here: str, context: ssl.SSLContext, done: list[int]) -> None:
    """Complete handshakes until the router has gone; each is a full one, no session is resumed."""
    with suppress(ConnectionError, ssl.SSLEOFError):
        while True:
            with (
                socket.create_connection(("127.0.0.1", port), source_address=(here, 0)) as sock,
                context.wrap_socket(sock, server_hostname="localhost"),
            ):
                done[0] += 1


def main() -> None:
    """Run the clients until SIGTERM."""
    port, authorities, here = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    context = ssl.create_default_context(cafile=authorities)
    counts = [[0] for _ in range(AT_ONCE)]
    began_s = time.monotonic()
    for done in counts:
        threading.Thread(target=greet, args=(int(port), here, context, done), daemon=True).start()
    print("begun", flush=True)
    signal.sigwait({signal.SIGTERM})
    print(sum(done[0] for done in counts) / (time.monotonic() - began_s), flush=True)


if __name__ == "__main__":
    main()
