"""sasl_cyrus: real users of a real sasldb, through libsasl2; unknown users get the same answers as known ones."""

from __future__ import annotations

import base64
import ctypes
import gc
import hashlib
import hmac
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient

from trouter.hooks import (
    Authenticated,
    Challenge,
    ConfigurationRefused,
    ListenerFacts,
    PeerFacts,
    Plugins,
    Refused,
    RouterFacts,
    SaslExchange,
)
from trouter_plugins import sasl_anonymous, sasl_cyrus, sasl_scram
from trouter_plugins.sasl_cyrus import Cyrus, CyrusExchange
from trouter_plugins.users_file import put_user

NAME = "trouter-test"


def missing() -> str:
    """Return the missing program, "" if there is none."""
    if shutil.which("saslpasswd2") is None:
        return "saslpasswd2 of the package sasl2-bin is not installed, so there can be no sasldb"
    try:
        ctypes.CDLL("libsasl2.so.2")
    except OSError:
        return "libsasl2.so.2 is not installed"
    return ""


pytestmark = [
    pytest.mark.own_process,  # a program that uses libsasl2 as a server too has its own configuration
    pytest.mark.skipif(bool(missing()), reason=missing() or "it is there"),
]


def write_site(folder: Path) -> Path:
    """Write a configuration of Cyrus SASL and a database with alice."""
    command = ["saslpasswd2", "-p", "-c", "-f", str(folder / "sasldb2"), "alice"]
    subprocess.run(command, input=b"wonderland", check=True)
    (folder / f"{NAME}.conf").write_text(
        f"pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {folder}/sasldb2\n"
    )
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one site for the process: the library reads its configuration once."""
    if Cyrus.source is not None:
        return Path(Cyrus.source[0])
    return write_site(tmp_path_factory.mktemp("cyrus"))


@pytest.fixture
def plugins(site: Path) -> Plugins:
    plugins = Plugins([sasl_cyrus])
    plugins.configure(RouterFacts("QDR.A", sasl_config_dir=str(site), sasl_config_name=NAME))
    return plugins


def peer_of(*named: str) -> PeerFacts:
    listener = ListenerFacts("here", "", "amqp", sasl_mechanisms=named)
    return PeerFacts(1, listener, "192.0.2.1", 40000, encrypted=True, loopback=False)


def exchange_of(plugins: Plugins, mechanism: str) -> SaslExchange:
    if mechanism not in Cyrus.mechanisms:
        pytest.skip(f"the modules of Cyrus SASL that are installed do not have {mechanism}")
    exchange = plugins.open_sasl(mechanism, peer_of(mechanism))
    assert exchange is not None
    return exchange


def plain(user: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{user}\0{password}".encode()


async def scram(exchange: SaslExchange, user: str, password: str, mechanism: str) -> list[object]:
    """Return the answers to a client, which checks the server's proof."""
    client = ScramClient([mechanism], user, password)
    answers: list[object] = [await exchange.respond(client.get_client_first().encode())]
    if isinstance(answers[-1], Challenge):
        client.set_server_first(answers[-1].data.decode())
        answers.append(await exchange.respond(client.get_client_final().encode()))
    if len(answers) > 1 and isinstance(answers[-1], Challenge):
        client.set_server_final(answers[-1].data.decode())
        answers.append(await exchange.respond(b""))
    return answers


# Real users


@pytest.mark.parametrize(
    ("response", "lets_in"),
    [
        (plain("alice", "wonderland"), True),
        (plain("alice", "wonderland", "alice"), True),
        (plain("alice", "looking glass"), False),
        (plain("bob", "wonderland"), False),
        (plain("alice", "wonderland", "bob"), False),
        (b"\0alice\0", False),
        (b"alice", False),
    ],
)
async def test_plain(plugins: Plugins, response: bytes, lets_in: bool) -> None:
    answer = await exchange_of(plugins, "PLAIN").respond(response)
    if lets_in:
        assert answer == Authenticated("alice")
    else:
        assert isinstance(answer, Refused)
        assert not answer.temporary


async def test_an_init_without_a_response_is_challenged(plugins: Plugins) -> None:
    exchange = exchange_of(plugins, "PLAIN")
    assert await exchange.respond(b"") == Challenge(b"")
    assert await exchange.respond(plain("alice", "wonderland")) == Authenticated("alice")
    assert await exchange.respond(plain("alice", "wonderland")) == Refused("the exchange is over")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1"])
