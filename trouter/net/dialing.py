"""From an endpoint to a connected socket: look up the host, and try each of its addresses."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Final

import trio

from trouter.config import texts

from .sockets import look_up

#: Look-ups at the same time.
MAX_LOOKUPS: Final = 40
_LOOKUPS: Final[trio.lowlevel.RunVar[trio.CapacityLimiter]] = trio.lowlevel.RunVar("connectors' look-ups")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and port to dial, with the scheme; its text begins with amqp also with TLS, as in Qpid Dispatch."""

    host: str
    port: str
    scheme: str = "amqp"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"amqp://{host}:{self.port}"


def cause(error: OSError) -> str:
    """Return the text of the error without the address."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(error.strerror or error)


def _lookups() -> trio.CapacityLimiter:
    """Return the limiter of connectors' look-up threads: their own, so that a slow resolver delays nothing else."""
    try:
        return _LOOKUPS.get()
    except LookupError:
        _LOOKUPS.set(trio.CapacityLimiter(MAX_LOOKUPS))
        return _LOOKUPS.get()


async def connect(endpoint: Endpoint, family_name: str | None) -> socket.socket:
    """Return a connected socket; OSError with the cause at the last address tried."""
    found = await look_up(endpoint.host, texts.port_or_service(endpoint.port), family_name, limiter=_lookups())
    failure = OSError("no address")
    for each, kind, protocol, _, address in found:
        dialling = trio.socket.socket(each, kind, protocol)
        try:
            await dialling.connect(address)
        except OSError as error:
            failure = error
            dialling.close()
            continue
        except BaseException:
            dialling.close()
            raise
        sock = socket.socket(fileno=dialling.detach())
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    raise failure
