"""Listening sockets: from host and port to sockets, and from an old listener to a new one without a gap."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import trio

from trouter.config import ListenerEntity

BACKLOG: Final = 1024

#: An address to bind: the family, and the host and port.
Address = tuple[socket.AddressFamily, tuple[str, int]]
#: A result of a look-up: family, type, protocol, canonical name, and the address in the family's form.
Found = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]

#: Flags for addresses and port numbers, which need no name server.
_AT_ONCE: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
#: Errors of an address that this machine does not have.
_LACKING: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
_FAMILIES: Final = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}

log = logging.getLogger("trouter.SERVER")


class ListenError(Exception):
    """Listeners cannot be opened; one line for each, with the cause."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


async def open_for(entity: ListenerEntity, leaving: Sequence[socket.socket] = ()) -> list[socket.socket]:
    """Return the sockets that ``entity`` listens on; ListenError names host, port and cause, and leaves nothing open.

    ``leaving`` are sockets that will be closed once the change has succeeded. One that is bound to the same address is
    shared, so that connections which wait in it are not lost.
    """
    try:
        return open_sockets(await resolve(entity), leaving)
    except OSError as error:
        where = f"{entity.host or '*'}:{entity.port}"
        raise ListenError(f"cannot listen on {where}: {error.strerror or error}") from error


async def resolve(entity: ListenerEntity) -> list[Address]:
    """Return the addresses of host, port and family; OSError if there are none."""
    found = await look_up(entity.host, entity.port_or_service, entity.socket_address_family, socket.AI_PASSIVE)
    return list(dict.fromkeys((each, (str(address[0]), int(address[1]))) for each, _, _, _, address in found))


async def look_up(
    host: str, port: int | str, family_name: str | None, flags: int = 0, limiter: trio.CapacityLimiter | None = None
) -> Sequence[Found]:
    """Return the system's addresses of a host (any for empty) and a port or service; OSError if there are none.

    A name is looked up in a thread of ``limiter``, without a time limit.
    """
    family = _FAMILIES.get(family_name or "", socket.AF_UNSPEC)

    def ask(flags: int) -> Sequence[Found]:
        return socket.getaddrinfo(host or None, port, family=family, type=socket.SOCK_STREAM, flags=flags)

    try:
        with suppress(socket.gaierror):
            return ask(flags | _AT_ONCE)
        return await trio.to_thread.run_sync(ask, flags, abandon_on_cancel=True, limiter=limiter)
    except (ValueError, OverflowError):  # raised before the system is asked: a name too long or with invalid characters
        raise OSError("not a name that can be looked up") from None


def open_sockets(addresses: Iterable[Address], leaving: Sequence[socket.socket] = ()) -> list[socket.socket]:
    """Return a listening socket for each address; OSError, with none left open, if one cannot be opened.

    Addresses that this machine lacks, as those of IPv6 where it is off, are left out if there are others.
    """
    opened: list[socket.socket] = []
    lacking: OSError | None = None
    try:
        for family, address in addresses:
            heir = next((sock for sock in leaving if sock.family == family and place_of(sock) == address), None)
            try:
                opened.append(_listen(family, address, leaving) if heir is None else heir.dup())
            except OSError as error:
                if error.errno not in _LACKING:
                    raise
                lacking = error
                log.debug("cannot listen on %s:%d: %s", *address, error.strerror)
        if lacking is not None and not opened:
            raise lacking
    except OSError:
        close_all(opened)
        raise
    return opened


def place_of(sock: socket.socket) -> tuple[str, int]:
    """Return the host and port that a socket is bound to."""
    host, port = sock.getsockname()[:2]
    return host, port


def close_all(sockets: Iterable[socket.socket]) -> None:
    """Close the sockets; a second call does nothing."""
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
            # an old listener on every interface and its successor on one of them, or the reverse
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
    """Let these sockets, and no other program's, overlap within the context."""
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        yield
    finally:
        for sock in sockets:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
