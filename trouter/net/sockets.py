"""Listening sockets: from a host and a port to sockets, and from an old listener to a new one without a gap."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import trio

from trouter.config import ListenerEntity

BACKLOG: Final = 1024

#: What is to be bound: the family, and the host and port as asked for.
Address = tuple[socket.AddressFamily, tuple[str, int]]
#: What a look-up finds: family, type, protocol, canonical name, and the address as the family has it.
Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]

#: Addresses and numbers, for which no name server has to be asked.
_AT_ONCE: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
_FAMILIES: Final = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}


class ListenError(Exception):
    """Listeners cannot stand: which, and why; one line each."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


async def open_for(entity: ListenerEntity, leaving: Sequence[socket.socket] = ()) -> list[socket.socket]:
    """Return the sockets that ``entity`` listens on; ListenError names host, port and cause, and leaves nothing open.

    ``leaving`` are sockets that will be closed once the change of which this is a part has succeeded. One that is bound
    to the very place that is asked for is shared, so that connections which wait in it are not lost.
    """
    try:
        return open_sockets(await resolve(entity), leaving)
    except OSError as error:
        where = f"{entity.host or '*'}:{entity.port}"
        raise ListenError(f"cannot listen on {where}: {error.strerror or error}") from error


async def resolve(entity: ListenerEntity) -> list[Address]:
    """Return the addresses that host, port and family stand for; OSError when there are none."""
    found = await look_up(entity.host, entity.port_or_service, entity.socket_address_family, socket.AI_PASSIVE)
    return list(dict.fromkeys((each, (str(address[0]), int(address[1]))) for each, _, _, _, address in found))


async def look_up(
    host: str, port: int | str, family_name: str | None, flags: int = 0, limiter: trio.CapacityLimiter | None = None
) -> Sequence[Found]:
    """Return what the system knows of a host (any for none) and a port or service; OSError if it knows nothing.

    A name is asked for in a thread, one of those that ``limiter`` allows for, which may take as long as it pleases.
    """
    family = _FAMILIES.get(family_name or "", socket.AF_UNSPEC)

    def ask(flags: int) -> Sequence[Found]:
        return socket.getaddrinfo(host or None, port, family=family, type=socket.SOCK_STREAM, flags=flags)

    try:
        with suppress(socket.gaierror):
            return ask(flags | _AT_ONCE)
        return await trio.to_thread.run_sync(ask, flags, abandon_on_cancel=True, limiter=limiter)
    except (ValueError, OverflowError):  # before the system is asked: no name can be so long, or have such characters
        raise OSError("not a name that can be looked up") from None


def open_sockets(addresses: Iterable[Address], leaving: Sequence[socket.socket] = ()) -> list[socket.socket]:
    """Return a listening socket for each address; OSError, with none left open, when one cannot be had."""
    opened: list[socket.socket] = []
    try:
        for family, address in addresses:
            heir = next((sock for sock in leaving if sock.family == family and place_of(sock) == address), None)
            opened.append(_listen(family, address, leaving) if heir is None else heir.dup())
    except OSError:
        close_all(opened)
        raise
    return opened


def place_of(sock: socket.socket) -> tuple[str, int]:
    """Return the host and the port that a socket is bound to."""
    host, port = sock.getsockname()[:2]
    return host, port


def close_all(sockets: Iterable[socket.socket]) -> None:
    """Close them; a second call does nothing."""
    for sock in sockets:
        sock.close()


def _listen(family: socket.AddressFamily, address: tuple[str, int], leaving: Sequence[socket.socket]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        rivals = [other for other in leaving if other.family == family and place_of(other)[1] == address[1]]
        try:
            _bind(sock, address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not rivals:
                raise
            # An old listener on every interface and its successor on one of them, or the other way round.
            with _sharing((sock, *rivals)):
                _bind(sock, address)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def _bind(sock: socket.socket, address: tuple[str, int]) -> None:
    sock.bind(address)
    sock.listen(BACKLOG)


@contextmanager
def _sharing(sockets: Iterable[socket.socket]) -> Iterator[None]:
    """Let these sockets, and no other program's, overlap while it lasts."""
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        yield
    finally:
        for sock in sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
