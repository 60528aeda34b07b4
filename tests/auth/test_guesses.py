"""The table of the ways in: whoever guesses at a user is delayed, locked out, logged, counted and audited (security.md
8.1), whichever mechanism and plugin judge the guesses. Guesses at each, at the real thing.
"""

from __future__ import annotations

import hmac
import shutil
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.auth.test_login import Outcomes
from tests.certificates import Authority
from tests.e2e.test_auth_service_example import example, hashed
from tests.plugins import test_sasl_cyrus as cyrus
from tests.plugins import test_sasl_pam as pam
from tests.plugins.tokens import AUDIENCE, EC_KEY, ISSUER, key_set, token
from trouter.admission.lockout import LockoutRules, pair_of
from trouter.client import AuthenticationFailed, External, Plain, Scram
from trouter.client.sasl import SaslMechanism
from trouter.hooks import Authenticated, Challenge, PeerFacts, Refused, SaslExchange, hookimpl
from trouter.testing import open_router
from trouter.testing.conformance import captured
from trouter_plugins.users_file import put_user

pytestmark = [
    pytest.mark.own_process,
    pytest.mark.slow,
    pytest.mark.attack,
]  # Cyrus SASL has one configuration in a process

#: More than lock a user out.
GUESSES = LockoutRules().lock_after + 2
RIGHT, WRONG = "wonderland", "looking glass"
HOST = "127.0.0.1"
#: Each wait is as short as this, so that all take no time; a power of two, so that sums of times are exact.
WAIT_S = 2.0**-10
ROUTER = "router {{ id: R, authLockout: enforce{} }}\n"
LISTENER = "listener {{ host: 127.0.0.1, port: 0, authenticatePeer: yes, allowInsecurePlain: loopback, {} }}\n"


class Way(NamedTuple):
    """One way in."""

    configuration: str
    right: Callable[[], SaslMechanism]
    wrong: Callable[[], SaslMechanism]
    #: The name that the wrong ones try; empty for a plugin and a mechanism that name nobody.
    tried: str = "alice"
    plugin: object = None
    tls: ssl.SSLContext | None = None


class Says:
    """A client of any mechanism; each of its messages is a function of the challenge, None for no initial response."""

    def __init__(self, name: str, *messages: Callable[[bytes], bytes] | None) -> None:
        self.name = name
        self._messages = iter(messages)

    async def start(self) -> bytes | None:
        first = next(self._messages)
        return None if first is None else first(b"")

    async def respond(self, challenge: bytes) -> bytes:
        message = next(self._messages)
        assert message is not None
        return message(challenge)


def told(text: str | bytes) -> Callable[[bytes], bytes]:
    return lambda _: text if isinstance(text, bytes) else text.encode()


