"""SCRAM at the client: it proves the password without sending it, and the server has to prove itself, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramMechanism

from tests.client.conftest import StartRouter
from tests.client.support import Server, serving
from trouter.client import AuthenticationFailed, Scram, connect
from trouter.hooks import Plugins, RouterFacts
from trouter.mechanisms import SCRAM
from trouter_plugins import sasl_scram
from trouter_plugins.users_file import put_user

PASSWORD = "open s\u00e9same:/@"


@pytest.fixture
async def scrammed(start_router: StartRouter, tmp_path: Path) -> str:
    """Return the URL of a router that admits alice only, by SCRAM."""
    users = tmp_path / "users"
    put_user(users, "alice", PASSWORD.encode(), ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1"))
    plugins = Plugins([sasl_scram])
    plugins.configure(RouterFacts("R", sasl_users_file=str(users)))
    router = await start_router(
        f"router {{ id: R, usersFile: {users} }}\n"
        "listener { host: 127.0.0.1, port: 0, authenticatePeer: yes, "
        "saslMechanisms: SCRAM-SHA-1 SCRAM-SHA-256 SCRAM-SHA-512 }\n",
        plugins,
    )
    return router.url


async def test_scram_lets_in_and_needs_no_encryption(scrammed: str) -> None:
    async with connect(scrammed, user="alice", password=PASSWORD) as connection:
        assert connection.usable
    for name in SCRAM:
        async with connect(scrammed, sasl=[Scram(name, "alice", PASSWORD)]) as connection:
            assert connection.usable


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("bob", PASSWORD)])
async def test_scram_with_a_wrong_password_does_not(scrammed: str, user: str, password: str) -> None:
    with pytest.raises(AuthenticationFailed, match="did not accept the credentials"):
        async with connect(scrammed, user=user, password=password):
            pytest.fail("it is wrong")


@pytest.mark.usefixtures("guard")
async def test_by_default_a_password_is_proven_rather_than_sent() -> None:
    server = Server(mechanisms=("PLAIN", "SCRAM-SHA-256", "ANONYMOUS"))
    server.sasl_answers = [1]
    async with serving(server):
        with pytest.raises(AuthenticationFailed):
            async with connect(server.url, user="alice", password=PASSWORD):
                pytest.fail("it was refused")
    assert server.sasl.mechanism == "SCRAM-SHA-256"
    assert PASSWORD.encode() not in b"".join(server.responses)


class ScramTalk:
    """trouter's client, and scramp's server."""

    def __init__(self, name: str = "SCRAM-SHA-256") -> None:
        self.client = Scram(name, "alice", PASSWORD)
        mechanism = ScramMechanism(name)
        known = mechanism.make_auth_info(PASSWORD, iteration_count=4096)
        self.server = mechanism.make_server(lambda user: known if user == "alice" else None)

    async def to_the_proof(self) -> str:
        """Return the server's final message, after which the client sends only the empty response."""
        self.server.set_client_first(((await self.client.start()) or b"").decode())
        proof = await self.client.respond(self.server.get_server_first().encode())
        self.server.set_client_final(proof.decode())
        return str(self.server.get_server_final())


@pytest.mark.parametrize("name", SCRAM)
async def test_the_servers_proof_may_be_a_challenge_or_stand_in_the_outcome(name: str) -> None:
    talk = ScramTalk(name)
    assert await talk.client.respond((await talk.to_the_proof()).encode()) == b""
    talk.client.check_success(None)
    talk = ScramTalk(name)
    talk.client.check_success((await talk.to_the_proof()).encode())


@pytest.mark.parametrize("additional", [None, b"", b"v=AAAA", b"e=other-error", b"\xff", b"v=" + b"A" * 5000])
async def test_success_without_the_servers_proof_is_refused(additional: bytes | None) -> None:
    talk = ScramTalk()
    with pytest.raises(AuthenticationFailed):
        talk.client.check_success(additional)
    await talk.client.start()
    with pytest.raises(AuthenticationFailed):
        talk.client.check_success(additional)
    await talk.to_the_proof()
    with pytest.raises(AuthenticationFailed):
        talk.client.check_success(additional)


@pytest.mark.usefixtures("guard")
@pytest.mark.parametrize("rounds", [0, 1])
async def test_a_server_that_succeeds_before_its_proof_is_refused(rounds: int) -> None:
    server = Server(mechanisms=("SCRAM-SHA-256",))

    class Echoing(Scram):
        async def start(self) -> bytes | None:
            first = (await super().start()) or b""
            nonce = first.rpartition(b"r=")[2]
            server.sasl_answers = [*([b"r=" + nonce + b"x,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096"] * rounds), 0]
            return first

    async with serving(server):
        with pytest.raises(AuthenticationFailed, match="did not prove"):
            async with connect(server.url, sasl=[Echoing("SCRAM-SHA-256", "alice", PASSWORD)]):
                pytest.fail("it proved nothing")


async def test_an_iteration_count_beyond_the_limit_is_refused_before_the_work() -> None:
    client = Scram("SCRAM-SHA-256", "alice", PASSWORD)
    nonce = ((await client.start()) or b"").rpartition(b"r=")[2]
    with pytest.raises(AuthenticationFailed, match="more than 2000000 iterations"):
        await client.respond(b"r=" + nonce + b"x,s=c2FsdHNhbHRzYWx0c2FsdA==,i=9999999")


@given(st.lists(st.binary(max_size=80) | st.text("rsiv=e,x", max_size=20).map(str.encode), min_size=1, max_size=4))
async def test_any_bytes_of_a_server_prove_nothing(challenges: list[bytes]) -> None:
    client = Scram("SCRAM-SHA-256", "alice", PASSWORD)
    await client.start()
    with pytest.raises(AuthenticationFailed):  # noqa: PT012 - which of them is refused does not matter
        for challenge in challenges:
            await client.respond(challenge)


@pytest.mark.parametrize(
    ("name", "user", "password", "binding"),
    [
        ("SCRAM-MD5", "u", "p", None),
        ("PLAIN", "u", "p", None),
        ("SCRAM-SHA-256", "", "p", None),
        ("SCRAM-SHA-256", "u", "", None),
        ("SCRAM-SHA-256-PLUS", "u", "p", None),
        ("SCRAM-SHA-256", "u", "p", ("tls-unique", b"x")),
    ],
)
def test_unusable_scram_arguments_are_refused_at_once(
    name: str, user: str, password: str, binding: tuple[str, bytes] | None
) -> None:
    with pytest.raises(ValueError, match="SCRAM"):
        Scram(name, user, password, binding)


async def test_a_password_that_scram_cannot_carry_is_not_shown() -> None:
    client = Scram("SCRAM-SHA-256", "alice", "se\x07cret")
    with pytest.raises(AuthenticationFailed, match="does not allow") as error:
        await client.start()
    assert "se\x07cret" not in repr(error.value)
    assert "cret" not in repr(client)
