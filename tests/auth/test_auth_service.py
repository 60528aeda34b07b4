"""The router's client of authentication services against a scripted one over TCP: every row of security.md 3.2-3.4."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from scramp import ScramClient, ScramMechanism

from tests.auth_double import ALICE, AUTHZ, IDENTITY, Double, Script, Wire, plain, says_no, service, stops_before, words
from tests.certificates import Authority
from tests.clock import Clock
from tests.routers import DEADLINE_S
from trouter.auth.auth_service import RemoteAuthService, ServiceTerms
from trouter.auth.breaker import FAILURES, PAUSE_S, Breaker
from trouter.auth.grants import BadGrant, permissions_of, user_of
from trouter.config import load
from trouter.connections.registry import Connections
from trouter.hooks import (
    MAX_PERMISSIONS,
    Authenticated,
    AuthServiceFacts,
    AuthSession,
    Challenge,
    ListenerFacts,
    PeerFacts,
    Permissions,
    Plugins,
    Refused,
)
from trouter.records import Alarm, Record
from trouter.telemetry.recorder import Recorder
from trouter.tls.secure import Secure
from trouter.wire.framing import AMQP_HEADER, SASL_HEADER
from trouter.wire.performatives import (
    Close,
    Error,
    Open,
    SaslChallenge,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from trouter.wire.types import Array, Described, Symbol

pytestmark = pytest.mark.attack

LISTENER = ListenerFacts("here", "127.0.0.1", "amqp", auth_service="there")
PEER = PeerFacts(1, LISTENER, "192.0.2.1", 40000, encrypted=True, loopback=False)
CREDENTIALS = b"\0alice\0secret"
#: A time-out that a test waits for, and one that only a hang reaches.
SHORT_S, LONG_S = 0.05, 60.0


def remote(
    port: int, timeout_s: float = LONG_S, realm: str | None = None, secure: Secure | None = None, **terms: Any
) -> RemoteAuthService:
    facts = AuthServiceFacts("there", "127.0.0.1", str(port), realm, timeout_s)
    profile = "" if secure is None else "tls"
    return RemoteAuthService(ServiceTerms(facts, profile, **terms), secure or bare(), Recorder())


def bare() -> Secure:
    return Secure(Plugins(), Connections(), Recorder())


async def trusting(certificate: Path) -> Secure:
    """Return TLS settings that verify services by an authority's certificate."""
    secure = bare()
    text = f"sslProfile {{ name: tls, caCertFile: {certificate} }}\n"
    text += "authServicePlugin { name: there, host: 127.0.0.1, sslProfile: tls }\n"
    (await secure.prepare(load(text=text))).apply()
    return secure


@contextmanager
def closed_port() -> Iterator[int]:
    """Yield a port on which no process listens."""
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


async def begun(asked: RemoteAuthService) -> AuthSession:
    session = await asked.begin(PEER)
    assert not isinstance(session, Refused), session
    return session


async def logged_in(asked: RemoteAuthService, mechanism: str = "PLAIN", response: bytes | None = CREDENTIALS) -> Any:
    """Return the answer to the first response."""
    session = await begun(asked)
    try:
        return await session.start(mechanism, response)
    finally:
        session.close()


async def at_its_time_out(
    clock: trio.testing.MockClock, stopped: threading.Event, ask: Callable[[], Awaitable[Any]]
) -> Any:
    """Return the answer of a service that has LONG_S and sets ``stopped``; check that it comes then and not before.

    The clock stands until the service has stopped, so that the machine may be as slow as it likes.
    """
    answers: list[Any] = []
    answered = threading.Event()

    async def call() -> None:
        answers.append(await ask())
        answered.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        assert await trio.to_thread.run_sync(stopped.wait, DEADLINE_S)
        clock.jump(LONG_S - 1)
        await trio.testing.wait_all_tasks_blocked()
        assert answers == []
        clock.jump(1)
        assert await trio.to_thread.run_sync(answered.wait, DEADLINE_S)
    return answers[0]


async def answer_to(properties: Mapping[Any, Any] | None, **terms: Any) -> Any:
    with service(plain(properties)) as double:
        return await logged_in(remote(double.port, **terms))


# 3.1: frames on the wire