def listening(router: str, mechanism: str) -> str:
    """Return a configuration with further attributes of the router, and a listener for one mechanism."""
    return ROUTER.format(router and f", {router}") + LISTENER.format(f"saslMechanisms: {mechanism}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guesses")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a configuration of Cyrus SASL, and alice in its database."""
    if cyrus.missing():
        pytest.skip(cyrus.missing())
    return cyrus.write_site(tmp_path_factory.mktemp("cyrus"))


# --- the ways in


def users_file(mechanism: str) -> Callable[[Path], Way]:
    def way(folder: Path) -> Way:
        users = folder / "users"
        put_user(users, "alice", RIGHT.encode())
        configuration = listening(f"usersFile: {users}", mechanism)
        return Way(configuration, lambda: by(mechanism, RIGHT), lambda: by(mechanism, WRONG))

    return way


def by(mechanism: str, password: str) -> SaslMechanism:
    """Return alice as a client with a password."""
    if mechanism == "PLAIN":
        return Plain("alice", password)
    if mechanism.startswith("SCRAM"):
        return Scram(mechanism, "alice", password)
    if mechanism == "DIGEST-MD5":
        answer = lambda challenge: cyrus.digest("alice", password, challenge.decode())  # noqa: E731
        return Says(mechanism, None, answer, told(b""))
    if mechanism == "CRAM-MD5":
        key = password.encode()
        return Says(mechanism, None, lambda asked: b"alice " + hmac.new(key, asked, "md5").hexdigest().encode())
    assert mechanism == "LOGIN"
    return Says(mechanism, None, told("alice"), told(password))


def cyrus_sasl(mechanism: str) -> Callable[[Path], Way]:
    def way(site: Path) -> Way:
        configuration = listening(f"saslConfigDir: {site}, saslConfigName: {cyrus.NAME}", mechanism)
        return Way(configuration, lambda: by(mechanism, RIGHT), lambda: by(mechanism, WRONG))

    return way


def bearing(mechanism: str) -> Callable[[Path], Way]:
    def way(folder: Path) -> Way:
        (folder / "keys").write_text(key_set())
        router = f'oauthIssuer: "{ISSUER}", oauthAudience: {AUDIENCE}, oauthJwks: {folder}/keys, oauthPlain: yes'
        good, forged = token(), token(EC_KEY, "ES256", "one")

        def client(text: str) -> SaslMechanism:
            clients: dict[str, SaslMechanism] = {
                "OAUTHBEARER": Says(mechanism, told(f"n,,\1auth=Bearer {text}\1\1"), told(b"\1")),
                "XOAUTH2": Says(mechanism, told(f"user=alice\1auth=Bearer {text}\1\1"), told(b"")),
                "PLAIN": Plain("alice", text),
            }
            return clients[mechanism]

        return Way(listening(router, mechanism), lambda: client(good), lambda: client(forged))

    return way


def certificate(folder: Path) -> Way:
    authority = Authority(folder, "authority")
    server, key = authority.pair(HOST)
    mine = authority.pair("127.0.0.2")  # its subject is CN=service
    trusted = ssl.create_default_context(cafile=authority.certificate)
    trusted.load_cert_chain(*mine)
    configuration = (
        ROUTER.format("")
        + f"sslProfile {{ name: tls, certFile: {server}, privateKeyFile: {key}, "
        + f"caCertFile: {authority.certificate} }}\n"
        + LISTENER.format("sslProfile: tls, requireSsl: yes, saslMechanisms: EXTERNAL")
    )
    return Way(configuration, External, lambda: External("root"), "CN=service", tls=trusted)


class Keys:
    """A plugin whose mechanism says nothing of users until one is right, and which names none in its refusals."""

    @hookimpl
    def sasl_mechanisms(self) -> list[str]:
        return ["HOUSE-KEY"]

    @hookimpl
    def open_sasl(self, peer: PeerFacts) -> SaslExchange:
        return self

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        return Authenticated("alice") if response == RIGHT.encode() else Refused("the key does not fit")


class Naming(Keys):
    """The same, and the client sends the user's name with the key."""

    async def respond(self, response: bytes) -> Challenge | Authenticated | Refused:
        user, _, key = response.decode().partition("\0")
        return Authenticated(user) if key == RIGHT else Refused("the key does not fit", user=user)


def plugin(_: Path) -> Way:
    def client(key: str) -> SaslMechanism:
        return Says("HOUSE-KEY", told(f"alice\0{key}"))

    configuration = listening("", "HOUSE-KEY")
    return Way(configuration, lambda: client(RIGHT), lambda: client(WRONG), plugin=Naming())


def nameless_plugin(_: Path) -> Way:
    configuration = listening("", "HOUSE-KEY")
    return Way(
        configuration,
        lambda: Says("HOUSE-KEY", told(RIGHT)),
        lambda: Says("HOUSE-KEY", told(WRONG)),
        tried="",
        plugin=Keys(),
    )


