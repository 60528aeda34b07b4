"""A client of python-qpid-proton that records why the router refuses something."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from proton import Condition, ConnectionException, Event, Message, Timeout
from proton.utils import BlockingConnection, LinkDetached

from tests.routers import DEADLINE_S

#: Seconds between two looks at a condition while no event comes.
LOOK_S: Final = 0.1


class Said(NamedTuple):
    """The reason of an end: an error condition and its description."""

    condition: str
    description: str | None


class Ear:
    """The errors that the router sent on one connection, or on one that it refused."""

    def __init__(self) -> None:
        #: The errors of links and of the connection that the router ended.
        self.said: list[Said] = []
        #: The code of the outcome of SASL.
        self.outcome: int | None = None
        #: Proton's error for a login that failed, or for TLS.
        self.broken: Said | None = None
        #: Whether the connection is over.
        self.ended = False
        #: The router's number of the connection, if it answered the open.
        self.number = 0


def said(condition: Condition | None) -> Said | None:
    return None if condition is None else Said(condition.name, condition.description)


class Client(BlockingConnection):
    """A connection that records errors in its ear; without a user it logs in as ANONYMOUS."""

    def __init__(self, ear: Ear, port: int, user: str = "", password: str = "", **options: Any) -> None:
        self.ear = ear
        if user:
            options = {"user": user, "password": password, "allowed_mechs": "PLAIN", **options}
        else:
            options = {"allowed_mechs": "ANONYMOUS", **options}
        options.setdefault("allow_insecure_mechs", True)
        url = options.pop("url", f"127.0.0.1:{port}")
        super().__init__(url, timeout=DEADLINE_S, reconnect=False, **options)

    @property
    def number(self) -> int:
        """Return the router's number of this connection."""
        return self.ear.number

    @property
    def connection(self) -> Any:
        assert self.conn is not None
        return self.conn

    def wait(
        self, condition: Callable[[], bool], timeout: Literal[False] | float | None = False, msg: str | None = None
    ) -> None:
        """Process events until a condition is true, also one about a broker: Proton looks at it only after an event."""
        limit_s = self.timeout if timeout is False else timeout
        deadline_s = float("inf") if limit_s is None else time.monotonic() + limit_s
        while True:
            try:
                super().wait(condition, LOOK_S, msg)
            except Timeout:
                if time.monotonic() >= deadline_s:
                    raise
            else:
                return

    def on_connection_remote_open(self, event: Event) -> None:
        connection: Any = event.connection
        self.ear.number = int(connection.remote_properties["qd.conn-id"])

    def on_link_remote_close(self, event: Event) -> None:
        self._hear(event.link)
        super().on_link_remote_close(event)

    def on_connection_remote_close(self, event: Event) -> None:
        self._hear(event.connection)
        super().on_connection_remote_close(event)

    def on_transport_error(self, event: Event) -> None:
        self._hear_transport(event.transport)

    def on_transport_closed(self, event: Event) -> None:
        self._hear_transport(event.transport)
        self.ear.ended = True
        super().on_transport_closed(event)

    def _hear_transport(self, transport: Any) -> None:
        if self.ear.outcome is None:
            self.ear.outcome = transport.sasl().outcome
        self.ear.broken = self.ear.broken or said(transport.condition)

    def _hear(self, endpoint: Any) -> None:
        what = said(endpoint.remote_condition)
        if what is not None and not self.closing:
            self.ear.said.append(what)

    def until_closed(self) -> Said:
        """Wait until the router closes the connection; return the reason."""
        try:
            self.wait(lambda: False)
        except ConnectionException:
            return self.ear.said[-1]
        raise AssertionError("it is open still")

    def refusal_of(self, attach: Callable[[Client], object]) -> Said:
        """Attach a link that the router refuses; return the reason."""
        try:
            attach(self)
        except LinkDetached as detached:
            why = said(detached.link.remote_condition)
            assert why is not None
            return why
        raise AssertionError("it is attached")

    def outcome_of(self, sender: Any, message: Message) -> Said | None:
        """Send a message; return the reason why it is not accepted, None if it is."""
        delivery = sender.link.send(message)
        self.wait(lambda: delivery.settled)
        return said(delivery.remote.condition)

    def end_of_session(self) -> Said | None:
        """Begin one more session, which the router ends; return the reason."""
        session = self.connection.session()
        session.open()
        self.wait(lambda: bool(session.state & session.REMOTE_CLOSED))
        why = said(session.remote_condition)
        session.close()
        return why


def refusal(port: int, user: str = "", password: str = "", **options: Any) -> Ear:
    """Connect with a login that the router refuses; return the errors that the client got."""
    ear = Ear()
    try:
        Client(ear, port, user, password, **options).until_closed()
    except ConnectionException:
        pass
    assert ear.said or ear.ended, "nobody was refused"
    return ear
