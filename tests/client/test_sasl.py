"""Logins: the mechanisms, their order, their responses, and the error of a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.client.conftest import StartRouter
from tests.client.support import Server, serving
from trouter.client import (
    ACCEPTED,
    Anonymous,
    AuthenticationFailed,
    ConnectionClosed,
    External,
    Message,
    Plain,
    SaslMechanism,
    connect,
)
from trouter.hooks import Plugins, RouterFacts
from trouter_plugins.users_file import put_user

PASSWORD = "open s\u00e9same:/@"

pytestmark = pytest.mark.usefixtures("guard")


@pytest.fixture
async def guarded(start_router: StartRouter, tmp_path: Path) -> str:
    """Return the URL of a router that admits alice only."""
    users = tmp_path / "users"
    put_user(users, "alice", PASSWORD.encode())
    plugins = Plugins.load()
    plugins.configure(RouterFacts("R", sasl_users_file=str(users)))
    router = await start_router(
        f"router {{ id: R, usersFile: {users} }}\n"
        "listener { host: 127.0.0.1, port: 0, saslMechanisms: PLAIN, authenticatePeer: yes, "
        "allowInsecurePlain: loopback }\n",
        plugins,
    )
    return router.url


async def test_a_password_lets_in(guarded: str) -> None:
    async with (
        connect(guarded, user="alice", password=PASSWORD) as connection,
        connection.open_receiver("q") as receiver,
        connection.open_sender("q") as sender,
    ):
        tracker = await sender.submit(Message("a"))
        await (await receiver.receive()).accept()
        assert await tracker.outcome() == ACCEPTED


async def test_user_and_password_may_stand_in_the_url(guarded: str) -> None:
    url = guarded.replace("amqp://", "amqp://alice:open%20s%C3%A9same%3A%2F%40@")
    async with connect(url) as connection:
        assert connection.usable
    with pytest.raises(AuthenticationFailed):
        async with connect(url, user="bob"):
            pytest.fail("arguments precede the URL")


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("bob", PASSWORD)])
async def test_a_wrong_password_does_not(guarded: str, user: str, password: str) -> None:
    with pytest.raises(AuthenticationFailed, match="did not accept the credentials") as refused:
        async with connect(guarded, user=user, password=password):
            pytest.fail("it is wrong")
    assert refused.value.condition == "amqp:unauthorized-access"
    assert isinstance(refused.value, ConnectionClosed)
    assert password not in repr(refused.value)


async def test_without_a_mechanism_in_common_both_sides_are_named(guarded: str) -> None:
    with pytest.raises(
        AuthenticationFailed, match="the server offers the SASL mechanisms PLAIN, the client can use ANONYMOUS"
    ):
        async with connect(guarded):
            pytest.fail("ANONYMOUS is not offered")


async def test_the_preferred_mechanism_of_the_client_is_chosen() -> None:
    server = Server(mechanisms=("ANONYMOUS", "PLAIN", "EXTERNAL"))
    async with serving(server), connect(server.url, sasl=[External("me"), Plain("u", "p"), Anonymous()]):
        assert server.sasl.mechanism == "EXTERNAL"
        assert server.responses == [b"me"]


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        (Anonymous("trace"), b"trace"),
        (Plain("u", "p"), b"\0u\0p"),
        (Plain("u", "p", "admin"), b"admin\0u\0p"),
        (External(), b""),
    ],
)
async def test_each_mechanism_sends_its_response_initially_and_on_request(
    mechanism: SaslMechanism, response: bytes
) -> None:
    server = Server(mechanisms=(mechanism.name,))
    server.sasl_answers = [b"", 0]
    async with serving(server), connect(server.url, sasl=[mechanism]):
        assert server.responses == [response, response]


class Countdown:
    """A mechanism of the test that takes several rounds."""

    name = "COUNTDOWN"

    async def start(self) -> bytes | None:
        return None

    async def respond(self, challenge: bytes) -> bytes:
        await trio.lowlevel.checkpoint()
        if challenge == b"0":
            raise LookupError("nothing left")
        return b"%d" % (int(challenge) - 1)


async def test_a_custom_mechanism_may_take_several_rounds() -> None:
    server = Server(mechanisms=("COUNTDOWN",))
    server.sasl_answers = [b"3", b"2", 0]
    async with serving(server), connect(server.url, sasl=[Countdown()]) as connection:
        assert server.responses == [b"", b"2", b"1"]
        assert connection.usable


async def test_an_exception_of_a_mechanism_is_raised_to_the_caller() -> None:
    server = Server(mechanisms=("COUNTDOWN",))
    server.sasl_answers = [b"0"]
    async with serving(server):
        with pytest.raises(LookupError, match="nothing left"):
            async with connect(server.url, sasl=[Countdown()]):
                pytest.fail("it raised")


@pytest.mark.parametrize(("code", "why"), [(2, "could not"), (3, "nor will it"), (4, "now"), (9, "SASL outcome 9")])
async def test_each_refusal_has_its_reason(code: int, why: str) -> None:
    server = Server()
    server.sasl_answers = [code]
    async with serving(server):
        with pytest.raises(AuthenticationFailed, match=why):
            async with connect(server.url):
                pytest.fail("it was refused")


async def test_a_client_without_sasl_is_refused_by_a_server_that_requires_sasl(guarded: str) -> None:
    with pytest.raises(ConnectionClosed):
        async with connect(guarded, sasl=()):
            pytest.fail("SASL is required")


async def test_without_sasl_a_server_may_let_in(start_router: StartRouter) -> None:
    router = await start_router("router { id: R }\nlistener { host: 127.0.0.1, port: 0, authenticatePeer: no }\n")
    async with router.connect(sasl=()) as connection, connection.open_receiver("q") as receiver:
        assert receiver.usable


@pytest.mark.parametrize(("user", "password"), [("", "p"), ("u", ""), ("a\0b", "p"), ("u", "p\0")])
async def test_plain_needs_a_user_and_a_password(user: str, password: str) -> None:
    with pytest.raises(ValueError, match="PLAIN needs"):
        Plain(user, password)


async def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(Plain("u", "secret")) + repr(External("secret"))
