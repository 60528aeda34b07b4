"""Our side of a SASL exchange (AMQP 1.0 part 5, 5.3): a mechanism is any object with this shape."""

from __future__ import annotations

from typing import Final, Protocol

from trouter.engine.sasl import SASL_AUTH, SASL_SYS, SASL_SYS_TEMP


class SaslMechanism(Protocol):
    """One exchange, used once. What it raises, ``connect`` raises."""

    @property
    def name(self) -> str:
        """The mechanism's registered name, in capitals."""

    async def start(self) -> bytes | None:
        """The initial response; None for none."""

    async def respond(self, challenge: bytes) -> bytes:
        """The answer to a challenge."""


class Anonymous:
    """ANONYMOUS (RFC 4505): anybody; ``trace`` is for the server's log."""

    name: Final = "ANONYMOUS"

    def __init__(self, trace: str = "") -> None:
        self._trace = trace

    async def start(self) -> bytes | None:
        return self._trace.encode()

    async def respond(self, challenge: bytes) -> bytes:
        return self._trace.encode()


class Plain:
    """PLAIN (RFC 4616): the password as it is, so over TLS or on one machine only."""

    name: Final = "PLAIN"

    def __init__(self, user: str, password: str, authorization_id: str = "") -> None:
        if not user or not password or any("\0" in part for part in (user, password, authorization_id)):
            raise ValueError("PLAIN needs a user and a password without NUL")
        self._response = f"{authorization_id}\0{user}\0{password}".encode()

    async def start(self) -> bytes | None:
        return self._response

    async def respond(self, challenge: bytes) -> bytes:
        return self._response


class External:
    """EXTERNAL (RFC 4422, appendix A): who we are is known from elsewhere, such as a TLS client certificate."""

    name: Final = "EXTERNAL"

    def __init__(self, authorization_id: str = "") -> None:
        self._response = authorization_id.encode()

    async def start(self) -> bytes | None:
        return self._response

    async def respond(self, challenge: bytes) -> bytes:
        return self._response


#: Outcome codes in words (5.3.3.6).
REFUSALS: Final = {
    SASL_AUTH: "the server did not accept the credentials",
    SASL_SYS: "the server could not authenticate us",
    3: "the server could not authenticate us, nor will it later",
    SASL_SYS_TEMP: "the server cannot authenticate us now",
}
