"""The loops that accept connections from a listener's sockets, for AMQP and for HTTP."""

from __future__ import annotations

import errno
import logging
import select
import socket
from abc import ABC, abstractmethod
from typing import Final

import trio

from trouter._buckets import Bucket
from trouter._bugs import BUGS
from trouter.config import ListenerEntity
from trouter.config.hosts import is_loopback, peer_address
from trouter.core.terms import ROUTER_ROLES

from .descriptors import accept_client
from .proxy_protocol import HeaderReader, ProxyHeaderError, finish_header
from .rates import NewBucket, bucket_maker
from .sockets import close_all
from .waits import SocketWaits

#: Connections accepted from one socket before other tasks get their turn.
ACCEPTS_IN_A_ROW: Final = 16
#: Seconds to wait while the system has no descriptor or memory for a connection.
OUT_OF_RESOURCES_PAUSE_S: Final = 0.1
#: Seconds for the PROXY header of a connection, and the most connections of a listener that wait for theirs.
PROXY_HEADER_S: Final = 5.0
MAX_UNANNOUNCED: Final = 1024
_OVERLOAD: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})


class AcceptingListener(ABC):
    """One configured listener: its open sockets, and the loops that accept connections from them."""

    def __init__(
        self,
        entity: ListenerEntity,
        sockets: list[socket.socket],
        log: logging.Logger,
        new_bucket: NewBucket | None = None,
        waits: SocketWaits = trio.lowlevel,
    ) -> None:
        """``new_bucket`` makes the bucket of ``acceptRate``; None for one of its own. ``waits`` waits for sockets."""
        self.sockets = sockets
        #: Connections accepted so far, and those refused.
        self.accepted = 0
        self.refused = 0
        #: Connections of proxies whose PROXY headers are being read.
        self._unannounced = 0
        #: Set when one of them has ended.
        self._announced = trio.Event()
        #: Set when the listener has stopped and its last connection has ended.
        self.done = trio.Event()
        self._log = log
        self._accepting = trio.CancelScope()
        self._new_bucket = new_bucket or bucket_maker(None)
        self._waits = waits
        #: The connections that it may accept now; None for any number.
        self._turns: Bucket | None = None
        self.configure(entity)

    def configure(self, entity: ListenerEntity) -> None:
        """Serve future connections by ``entity``; sockets and open connections stay as they are."""
        self.entity = entity
        if self._turns is not None:
            self._turns.give_up()
            self._turns = None
        if entity.accept_rate:
            key = "accepted", entity.identity
            self._turns = self._new_bucket(key, entity.accept_rate, trio.current_time(), None)

    async def run(self) -> None:
        """Accept connections until ``stop``, and serve them until they end."""
        async with trio.open_nursery() as nursery:
            try:
                with self._accepting:
                    async with trio.open_nursery() as accepting:
                        for sock in self.sockets:
                            accepting.start_soon(self._accept_all, sock, nursery, accepting)
            finally:
                self.close()
        self.done.set()

    def stop(self) -> None:
        """Accept no more connections, and close the sockets; open connections continue."""
        self._accepting.cancel()  # ends the tasks that wait for a socket
        self.close()

    def close(self) -> None:
        """Close the sockets; a second call does nothing."""
        close_all(self.sockets)
        if self._turns is not None:
            self._turns.give_up()

    @property
    def stopped(self) -> bool:
        """True if the listener accepts no more connections."""
        return self._accepting.cancel_called

    async def wait_readable(self, sock: socket.socket) -> None:
        """Wait until ``sock``, on which no connection waits, may have one."""
        await self._waits.wait_readable(sock)

    async def make_room(self) -> bool:
        """End a connection for one that waits for a descriptor; return whether one has ended."""
        return False

    @abstractmethod
    def admit_socket(self, sock: socket.socket, address: tuple[str, int], nursery: trio.Nursery) -> bool:
        """Serve a connection in ``nursery`` and count it in ``accepted``, or close it; return whether it is served."""

    def _count_accepted(self, sock: socket.socket, *, refused: bool) -> bool:
        """Count a connection, which is closed if ``refused``; return whether it is served."""
        if refused:
            self.refused += 1
            sock.close()
        else:
            self.accepted += 1
            sock.setblocking(False)
        return not refused

    @abstractmethod
    def refuse_socket(self, sock: socket.socket, address: tuple[str, int], why: str) -> None:
        """Close a connection, count it in ``refused``, and log the reason, as often as the log bears."""

    async def _accept_all(self, sock: socket.socket, nursery: trio.Nursery, accepting: trio.Nursery) -> None:
        in_a_row = 0
        exhausted = False
        while True:
            if self._turns is not None:
                await wait_for_token(self._turns)
            while self._unannounced >= MAX_UNANNOUNCED:  # further connections wait in the backlog of the socket
                await self._announced.wait()
            try:
                accepted, address = accept_client(sock, of_few=self._is_for_few)
            except BlockingIOError:
                in_a_row = 0
                await self.wait_readable(sock)
                continue
            except OSError as error:
                if self.stopped:
                    return
                if error.errno in _OVERLOAD:
                    if not _is_readable(sock):  # without a descriptor accept fails even if no client waits
                        await self._waits.wait_readable(sock)
                        continue
                    if error.errno == errno.EMFILE and await self.make_room():
                        continue
                    if not exhausted:
                        self._log.error(
                            "cannot accept connections on %s: %s; clients wait", self._label, error.strerror
                        )
                    exhausted = True
                    await trio.sleep(OUT_OF_RESOURCES_PAUSE_S)
                continue
            if exhausted:
                exhausted = False
                self._log.info("accepting again on %s", self._label)
            if self.stopped:  # the connection came in the pass in which the listener stopped
                accepted.close()
                return
            served = True
            try:
                if self.entity.proxy_protocol_hosts:
                    self._begin_announced(accepted, address, nursery, accepting)
                else:
                    served = self.admit_socket(accepted, address, nursery)
            except Exception as error:  # noqa: BLE001 - a bug with one connection must not close the listener
                accepted.close()
                BUGS.report(f"internal error, connection from {address[0]}:{address[1]} dropped", error)
            if served and self._turns is not None:
                self._turns.owe_tokens(1, trio.current_time())
            in_a_row += 1
            if in_a_row >= ACCEPTS_IN_A_ROW:
                in_a_row = 0
                await trio.lowlevel.checkpoint()

    def _begin_announced(
        self, sock: socket.socket, proxy: tuple[str, int], nursery: trio.Nursery, accepting: trio.Nursery
    ) -> None:
        """Admit a connection by its PROXY header: at once if that has come, else in a task that waits for it."""
        address = peer_address(proxy[0])
        if not any(each.holds(address) for each in self.entity.proxy_protocol_hosts):
            self.refuse_socket(sock, proxy, "it is none of proxyProtocolHosts")
            return
        sock.setblocking(False)
        reader = HeaderReader(sock)
        try:
            if reader.read_available():
                self._admit_client(sock, proxy, reader.client(), nursery)
                return
        except (ProxyHeaderError, OSError) as error:
            self.refuse_socket(sock, proxy, str(error))
            return
        self._unannounced += 1
        accepting.start_soon(self._wait_for_header, sock, proxy, reader, nursery)

    async def _wait_for_header(
        self, sock: socket.socket, proxy: tuple[str, int], reader: HeaderReader, nursery: trio.Nursery
    ) -> None:
        """Read the rest of the PROXY header of a connection, and admit it as one of the client that it names."""
        why = f"no PROXY header within {PROXY_HEADER_S:g} s"
        client: tuple[str, int] | None = None
        try:
            with trio.move_on_after(PROXY_HEADER_S):
                client, why = await finish_header(reader, sock, self._waits), ""
        except (ProxyHeaderError, OSError) as error:
            why = str(error)
        except BaseException:  # the listener stops
            sock.close()
            raise
        finally:
            self._unannounced -= 1
            self._announced.set()
            self._announced = trio.Event()
        if why:
            self.refuse_socket(sock, proxy, why)
        else:
            self._admit_client(sock, proxy, client, nursery)

    def _admit_client(
        self, sock: socket.socket, proxy: tuple[str, int], client: tuple[str, int] | None, nursery: trio.Nursery
    ) -> None:
        """Admit a connection as one of its client; as the proxy's own if that names none, or one of its own machine."""
        self.admit_socket(sock, proxy if client is None or is_loopback(client[0]) else client, nursery)

    @property
    def _is_for_few(self) -> bool:
        """True if probes, operators or routers connect here, which may have descriptors that other clients leave."""
        return self.entity.serves_http or self.entity.role in ROUTER_ROLES

    @property
    def _label(self) -> str:
        return self.entity.name or self.entity.port


async def wait_for_token(bucket: Bucket) -> None:
    """Wait until ``bucket`` has a token."""
    while True:
        wait_s = bucket.wait_s(trio.current_time())
        if not wait_s:
            return
        await trio.sleep(wait_s)


def _is_readable(sock: socket.socket) -> bool:
    """Return whether a connection waits on ``sock``."""
    look = select.poll()
    look.register(sock, select.POLLIN)
    return bool(look.poll(0))
