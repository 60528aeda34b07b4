"""The addresses of served spools, and what a client brings along."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

#: The schemes of an address, without and with TLS.
SCHEMES: Final = ("grpc://", "grpc+tls://")


@dataclass(frozen=True, slots=True)
class Access:
    """What a client brings along to a server of spools."""

    #: The authorities to trust (PEM), None for the system's.
    authorities: bytes | None = None
    #: How long to wait for an answer, in seconds.
    patience_s: float = 30.0
    token: bytes = field(default=b"", repr=False)
    #: The files (PEM) with the client's certificate and its key; None without. Each machine reads its own.
    certificate: tuple[Path, Path] | None = None


def is_served(place: str) -> bool:
    """Return whether a place of a spool is that of a server, and not a folder."""
    return place.startswith(SCHEMES)


def is_secure(url: str) -> bool:
    """Return whether the address of a server asks for TLS."""
    return url.startswith("grpc+tls://")


def address_of(url: str) -> tuple[str, str]:
    """Return the server and the name of spools in ``grpc[+tls]://HOST:PORT/NAME``; ValueError."""
    parts = urlsplit(url)
    name = parts.path.strip("/")
    try:
        port = parts.port
    except ValueError:
        port = None
    if not (is_served(url) and parts.hostname and port and name) or parts.username or parts.query or parts.fragment:
        raise ValueError(f"{url.rpartition('@')[2]!r} is no address of a spool: write grpc+tls://HOST:PORT/NAME")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port}", name