async def test_the_service_gets_the_mechanism_the_response_and_the_host_name() -> None:
    def script(wire: Wire) -> None:
        init = wire.offer("PLAIN")
        double.seen += [init.mechanism, init.initial_response, init.hostname]
        double.seen.append(wire.let_in({IDENTITY: ALICE, AUTHZ: {"a": words("recv")}}))

    with service(script) as double:
        answer = await logged_in(remote(double.port, realm="example.com"), "plain", b"\0alice\0\xff\0")
    assert answer == Authenticated("alice", permissions=Permissions(("a",)))
    mechanism, response, hostname, opened = double.seen
    assert (mechanism, response, hostname) == ("plain", b"\0alice\0\xff\0", "example.com")
    assert isinstance(opened, Open)
    assert (opened.container_id, opened.hostname, opened.channel_max) == ("", "127.0.0.1", 32767)
    assert opened.desired_capabilities == ("ADDRESS-AUTHZ",)
    assert opened.properties is not None
    assert set(opened.properties) == {"product", "version"}


@pytest.mark.parametrize("response", [None, b""])
async def test_an_empty_initial_response_stays_empty_or_absent(response: bytes | None) -> None:
    def script(wire: Wire) -> None:
        init = wire.offer("ANONYMOUS")
        double.seen.append((init.initial_response, init.hostname))
        wire.let_in({IDENTITY: ALICE})

    with service(script) as double:
        assert isinstance(await logged_in(remote(double.port), "ANONYMOUS", response), Authenticated)
    assert double.seen == [(response, None)]


async def test_challenges_and_responses_are_relayed_unchanged_for_many_rounds() -> None:
    def script(wire: Wire) -> None:
        wire.offer("X-MANY")
        for number in range(15):
            wire.say(SaslChallenge(bytes([number, 0, 255])))
            double.seen.append(wire.expect(SaslResponse).response)
        wire.let_in({IDENTITY: ALICE}, b"last word")

    with service(script) as double:
        session = await begun(remote(double.port))
        answer = await session.start("X-MANY", None)
        for number in range(15):
            assert answer == Challenge(bytes([number, 0, 255]))
            answer = await session.respond(bytes([255, number]))
        assert answer == Authenticated("alice", b"last word", permissions=Permissions())
        session.close()
    assert double.seen == [bytes([255, number]) for number in range(15)]


async def test_a_proof_of_scram_comes_with_the_outcome() -> None:
    mechanism = ScramMechanism("SCRAM-SHA-256")
    salt, stored_key, server_key, rounds = mechanism.make_auth_info("secret", iteration_count=4096)

    def script(wire: Wire) -> None:
        server = mechanism.make_server(lambda _: (salt, stored_key, server_key, rounds))
        init = wire.offer("SCRAM-SHA-256")
        assert init.initial_response is not None
        server.set_client_first(init.initial_response.decode())
        wire.say(SaslChallenge(server.get_server_first().encode()))
        server.set_client_final(wire.expect(SaslResponse).response.decode())
        wire.let_in({IDENTITY: ALICE}, server.get_server_final().encode())

    client = ScramClient(["SCRAM-SHA-256"], "alice", "secret")
    with service(script) as double:
        session = await begun(remote(double.port))
        challenge = await session.start("SCRAM-SHA-256", client.get_client_first().encode())
        assert isinstance(challenge, Challenge)
        client.set_server_first(challenge.data.decode())
        answer = await session.respond(client.get_client_final().encode())
        session.close()
    assert isinstance(answer, Authenticated)
    client.set_server_final(answer.data.decode())


async def test_each_peer_has_a_connection_of_its_own() -> None:
    with service(plain({IDENTITY: ALICE})) as double:
        asked = remote(double.port)
        for _ in range(3):
            assert isinstance(await logged_in(asked), Authenticated)
        assert double.accepted == 3


# 3.2: the user


@pytest.mark.parametrize("key", [Symbol("sub"), "sub"])
async def test_the_subject_is_the_user(key: str) -> None:
    answer = await answer_to({IDENTITY: {key: "alice"}})
    assert answer == Authenticated("alice", permissions=Permissions())


