"""Connects and logs in as a load wants it, blocking until the connection and its TLS stand."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

import trio

from trouter.client import AuthenticationFailed
from trouter.client.sasl import REFUSALS, MutualMechanism, SaslMechanism, check_success
from trouter.client.servers import unreachable
from trouter.engine.sasl import SASL_OK, SaslClient
from trouter.mechanisms import ANONYMOUS
from trouter.tools.failures import SSLException

from .plan import Load, LoadError

_RECORD_BYTES: Final = 16384


class TlsSocket(ssl.SSLSocket):
    """A socket that reads and writes as one without TLS does: BlockingIOError says that it has to wait."""

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Return what came, at most one record; BlockingIOError, OSError."""
        try:
            return super().recv(buflen, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def send(self, data: Any, flags: int = 0) -> int:
        """Send as much as the socket takes and return the number of bytes; BlockingIOError, OSError."""
        sent = 0
        with memoryview(data) as view:
            while sent < len(view):
                try:
                    sent += super().send(view[sent : sent + _RECORD_BYTES], flags)
                except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    if not sent:
                        raise BlockingIOError from None
                    break
        return sent


class Dialling:
    """Opens the connections of one load, and answers what SASL asks on each."""

    def __init__(self, load: Load) -> None:
        """Read the files that the load's login names; LoadError."""
        self._load = load
        #: How long each connection may take, in seconds.
        self.timeout_s = load.timeout_s
        self._context: ssl.SSLContext | None = None
        if load.login is not None:
            try:
                self._context = load.login.ssl_context()
            except (SSLException, OSError, ValueError) as failure:
                raise LoadError(str(failure)) from failure
        if self._context is not None:
            self._context.sslsocket_class = TlsSocket
        #: The exchange of each layer that has begun one.
        self._exchanges: dict[SaslClient, SaslMechanism] = {}

    def connect(self) -> socket.socket:
        """Return a new connection, encrypted if the load wants that; LoadError."""
        load = self._load
        try:
            sock = socket.create_connection((load.host, load.port), timeout=self.timeout_s)
            if self._context is not None:
                sock = self._context.wrap_socket(sock, server_hostname=load.host)
        except OSError as error:
            raise self.failed(error) from error
        return sock

    def failed(self, failure: BaseException) -> LoadError:
        """Return the error for a connection that did not come about."""
        host = f"[{self._load.host}]" if ":" in self._load.host else self._load.host
        scheme = "amqp" if self._context is None else "amqps"
        return LoadError(unreachable(f"{scheme}://{host}:{self._load.port}", failure, self.timeout_s))

    def begin(self, sasl: SaslClient, offered: tuple[str, ...]) -> None:
        """Choose the preferred mechanism of those that the server offers; LoadError if none fits."""
        load = self._load
        try:
            wanted = () if load.login is None else load.login.sasl_mechanisms()
        except ValueError as failure:
            raise LoadError(str(failure)) from failure
        if not wanted and ANONYMOUS in offered:
            sasl.send_init(str(ANONYMOUS), b"bench", load.host)
            return
        chosen = next((each for each in wanted if each.name in offered), None)
        if chosen is None:
            names = ", ".join(each.name for each in wanted) or ANONYMOUS
            cure = "" if wanted else "; give a user with --user or --sasl-username"
            text = f"the server offers the SASL mechanisms {', '.join(offered)}, the client can use {names}{cure}"
            raise self.failed(AuthenticationFailed(None, text))
        self._exchanges[sasl] = chosen
        sasl.send_init(chosen.name, self._answer(chosen, chosen.start), load.host)

    def respond(self, sasl: SaslClient, challenge: bytes) -> None:
        """Answer a challenge; LoadError."""
        exchange = self._exchanges.get(sasl)
        sasl.send_response((exchange and self._answer(exchange, exchange.respond, challenge)) or b"")

    def _answer(self, exchange: SaslMechanism, step: Callable[..., Any], *given: bytes) -> bytes | None:
        """Return what a step of ``exchange`` says; LoadError. Only SCRAM works in a thread, which needs trio."""
        answer: bytes | None = None
        try:
            if isinstance(exchange, MutualMechanism):
                answer = trio.run(step, *given)
            else:
                step(*given).send(None)
        except StopIteration as end:
            answer = end.value
        except AuthenticationFailed as failure:
            raise self.failed(failure) from failure
        return answer

    def finish(self, sasl: object, code: int, additional: bytes | None) -> None:
        """Check the outcome of a login; LoadError if the server refused it or did not prove itself."""
        exchange = self._exchanges.pop(sasl, None) if isinstance(sasl, SaslClient) else None
        if code != SASL_OK:
            why = REFUSALS.get(code, f"SASL outcome {code}")
            raise self.failed(AuthenticationFailed(None, why))
        if exchange is not None:
            try:
                check_success(exchange, additional)
            except AuthenticationFailed as failure:
                raise self.failed(failure) from failure
