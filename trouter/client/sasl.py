"""The client side of SASL exchanges (AMQP 1.0 part 5, 5.3): a mechanism is any object with this interface."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import trio

from trouter.engine.sasl import SASL_AUTH, SASL_SYS, SASL_SYS_TEMP
from trouter.mechanisms import ANONYMOUS, BOUND, EXTERNAL, PLAIN, SCRAM

from .errors import AuthenticationFailed

if TYPE_CHECKING:
    from scramp import ScramClient

#: The most iterations of a server's SCRAM, so that it cannot use up our time.
MAX_ITERATIONS: Final = 2_000_000
MAX_CHALLENGE_BYTES: Final = 4096


class SaslMechanism(Protocol):
    """One exchange, used once. ``connect`` raises what it raises."""

    @property
    def name(self) -> str:
        """Return the mechanism's registered name, in capitals."""

    async def start(self) -> bytes | None:
        """Return the initial response; None for none."""

    async def respond(self, challenge: bytes) -> bytes:
        """Return the answer to a challenge."""


@runtime_checkable
class MutualMechanism(Protocol):
    """A mechanism in which the server proves itself too; its success alone counts for nothing."""

    def check_success(self, additional: bytes | None) -> None:
        """Check that the server has proven itself, perhaps with ``additional`` of its outcome; AuthenticationFailed."""


def check_success(mechanism: SaslMechanism | None, additional: bytes | None) -> None:
    """Raise AuthenticationFailed if the server's success came before our response, or without its proof."""
    if mechanism is None:
        raise AuthenticationFailed(None, "the server accepted the login before the client sent its name")
    if isinstance(mechanism, MutualMechanism):
        mechanism.check_success(additional)


class Anonymous:
    """ANONYMOUS (RFC 4505): a login without a user; ``trace`` is for the server's log."""

    name: Final = str(ANONYMOUS)

    def __init__(self, trace: str = "") -> None:
        self._trace = trace

    async def start(self) -> bytes | None:
        return self._trace.encode()

    async def respond(self, challenge: bytes) -> bytes:
        return self._trace.encode()


class Plain:
    """PLAIN (RFC 4616): the password in clear, for TLS or a single machine only."""

    name: Final = str(PLAIN)

    def __init__(self, user: str, password: str, authorization_id: str = "") -> None:
        if not user or not password or any("\0" in part for part in (user, password, authorization_id)):
            raise ValueError("PLAIN needs a user and a password without NUL")
        self._response = f"{authorization_id}\0{user}\0{password}".encode()

    async def start(self) -> bytes | None:
        return self._response

    async def respond(self, challenge: bytes) -> bytes:
        return self._response


class Scram:
    """SCRAM (RFC 5802): both sides prove that they know the password, without sending it.

    ``channel_binding`` is a type (tls-server-end-point, tls-unique) and its data, for a name that ends in -PLUS.
    """

    def __init__(self, name: str, user: str, password: str, channel_binding: tuple[str, bytes] | None = None) -> None:
        if not user or not password:
            raise ValueError("SCRAM needs a user and a password")
        if name.removesuffix(BOUND) not in SCRAM or (channel_binding is None) is name.endswith(BOUND):
            raise ValueError(f"{name} is not a supported SCRAM mechanism")
        self.name: Final = str(name)
        self._user = user
        self._password = password
        self._channel_binding = channel_binding
        self._client: ScramClient | None = None
        self._rounds = 0
        self._proven = False

    def __repr__(self) -> str:
        return f"Scram({self.name!r}, {self._user!r})"

    async def start(self) -> bytes | None:
        await trio.to_thread.run_sync(import_module, "scramp")  # slow, and only SCRAM needs it
        from scramp import ScramClient, ScramException  # noqa: PLC0415

        try:
            client = ScramClient([self.name], self._user, self._password, self._channel_binding)
        except ScramException:
            raise AuthenticationFailed(None, "user or password has characters that SCRAM does not allow") from None
        self._client, self._rounds, self._proven = client, 0, False
        return str(client.get_client_first()).encode()

    async def respond(self, challenge: bytes) -> bytes:
        from scramp import ScramException  # noqa: PLC0415

        client = self._client
        if client is None or len(challenge) > MAX_CHALLENGE_BYTES:
            raise AuthenticationFailed(None, "the server violated SCRAM")
        self._rounds += 1
        try:
            if self._rounds == 1:
                client.set_server_first(challenge.decode())
                if int(client.iterations) > MAX_ITERATIONS:
                    raise AuthenticationFailed(None, f"the server wants more than {MAX_ITERATIONS} iterations")
                proof = await trio.to_thread.run_sync(client.get_client_final, abandon_on_cancel=True)
                return str(proof).encode()
            self._check_proof(challenge)
        except (ScramException, UnicodeError):
            raise AuthenticationFailed(None, "the server violated SCRAM") from None
        return b""

    def check_success(self, additional: bytes | None) -> None:
        """Check the server's proof, which is in the outcome if it was no challenge; AuthenticationFailed."""
        if self._rounds == 1 and additional:
            self._check_proof(additional)
        if not self._proven:
            raise AuthenticationFailed(
                None, "the server accepted the login, but did not prove that it knows the password"
            )

    def _check_proof(self, message: bytes) -> None:
        """Check the server's signature; AuthenticationFailed if it is invalid, or not the first."""
        from scramp import ScramException  # noqa: PLC0415

        if self._client is None or self._proven or len(message) > MAX_CHALLENGE_BYTES:
            raise AuthenticationFailed(None, "the server violated SCRAM")
        try:
            self._client.set_server_final(message.decode())
        except (ScramException, UnicodeError):
            raise AuthenticationFailed(
                None, "the server does not know the password of the user, or is not the expected server"
            ) from None
        self._proven = True


def with_password(
    user: str, password: str, *, plain: bool = True, bindings: Iterable[tuple[str, bytes]] = ()
) -> tuple[SaslMechanism, ...]:
    """Return the mechanisms for a user with a password, the strongest first; PLAIN, which sends it, last or not at all.

    ``bindings`` are the channel's bindings: types, each with its data.
    """
    bound = (Scram(f"{name}{BOUND}", user, password, binding) for binding in bindings for name in SCRAM)
    scram = (*bound, *(Scram(name, user, password) for name in SCRAM))
    return (*scram, Plain(user, password)) if plain else scram


class External:
    """EXTERNAL (RFC 4422, appendix A): the server knows the user from elsewhere, such as a TLS client certificate."""

    name: Final = str(EXTERNAL)

    def __init__(self, authorization_id: str = "") -> None:
        self._response = authorization_id.encode()

    async def start(self) -> bytes | None:
        return self._response

    async def respond(self, challenge: bytes) -> bytes:
        return self._response


#: Texts of the outcome codes (5.3.3.6).
REFUSALS: Final = {
    SASL_AUTH: "the server did not accept the credentials",
    SASL_SYS: "the server could not authenticate us",
    3: "the server could not authenticate us, nor will it later",
    SASL_SYS_TEMP: "the server cannot authenticate us now",
}