LIES: dict[str, Mapping[Any, Any] | None] = {
    "no properties": None,
    "no identity": {AUTHZ: {"*": words("recv")}},
    "a plain string": {IDENTITY: "alice"},
    "an empty map": {IDENTITY: {}},
    "the empty user": {IDENTITY: {"sub": ""}},
    "a symbol": {IDENTITY: {"sub": Symbol("alice")}},
    "octets": {IDENTITY: {"sub": b"alice"}},
    "a number": {IDENTITY: {"sub": 7}},
    "null": {IDENTITY: {"sub": None}},
    "a prefix of the key": {Symbol("authenticated"): ALICE},
    "one letter of the key": {Symbol("a"): ALICE},
    "more than the key": {Symbol("authenticated-identity2"): ALICE},
    "the key in capitals": {Symbol("Authenticated-Identity"): ALICE},
    "a prefix of the subject": {IDENTITY: {"s": "alice", "su": "alice"}},
    "a line break": {IDENTITY: {"sub": "alice\nbob"}},
    "a NUL": {IDENTITY: {"sub": "alice\0"}},
    "a name without end": {IDENTITY: {"sub": "a" * 256}},
    "rights that are no map": {IDENTITY: ALICE, AUTHZ: "*"},
    "rights that are a list": {IDENTITY: ALICE, AUTHZ: ["*"]},
    "an address that is a symbol": {IDENTITY: ALICE, AUTHZ: {Symbol("a"): words("recv")}},
    "an address that is a number": {IDENTITY: ALICE, AUTHZ: {7: words("recv")}},
    "the empty address": {IDENTITY: ALICE, AUTHZ: {"": words("recv")}},
    "words that are a string": {IDENTITY: ALICE, AUTHZ: {"a": "recv"}},
    "words that are a map": {IDENTITY: ALICE, AUTHZ: {"a": {"recv": True}}},
    "words that are described": {IDENTITY: ALICE, AUTHZ: {"a": Array("string", ["recv"], ["x"])}},
    "words that are null": {IDENTITY: ALICE, AUTHZ: {"a": None}},
    "too many rights": {IDENTITY: ALICE, AUTHZ: {f"a{n}": ["recv", "send"] for n in range(MAX_PERMISSIONS // 2 + 1)}},
}


@pytest.mark.parametrize("properties", LIES.values(), ids=LIES)
async def test_a_service_that_lies_lets_no_user_in(
    properties: Mapping[Any, Any] | None, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await answer_to(properties, authz_optional=True)
    assert isinstance(answer, Refused)
    assert not answer.temporary
    assert "authServicePlugin there admits a user, but its description of the user is invalid" in caplog.text


#: Answers of existing services that leave something out or use another form, and the users of these.
FORGIVEN: dict[str, tuple[Mapping[Any, Any] | None, str]] = {
    "no properties": (None, "anonymous"),
    "no identity": ({AUTHZ: {"*": words("recv")}}, "anonymous"),
    "a plain string": ({IDENTITY: "alice"}, "alice"),
    "a symbol": ({IDENTITY: Symbol("alice")}, "alice"),
    "the empty string": ({IDENTITY: ""}, "anonymous"),
}


@pytest.mark.parametrize("name", ["service", ""])
@pytest.mark.parametrize(("properties", "user"), FORGIVEN.values(), ids=FORGIVEN)
async def test_fields_that_existing_services_leave_out_are_forgiven_unless_defaults_are_secure(
    properties: Mapping[Any, Any] | None, user: str, name: str
) -> None:
    def script(wire: Wire) -> None:
        wire.offer("PLAIN")
        wire.let_in(properties, container_id=name)

    for lenient in (True, False):
        with service(script) as double:
            answer = await logged_in(remote(double.port, authz_optional=True, lenient=lenient))
        if lenient:
            assert isinstance(answer, Authenticated)
            assert answer.user == user
        else:
            assert isinstance(answer, Refused)


@pytest.mark.parametrize("lie", [name for name in LIES if name not in FORGIVEN or name == "a symbol"])
async def test_wrong_fields_are_never_forgiven(lie: str) -> None:
    answer = await answer_to(LIES[lie], authz_optional=True, lenient=True)
    prefixes = isinstance(answer, Authenticated) and answer.user == "anonymous"
    assert prefixes == ("key" in lie), answer  # another key is no identity


def test_a_key_that_is_no_symbol_is_another() -> None:
    with pytest.raises(BadGrant, match="authenticated-identity is missing"):
        user_of({"authenticated-identity": ALICE})
    assert permissions_of({"address-authz": {"*": ["recv"]}}, optional=False) == Permissions()


# 3.3: the rights

RIGHTS: dict[str, tuple[Mapping[Any, Any], Permissions]] = {
    "nothing": ({}, Permissions()),
    "one of each": ({"in": words("recv"), "out": words("send")}, Permissions(("in",), ("out",))),
    "both": ({"a": words("send", "recv")}, Permissions(("a",), ("a",))),
    "a list": ({"a": ["send"]}, Permissions((), ("a",))),
    "all": ({"*": words("recv")}, Permissions(("*",))),
    "a prefix": ({"a/*": words("recv")}, Permissions(("a/*",))),
    "the user": ({"${user}/x": words("send")}, Permissions((), ("${user}/x",))),
    "a comma": ({"a,b": words("recv")}, Permissions(("a,b",))),
    "one letter": ({"a": words("s")}, Permissions()),
    "more letters": ({"a": words("sendX", "recvX", "receive")}, Permissions()),
    "the empty word": ({"a": words("")}, Permissions()),
    "no word": ({"a": words()}, Permissions()),
    "capitals": ({"a": words("SEND", "Recv")}, Permissions()),
    "symbols": ({"a": Array("symbol", [Symbol("send"), Symbol("recv")])}, Permissions()),
    "symbols in a list": ({"a": [Symbol("send")]}, Permissions()),
    "numbers": ({"a": [1, None, Described(Symbol("x"), "send")]}, Permissions()),
}  # fmt: skip


@pytest.mark.parametrize(("rights", "expected"), RIGHTS.values(), ids=RIGHTS)
@pytest.mark.parametrize("optional", [False, True])
async def test_rights(rights: Mapping[Any, Any], expected: Permissions, optional: bool) -> None:
    answer = await answer_to({IDENTITY: ALICE, AUTHZ: rights}, authz_optional=optional)
    assert answer == Authenticated("alice", permissions=expected)


@pytest.mark.parametrize("named", ["a", "address", "address-authz-2", "Address-Authz"])
@pytest.mark.parametrize(("optional", "expected"), [(False, Permissions()), (True, None)])
async def test_rights_that_are_missing(named: str, optional: bool, expected: Permissions | None) -> None:
    answer = await answer_to({IDENTITY: ALICE, Symbol(named): {"*": words("recv")}}, authz_optional=optional)
    assert answer == Authenticated("alice", permissions=expected)


# 3.4: failures


async def test_a_service_that_is_not_there() -> None:
    with closed_port() as port:
        answer = await remote(port).begin(PEER)
    assert answer == Refused("the authentication service there: it cannot be reached: Connection refused", True)


async def test_a_service_that_accepts_no_connection() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        answer = await remote(listening.getsockname()[1], SHORT_S).begin(PEER)
    assert isinstance(answer, Refused)
    assert answer.temporary


@pytest.mark.parametrize("stage", ["header", "mechanisms"])
async def test_a_service_that_ends_before_its_outcome_is_a_temporary_refusal(stage: str) -> None:
    with service(stops_before(stage, dies=True)) as double:
        answer = await remote(double.port).begin(PEER)
    assert isinstance(answer, Refused)
    assert answer.temporary
    assert "within" not in answer.reason


@pytest.mark.parametrize("stage", ["outcome", "response", "amqp header", "open"])
async def test_a_service_that_ends_later(stage: str) -> None:
    with service(stops_before(stage, dies=True)) as double:
        session = await begun(remote(double.port))
        if stage == "response":
            assert await session.start("PLAIN", CREDENTIALS) == Challenge(b"?")
        answer = await (session.respond(b"!") if stage == "response" else session.start("PLAIN", CREDENTIALS))
        session.close()
    assert isinstance(answer, Refused)
    assert answer.temporary


@pytest.mark.parametrize("code", [1, 2, 3, 4, 200])
async def test_a_refusal_of_the_service_is_a_refused_login(code: int) -> None:
    with service(says_no(code)) as double:
        answer = await logged_in(remote(double.port))
    assert answer == Refused("the authentication service refused the user", temporary=code == 4)


def rubbish_for_a_header(wire: Wire) -> None:
    wire.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    wire.until_gone()


def amqp_instead_of_sasl(wire: Wire) -> None:
    wire.raw(AMQP_HEADER)
    wire.until_gone()


def an_outcome_for_mechanisms(wire: Wire) -> None:
    wire.header(SASL_HEADER)
    wire.say(SaslOutcome(0))
    wire.until_gone()


def a_frame_without_end(wire: Wire) -> None:
    wire.header(SASL_HEADER)
    wire.raw(b"\x7f\xff\xff\xff\x02\x01\x00\x00")
    wire.until_gone()


@pytest.mark.parametrize(
    "script", [rubbish_for_a_header, amqp_instead_of_sasl, an_outcome_for_mechanisms, a_frame_without_end]
)
async def test_a_service_that_breaks_the_rules_at_once(script: Script) -> None:
    with service(script) as double:
        answer = await remote(double.port).begin(PEER)
    assert answer == Refused("the authentication service there: it violated the protocol", temporary=True)


def mechanisms_again(wire: Wire) -> None:
    wire.offer("PLAIN")
    wire.say(SaslMechanisms(("PLAIN",)))
    wire.until_gone()


def an_open_before_the_outcome(wire: Wire) -> None:
    wire.offer("PLAIN")
    wire.say(Open(container_id="x", properties={IDENTITY: ALICE}), 0)
    wire.until_gone()


def a_close_for_an_open(wire: Wire) -> None:
    wire.offer("PLAIN")
    wire.say(SaslOutcome(0))
    wire.header(AMQP_HEADER)
    wire.say(Close(Error("amqp:unauthorized-access")), 0)
    wire.until_gone()


def challenges_without_end(wire: Wire) -> None:
    wire.offer("PLAIN")
    while True:
        wire.say(SaslChallenge(b""))
        wire.expect(SaslResponse)


@pytest.mark.parametrize(
    "script", [mechanisms_again, an_open_before_the_outcome, a_close_for_an_open, challenges_without_end]
)
async def test_a_service_that_breaks_the_rules_later(script: Script) -> None:
    with service(script) as double:
        session = await begun(remote(double.port))
        answer = await session.start("PLAIN", CREDENTIALS)
        rounds = 0
        while isinstance(answer, Challenge):
            rounds += 1
            assert rounds < 100
            answer = await session.respond(b"")
        session.close()
    assert isinstance(answer, Refused)
    assert answer.temporary


async def test_a_cancelled_login_leaves_no_connection_behind() -> None:
    with service(stops_before("mechanisms")) as double, trio.CancelScope() as gone:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(remote(double.port).begin, PEER)
            while not double.accepted:
                await trio.lowlevel.checkpoint()
            gone.cancel()
    # The script has ended; a failure of it would be raised when the double closes.


# R-3c: passwords in the clear


async def offer_of(double: Double, **terms: Any) -> tuple[str, ...]:
    session = await begun(remote(double.port, **terms))
    session.close()
    return tuple(session.mechanisms)


MANY = ("SCRAM-SHA-256", "PLAIN", "LOGIN", "OAUTHBEARER", "XOAUTH2", "ANONYMOUS")


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [("no", ("SCRAM-SHA-256", "ANONYMOUS")), ("loopback", MANY), ("yes", MANY)],
)
async def test_passwords_in_the_clear_on_this_machine(allowed: str, expected: tuple[str, ...]) -> None:
    with service(plain({IDENTITY: ALICE}, *MANY)) as double:
        assert await offer_of(double, allow_insecure_plain=allowed) == expected


# R-3d: TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("right"), "right")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("wrong"), "wrong")


async def test_a_service_that_is_verified(authority: Authority) -> None:
    secure = await trusting(authority.certificate)
    with service(plain({IDENTITY: ALICE}), authority.server("127.0.0.1")) as double:
        answer = await logged_in(remote(double.port, secure=secure, allow_insecure_plain="no"))
    assert answer == Authenticated("alice", permissions=Permissions())


async def test_a_service_of_another_authority_is_refused(authority: Authority, stranger: Authority) -> None:
    secure = await trusting(authority.certificate)
    with service(plain({IDENTITY: ALICE}), stranger.server("127.0.0.1")) as double:
        answer = await remote(double.port, secure=secure).begin(PEER)
    assert isinstance(answer, Refused)
    assert answer.temporary
    assert "certificate" in answer.reason


async def test_a_service_of_another_name_is_refused(authority: Authority) -> None:
    secure = await trusting(authority.certificate)
    with service(plain({IDENTITY: ALICE}), authority.server("127.0.0.2")) as double:
        answer = await remote(double.port, secure=secure).begin(PEER)
    assert isinstance(answer, Refused)
    assert "is not for 127.0.0.1" in answer.reason


async def test_a_service_without_tls_is_refused(authority: Authority) -> None:
    secure = await trusting(authority.certificate)
    with service(rubbish_for_a_header) as double:
        answer = await remote(double.port, secure=secure).begin(PEER)
    assert isinstance(answer, Refused)
    assert "TLS" in answer.reason


async def test_a_service_that_hangs_in_the_handshake(authority: Authority, mock_clock: trio.testing.MockClock) -> None:
    secure, stopped = await trusting(authority.certificate), threading.Event()
    with service(stops_before("header", stopped=stopped)) as double:
        ask = partial(remote(double.port, secure=secure).begin, PEER)
        answer = await at_its_time_out(mock_clock, stopped, ask)
    assert isinstance(answer, Refused)
    assert answer.temporary
    assert "its mechanisms did not come within 60 s" in answer.reason


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("stage", ["header", "mechanisms"])
async def test_a_service_that_stalls_before_the_login(
    authority: Authority, mock_clock: trio.testing.MockClock, stage: str, encrypted: bool
) -> None:
    secure = await trusting(authority.certificate) if encrypted else None
    stopped = threading.Event()
    with service(stops_before(stage, stopped=stopped), authority.server("127.0.0.1") if encrypted else None) as double:
        ask = partial(remote(double.port, secure=secure).begin, PEER)
        answer = await at_its_time_out(mock_clock, stopped, ask)
    assert isinstance(answer, Refused)
    assert answer.temporary
    assert "its mechanisms did not come within 60 s" in answer.reason


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("stage", ["outcome", "response", "amqp header", "open"])
async def test_a_service_that_stalls_later(
    authority: Authority, mock_clock: trio.testing.MockClock, stage: str, encrypted: bool
) -> None:
    secure = await trusting(authority.certificate) if encrypted else None
    stopped = threading.Event()
    with service(stops_before(stage, stopped=stopped), authority.server("127.0.0.1") if encrypted else None) as double:
        session = await begun(remote(double.port, secure=secure))
        ask = partial(session.start, "PLAIN", CREDENTIALS)
        if stage == "response":
            assert await ask() == Challenge(b"?")
            ask = partial(session.respond, b"!")
        answer = await at_its_time_out(mock_clock, stopped, ask)
        session.close()
    assert isinstance(answer, Refused)
    assert answer.temporary
    assert answer.reason.endswith("within 60 s")


#: The first bytes of an answer.
HALVES = {
    "a header": SASL_HEADER[:5],
    "a frame's size": SASL_HEADER + b"\0\0",
    "a frame": SASL_HEADER + b"\0\0\0\x30\2\1\0\0\0\x53",
}


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
async def test_half_an_answer_is_none(authority: Authority, half: bytes, encrypted: bool, dies: bool) -> None:
    def script(wire: Wire) -> None:
        wire.raw(half)
        if not dies:
            wire.until_gone()

    secure = await trusting(authority.certificate) if encrypted else None
    with service(script, authority.server("127.0.0.1") if encrypted else None) as double:
        answer = await remote(double.port, LONG_S if dies else SHORT_S, secure=secure).begin(PEER)
    assert isinstance(answer, Refused)
    assert answer.temporary


async def test_an_answer_that_comes_byte_by_byte_has_no_more_time_than_another(authority: Authority) -> None:
    """A time-out for each read would let a service hold a client for as long as it likes."""

    def script(wire: Wire) -> None:
        wire.raw(SASL_HEADER + b"\0\1\0\0\2\1\0\0")
        while True:  # until the router closes: the frame has 65,536 bytes
            wire.raw(b"\0")
            stop.wait(SHORT_S / 10)

    stop = threading.Event()
    secure = await trusting(authority.certificate)
    with service(script, authority.server("127.0.0.1")) as double:
        answer = await remote(double.port, SHORT_S * 4, secure=secure).begin(PEER)
    assert isinstance(answer, Refused)
    assert answer.temporary


async def test_without_its_profile_a_service_gets_no_question() -> None:
    with service(plain({IDENTITY: ALICE})) as double:
        answer = await remote(double.port, secure=bare()).begin(PEER)
    assert answer == Refused("the authentication service there: sslProfile tls is gone", temporary=True)


# R-3b: the breaker


def broken(told: list[bool]) -> tuple[Breaker, Clock]:
    clock = Clock()
    breaker = Breaker(told.append, clock)
    for _ in range(FAILURES):
        assert breaker.admit()
        breaker.failed()
    return breaker, clock


def test_the_breaker_opens_only_after_failures_in_a_row() -> None:
    told: list[bool] = []
    breaker = Breaker(told.append, Clock())
    for _ in range(3):
        for _ in range(FAILURES - 1):
            breaker.failed()
        breaker.succeeded()
    assert breaker.admit()
    assert told == []


def test_an_open_breaker_admits_no_login_until_its_pause_is_over() -> None:
    told: list[bool] = []
    breaker, clock = broken(told)
    assert told == [True]
    clock.now_s = PAUSE_S - 0.001
    assert not breaker.admit()
    clock.now_s = PAUSE_S
    assert breaker.admit()
    assert not breaker.admit()
    breaker.failed()
    assert not breaker.admit()
    assert told == [True]
    clock.now_s += PAUSE_S
    assert breaker.admit()
    breaker.reached()
    assert told == [True, False]
    assert breaker.admit()
    assert breaker.admit()


def test_one_failed_try_opens_the_breaker_again() -> None:
    told: list[bool] = []
    breaker, clock = broken(told)
    clock.now_s = PAUSE_S
    assert breaker.admit()
    breaker.reached()
    breaker.failed()
    assert not breaker.admit()
    assert told == [True, False, True]


def test_a_login_that_tries_and_goes_away_leaves_the_try_to_another() -> None:
    breaker, clock = broken([])
    clock.now_s = PAUSE_S
    assert breaker.admit()
    breaker.gave_up()
    assert breaker.admit()


class Alarms:
    """A sink for alarms; it gets no other record."""

    def __init__(self) -> None:
        self.taken: list[Alarm] = []

    def put(self, record: Record) -> None:
        assert isinstance(record, Alarm)
        self.taken.append(record)


async def test_a_service_that_fails_again_and_again_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    clock = Clock()
    with service(stops_before("mechanisms", dies=True)) as double:
        recorder, alarms = Recorder(), Alarms()
        recorder.add(alarms)
        asked = RemoteAuthService(remote(double.port).terms, bare(), recorder, clock)
        for _ in range(FAILURES + 3):
            assert isinstance(await asked.begin(PEER), Refused)
        assert double.accepted == FAILURES
        assert "fails repeatedly" in caplog.text
        double.script = plain({IDENTITY: ALICE})
        assert isinstance(await asked.begin(PEER), Refused)
        clock.now_s = PAUSE_S
        assert isinstance(await logged_in(asked), Authenticated)
        assert "answers again" in caplog.text
    assert [(alarm.name, alarm.subject, alarm.state) for alarm in alarms.taken] == [
        ("authService", "there", "raised"),
        ("authService", "there", "cleared"),
    ]


async def test_refused_logins_and_crashes_after_them_do_not_open_the_breaker() -> None:
    with service(says_no(1)) as double:
        asked = remote(double.port)
        for _ in range(FAILURES + 1):
            assert isinstance(await logged_in(asked), Refused)
        double.script = stops_before("outcome", dies=True)
        for _ in range(FAILURES + 1):
            assert isinstance(await logged_in(asked), Refused)
        assert not asked.breaker.open


async def test_a_service_that_dies_before_its_open_opens_the_breaker() -> None:
    with service(stops_before("open", dies=True)) as double:
        asked = remote(double.port)
        for _ in range(FAILURES):
            assert isinstance(await logged_in(asked), Refused)
        assert asked.breaker.open