async def test_scram_lets_in_and_treats_wrong_and_unknown_alike(plugins: Plugins, mechanism: str) -> None:
    answers = await scram(exchange_of(plugins, mechanism), "alice", "wonderland", mechanism)
    assert [type(answer) for answer in answers] == [Challenge, Challenge, Authenticated]
    assert answers[-1] == Authenticated("alice")
    for user in ("alice", "bob"):
        answers = await scram(exchange_of(plugins, mechanism), user, "wrong", mechanism)
        assert [type(answer) for answer in answers] == [Challenge, Refused]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1"])
async def test_the_challenge_to_an_unknown_user_looks_like_a_real_one(plugins: Plugins, mechanism: str) -> None:
    async def challenge(user: str) -> list[bytes]:
        answer = await exchange_of(plugins, mechanism).respond(f"n,,n={user},r=nonce".encode())
        assert isinstance(answer, Challenge)
        return answer.data.split(b",")

    known, unknown = await challenge("alice"), await challenge("bob")
    assert [len(part) for part in known] == [len(part) for part in unknown]
    assert known[2] == unknown[2]
    for user in ("alice", "bob"):
        once, again = await challenge(user), await challenge(user)
        assert once[1] == again[1]
        assert once[0] != again[0]


async def test_cram_md5(plugins: Plugins) -> None:
    for user, password, kind in (
        ("alice", b"wonderland", Authenticated),
        ("alice", b"x", Refused),
        ("bob", b"", Refused),
    ):
        exchange = exchange_of(plugins, "CRAM-MD5")
        asked = await exchange.respond(b"")
        assert isinstance(asked, Challenge)
        answer = await exchange.respond(f"{user} {hmac.new(password, asked.data, 'md5').hexdigest()}".encode())
        assert isinstance(answer, kind)


async def test_digest_md5(plugins: Plugins) -> None:
    for password, kind in (("wonderland", Authenticated), ("x", Refused)):
        exchange = exchange_of(plugins, "DIGEST-MD5")
        asked = await exchange.respond(b"")
        assert isinstance(asked, Challenge)
        answer = await exchange.respond(digest("alice", password, asked.data.decode()))
        if isinstance(answer, Challenge):  # the server's proof
            assert answer.data.startswith(b"rspauth=")
            answer = await exchange.respond(b"")
        assert isinstance(answer, kind)


def digest(user: str, password: str, challenge: str) -> bytes:
    """Return a client's response (RFC 2831, 2.1.2)."""
    directives = dict(re.findall(r'(\w+)="?([^",]*)"?', challenge))
    realm, nonce, ours, uri = directives["realm"], directives["nonce"], "b3Vycw", "amqp/here"
    secret = hashlib.md5(f"{user}:{realm}:{password}".encode()).digest()
    first = hashlib.md5(secret + f":{nonce}:{ours}".encode()).hexdigest()
    second = hashlib.md5(f"AUTHENTICATE:{uri}".encode()).hexdigest()
    response = hashlib.md5(f"{first}:{nonce}:00000001:{ours}:auth:{second}".encode()).hexdigest()
    return (
        f'charset=utf-8,username="{user}",realm="{realm}",nonce="{nonce}",nc=00000001,cnonce="{ours}",'
        f'digest-uri="{uri}",response={response},qop=auth'
    ).encode()


@given(
    st.sampled_from(["PLAIN", "SCRAM-SHA-256", "DIGEST-MD5", "CRAM-MD5", "NTLM"]),
    st.lists(st.binary(max_size=200), max_size=4),
)
async def test_any_bytes_are_answered_and_let_no_user_in(site: Path, mechanism: str, responses: list[bytes]) -> None:
    Cyrus.start(str(site), NAME)
    assert Cyrus.library is not None
    exchange = CyrusExchange(mechanism, Cyrus.library, Cyrus.calling)
    for response in responses:
        assert isinstance(await exchange.respond(response), Challenge | Refused)


async def test_an_over_long_response_never_reaches_the_library(plugins: Plugins) -> None:
    exchange = exchange_of(plugins, "PLAIN")
    assert await exchange.respond(b"x" * (sasl_cyrus.MAX_RESPONSE_BYTES + 1)) == Refused("an over-long response")


async def test_conversations_that_no_connection_has_are_disposed_of(plugins: Plugins) -> None:
    library: Any = Cyrus.library
    for _ in range(50):
        await exchange_of(plugins, "CRAM-MD5").respond(b"")
    gc.collect()
    assert library._dropped
    await exchange_of(plugins, "PLAIN").respond(plain("alice", "wonderland"))
    assert len(library._dropped) <= 1


# Waiting


class Stuck:
    """A library whose call does not return until the test permits it."""

    def __init__(self) -> None:
        self.gate = threading.Event()

    def converse(self) -> Any:
        self.gate.wait(60)
        raise AssertionError("nobody waits for this any more")