#: All that judges credentials: by its own name and mechanism.
WAYS: dict[str, Callable[[Path], Way]] = {
    "users file, PLAIN": users_file("PLAIN"),
    "users file, SCRAM-SHA-512": users_file("SCRAM-SHA-512"),
    "users file, SCRAM-SHA-256": users_file("SCRAM-SHA-256"),
    "tokens, OAUTHBEARER": bearing("OAUTHBEARER"),
    "tokens, XOAUTH2": bearing("XOAUTH2"),
    "tokens, PLAIN": bearing("PLAIN"),
    "certificate, EXTERNAL": certificate,
    "plugin": plugin,
    "plugin that names nobody": nameless_plugin,
}
CYRUS = ("PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "DIGEST-MD5", "CRAM-MD5", "LOGIN")


async def guess(way: Way) -> None:
    """Guess until the user is locked out, and more; assert the consequences."""
    outcomes = Outcomes()
    plugins = {} if way.plugin is None else {"keys": way.plugin}
    with captured() as lines:
        async with open_router(way.configuration, plugins) as router:
            services = router.process.services
            services.recorder.add(outcomes)
            lockout = services.guard.lockout
            lockout.rules = replace(lockout.rules, longest_delay_s=WAIT_S)
            async with router.connect(sasl=[way.right()], ssl_context=way.tls):
                pass
            for _ in range(GUESSES):
                with pytest.raises(AuthenticationFailed):
                    async with router.connect(sasl=[way.wrong()], ssl_context=way.tls):
                        pass
            state = lockout.state_of(pair_of(HOST, way.tried))
            assert state is not None, "the guesses were not counted"
            failures, wait_s, locked_s = state
            assert (failures, wait_s) == (GUESSES, WAIT_S), "the guesses were not delayed"
            assert services.recorder.denials.logins_denied == GUESSES
            guesses = [each for each in outcomes.told if not each.ok]
            assert [each.user for each in guesses] == [way.tried or None] * GUESSES, "the audit does not know the name"
            refusals = {line for line in lines if "Authentication failed" in line}
            assert len(refusals) == GUESSES
            assert all(f" user={way.tried!r} " in line for line in refusals), "the log does not know the name"
            if way.tried:
                assert locked_s > 0, "the user was not locked out"
                assert any(f"user {way.tried!r} is locked out at {HOST}" in line for line in lines)
                with pytest.raises(AuthenticationFailed):
                    async with router.connect(sasl=[way.right()], ssl_context=way.tls):
                        pass
                assert outcomes.told[-1].reason == "locked"
            else:  # nobody is locked out for the guesses of a host that many may share
                assert not locked_s
                async with router.connect(sasl=[way.right()], ssl_context=way.tls):
                    pass
    assert not [line for line in lines if WRONG in line or RIGHT in line]


@pytest.mark.parametrize("name", WAYS)
async def test_a_client_that_guesses_is_stopped(folder: Path, name: str) -> None:
    await guess(WAYS[name](folder))


@pytest.mark.parametrize("mechanism", CYRUS)
async def test_a_client_that_guesses_at_cyrus_sasl_is_stopped(site: Path, mechanism: str) -> None:
    way = cyrus_sasl(mechanism)(site)
    await guess(way)


write_service = pam.service


@pam.with_pam
async def test_a_client_that_guesses_at_pam_is_stopped(folder: Path, write_service: pam.WriteService) -> None:
    loader = shutil.which("db_load") or shutil.which("db5.3_load")
    if loader is None:
        pytest.skip("db_load of the package db-util is not installed, so there is no database for pam_userdb")
    pam.run([loader, "-T", "-t", "hash", str(folder / "pam.db")], f"alice\n{RIGHT}\n".encode())
    rule = f"required pam_userdb.so db={folder}/pam crypt=none"
    name = write_service(f"auth {rule}\naccount {rule}\n")
    await guess(Way(listening(f"pamService: {name}", "PLAIN"), lambda: by("PLAIN", RIGHT), lambda: by("PLAIN", WRONG)))


async def test_a_client_that_guesses_at_an_authentication_service_is_stopped(folder: Path) -> None:
    users = folder / "users.json"
    users.write_text(f'{{"alice": {{"password": "{hashed(RIGHT)}"}}}}')
    with example(users) as port:
        configuration = (
            ROUTER.format("")
            + f"authServicePlugin {{ name: there, host: 127.0.0.1, port: {port} }}\n"
            + LISTENER.format("saslPlugin: there")
        )
        await guess(Way(configuration, lambda: by("PLAIN", RIGHT), lambda: by("PLAIN", WRONG)))


class Left(Exception):
    """The client has read enough."""


def leaves(_: bytes) -> bytes:
    raise Left


async def test_a_client_that_leaves_when_it_is_told_why_has_been_counted(folder: Path) -> None:
    way = bearing("OAUTHBEARER")(folder)
    forged = f"n,,\1auth=Bearer {token(EC_KEY, 'ES256', 'one')}\1\1"
    async with open_router(way.configuration) as router:
        lockout = router.process.services.guard.lockout
        lockout.rules = replace(lockout.rules, longest_delay_s=WAIT_S)
        for _ in range(GUESSES):
            with pytest.raises(Left):
                async with router.connect(sasl=[Says("OAUTHBEARER", told(forged), leaves)]):
                    pass
        state = lockout.state_of(pair_of(HOST, "alice"))
        assert state is not None
        assert state[:2] == (GUESSES, WAIT_S)
        assert state[2] > 0