async def test_a_library_that_stalls_is_left_behind(autojump_clock: trio.testing.MockClock) -> None:
    stuck: Any = Stuck()
    calling = trio.CapacityLimiter(1)
    for _ in range(2):
        exchange = CyrusExchange("PLAIN", stuck, calling)
        assert await exchange.respond(b"x") == Refused("Cyrus SASL took too long", temporary=True)
        assert await exchange.respond(b"x") == Refused("the exchange is over")
    stuck.gate.set()


async def test_logins_beyond_the_queue_are_refused_as_temporary() -> None:
    stuck: Any = Stuck()
    calling = trio.CapacityLimiter(1)
    async with calling, trio.open_nursery() as nursery:
        for _ in range(sasl_cyrus.MAX_WAITING):
            nursery.start_soon(CyrusExchange("PLAIN", stuck, calling).respond, b"x")
        await trio.testing.wait_all_tasks_blocked()
        answer = await CyrusExchange("PLAIN", stuck, calling).respond(b"x")
        assert answer == Refused("too many wait for Cyrus SASL", temporary=True)
        nursery.cancel_scope.cancel()


# Configuration


WEAK = {"CRAM-MD5", "DIGEST-MD5", "LOGIN", "NTLM", "SCRAM-SHA-1"}


def test_what_the_library_allows_is_served(plugins: Plugins) -> None:
    offered = plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp"))
    assert {"CRAM-MD5", "DIGEST-MD5", "SCRAM-SHA-1", "PLAIN"} <= set(offered)
    assert not {"ANONYMOUS", "EXTERNAL"} & set(offered)
    assert offered.index("SCRAM-SHA-256") < offered.index("SCRAM-SHA-1") < offered.index("DIGEST-MD5")
    assert offered.index("DIGEST-MD5") < offered.index("PLAIN")


def test_with_secure_defaults_weak_mechanisms_are_served_only_where_the_listener_names_them(site: Path) -> None:
    plugins = Plugins([sasl_cyrus])
    plugins.configure(RouterFacts("QDR.A", sasl_config_dir=str(site), sasl_config_name=NAME, secure_defaults=True))
    offered = plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp"))
    assert not {"ANONYMOUS", "EXTERNAL"} & set(offered)
    assert not WEAK & set(offered)
    assert "PLAIN" in offered
    named = ListenerFacts("here", "", "amqp", sasl_mechanisms=("cram-md5", "anonymous"))
    assert plugins.sasl_mechanisms(named) == ("CRAM-MD5",)
    assert plugins.open_sasl("DIGEST-MD5", peer_of("CRAM-MD5")) is None


def test_cyrus_serves_only_when_configured(plugins: Plugins) -> None:
    plugins.configure(RouterFacts("QDR.A"))
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ()
    assert plugins.open_sasl("PLAIN", peer_of()) is None


def test_another_configuration_needs_another_process(plugins: Plugins, site: Path) -> None:
    with pytest.raises(ConfigurationRefused, match="cannot change while the router runs"):
        plugins.configure(RouterFacts("QDR.A", sasl_config_dir=str(site), sasl_config_name="other"))


@pytest.mark.parametrize(
    ("name", "problem"), [("../x", "not the name of a file"), ("other", "No such file"), ("", "not the")]
)
def test_a_configuration_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, problem: str
) -> None:
    monkeypatch.setattr(Cyrus, "source", None)
    with pytest.raises(ConfigurationRefused, match=problem):
        Plugins([sasl_cyrus]).configure(
            RouterFacts("QDR.A", sasl_config_dir=str(tmp_path), sasl_config_name=name, secure_defaults=True)
        )


def test_a_configuration_that_cannot_be_read_serves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Cyrus, "source", None)
    plugins = Plugins([sasl_cyrus])
    plugins.configure(RouterFacts("QDR.A", sasl_config_dir=str(tmp_path), sasl_config_name="other"))
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ()


def test_users_of_two_kinds_are_an_error_that_names_both(site: Path, tmp_path: Path) -> None:
    put_user(tmp_path / "users", "alice", b"wonderland")
    plugins = Plugins([sasl_anonymous, sasl_cyrus, sasl_scram])
    with pytest.raises(ConfigurationRefused, match=r"SCRAM-SHA-256 is served by .*cyrus and by .*scram at once"):
        plugins.configure(
            RouterFacts(
                "QDR.A",
                sasl_users_file=str(tmp_path / "users"),
                sasl_config_dir=str(site),
                sasl_config_name=NAME,
                listeners=(ListenerFacts("here", "", "amqp"),),
            )
        )


def test_no_password_is_shown() -> None:
    from trouter_plugins.cyrus_library import Step

    assert "wonderland" not in repr(Step(0, base64.b64encode(b"wonderland") + b"wonderland"))
