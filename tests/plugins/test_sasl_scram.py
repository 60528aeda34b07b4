"""sasl_scram: its logins, the refusals of the -PLUS variants, and that no answer shows whether a user exists."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient, ScramException

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
from trouter_plugins import sasl_plain, sasl_scram
from trouter_plugins.sasl_scram import ScramExchange
from trouter_plugins.users import Users, UsersFileError, parse_users
from trouter_plugins.users_file import put_user
from trouter_plugins.verifiers import MIN_ITERATIONS, PasswordHash, ScramVerifier

SECRET = "open s\u00e9same"
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1")
VERIFIERS = [ScramVerifier.make(mechanism, SECRET.encode(), MIN_ITERATIONS) for mechanism in MECHANISMS]
USERS = Users({"alice": VERIFIERS, "b\u00f6b, =smith": VERIFIERS, "carol": PasswordHash.make(SECRET.encode())})
BINDING = ("tls-server-end-point", b"what the certificate hashes to")
WRONG = Refused("wrong user or password", user="alice")


def exchange_with(
    mechanism: str = "SCRAM-SHA-256", *, bound: bool = False, plus_offered: bool = False
) -> ScramExchange:
    return ScramExchange(mechanism, USERS, dict([BINDING]) if bound else {}, plus_offered=plus_offered)


def client_of(
    user: str, password: str, mechanism: str = "SCRAM-SHA-256", binding: tuple[str, bytes] | None = None
) -> ScramClient:
    return ScramClient([mechanism], user, password, channel_binding=binding)


async def talk(exchange: SaslExchange, client: ScramClient) -> list[object]:
    """Return the server's answers to an honest client, in order; the client checks the server's proof."""
    answers: list[object] = [await exchange.respond(client.get_client_first().encode())]
    if isinstance(answers[-1], Challenge):
        client.set_server_first(answers[-1].data.decode())
        answers.append(await exchange.respond(client.get_client_final().encode()))
    if len(answers) > 1 and isinstance(answers[-1], Challenge):
        client.set_server_final(answers[-1].data.decode())
        answers.append(await exchange.respond(b""))
    return answers


# Answers


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["alice", "b\u00f6b, =smith"])
async def test_the_right_password_lets_in_and_the_server_proves_itself(mechanism: str, user: str) -> None:
    answers = await talk(exchange_with(mechanism), client_of(user, SECRET, mechanism))
    assert [type(answer) for answer in answers] == [Challenge, Challenge, Authenticated]
    assert answers[-1] == Authenticated(user)


@pytest.mark.parametrize(
    ("user", "password"), [("alice", "open"), ("nobody", SECRET), ("carol", SECRET), ("Alice", SECRET)]
)
async def test_a_wrong_password_and_an_unknown_user_go_the_same_steps(user: str, password: str) -> None:
    answers = await talk(exchange_with(), client_of(user, password))
    assert isinstance(answers[0], Challenge)
    assert answers[1:] == [Refused("wrong user or password", user=user)]


async def test_an_unknown_user_has_a_salt_that_stays_and_a_cost_like_others() -> None:
    async def challenge(user: str) -> list[str]:
        answer = await exchange_with().respond(f"n,,n={user},r=nonce".encode())
        assert isinstance(answer, Challenge)
        return answer.data.decode().split(",")[1:]

    assert await challenge("nobody") == await challenge("nobody")
    assert await challenge("nobody") != await challenge("somebody")
    (_, known), (_, unknown) = await challenge("alice"), await challenge("nobody")
    assert known == unknown == f"i={MIN_ITERATIONS}"
    assert len((await challenge("alice"))[0]) == len((await challenge("nobody"))[0])


async def test_an_init_without_a_response_is_challenged_once() -> None:
    exchange = exchange_with()
    assert await exchange.respond(b"") == Challenge(b"")
    assert (await talk(exchange, client_of("alice", SECRET)))[-1] == Authenticated("alice")
    exchange = exchange_with()
    assert await exchange.respond(b"") == Challenge(b"")
    assert await exchange.respond(b"") == Refused("malformed SCRAM message")


async def test_words_after_the_proof_refuse() -> None:
    exchange, client = exchange_with(), client_of("alice", SECRET)
    first = await exchange.respond(client.get_client_first().encode())
    assert isinstance(first, Challenge)
    client.set_server_first(first.data.decode())
    assert isinstance(await exchange.respond(client.get_client_final().encode()), Challenge)
    assert await exchange.respond(b"more") == Refused("words after the proof", user="alice")
    assert await exchange.respond(b"") == Refused("the exchange is over")


async def test_a_proof_is_good_for_one_exchange() -> None:
    client = client_of("alice", SECRET)
    exchange = exchange_with()
    opening = client.get_client_first().encode()
    first = await exchange.respond(opening)
    assert isinstance(first, Challenge)
    client.set_server_first(first.data.decode())
    proof = client.get_client_final().encode()
    again = exchange_with()
    assert isinstance(await again.respond(opening), Challenge)
    assert await again.respond(proof) == WRONG
    assert isinstance(await exchange.respond(proof), Challenge)


MALFORMED = {
    "nothing like it": b"hello",
    "no nonce": b"n,,n=alice",
    "empty nonce": b"n,,n=alice,r=",
    "no user": b"n,,n=,r=x",
    "another authorization id": b"n,a=root,n=alice,r=x",
    "an extension that must be understood": b"n,,m=x,n=alice,r=x",
    "bound, by the mechanism that is not": b"p=tls-server-end-point,,n=alice,r=x",
    "an unknown flag": b"z,,n=alice,r=x",
    "not UTF-8": b"n,,n=ali\xffce,r=x",
    "NUL in the user": b"n,,n=ali\0ce,r=x",
    "a bad escape": b"n,,n=ali=2ce,r=x",
    "too long": b"n,,n=alice,r=" + b"x" * sasl_scram.MAX_MESSAGE_BYTES,
}


@pytest.mark.parametrize("response", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_first_message_is_refused(response: bytes) -> None:
    answer = await exchange_with().respond(response)
    assert isinstance(answer, Refused)
    assert not answer.temporary


@pytest.mark.parametrize(
    "last", [b"", b"c=biws", b"c=biws,r=x,p=", b"c=biws,r=NONCE,p=AAAA", b"c=!,r=NONCE,p=AAAA", b"\xff"]
)
async def test_a_malformed_proof_is_refused(last: bytes) -> None:
    exchange = exchange_with()
    first = await exchange.respond(b"n,,n=alice,r=x")
    assert isinstance(first, Challenge)
    nonce = first.data.split(b",")[0].removeprefix(b"r=")
    assert await exchange.respond(last.replace(b"NONCE", nonce)) == WRONG


@given(st.lists(st.binary(max_size=200) | st.text(alphabet="nyp=,ar:x1-", max_size=60).map(str.encode), max_size=5))
async def test_any_bytes_are_answered_and_let_no_user_in(responses: list[bytes]) -> None:
    exchange = exchange_with()
    for response in responses:
        answer = await exchange.respond(response)
        assert isinstance(answer, Challenge | Refused)


@given(st.binary(max_size=300))
async def test_any_proof_is_refused(proof: bytes) -> None:
    exchange = exchange_with()
    assert isinstance(await exchange.respond(b"n,,n=alice,r=x"), Challenge)
    assert await exchange.respond(proof) == WRONG


# Channels


async def test_a_bound_exchange_lets_in_over_the_same_channel_only() -> None:
    name = "SCRAM-SHA-256-PLUS"
    answers = await talk(exchange_with(name, bound=True), client_of("alice", SECRET, name, BINDING))
    assert answers[-1] == Authenticated("alice")
    other = (BINDING[0], b"what somebody else's hashes to")
    assert (await talk(exchange_with(name, bound=True), client_of("alice", SECRET, name, other)))[1:] == [WRONG]


@pytest.mark.parametrize(
    "first", [b"n,,n=alice,r=x", b"y,,n=alice,r=x", b"p=tls-unique,,n=alice,r=x", b"p=,,n=alice,r=x"]
)
async def test_a_bound_mechanism_wants_the_binding_that_there_is(first: bytes) -> None:
    assert await exchange_with("SCRAM-SHA-256-PLUS", bound=True).respond(first) == Refused("malformed SCRAM message")


async def test_a_client_that_saw_no_bound_mechanism_is_accepted_only_where_none_is_offered() -> None:
    assert isinstance(await exchange_with().respond(b"y,,n=alice,r=x"), Challenge)
    assert isinstance(await exchange_with(plus_offered=True).respond(b"y,,n=alice,r=x"), Refused)
    assert isinstance(await exchange_with(plus_offered=True).respond(b"n,,n=alice,r=x"), Challenge)


# Through a real manager


@pytest.fixture
def users_file(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    put_user(path, "alice", SECRET.encode(), MECHANISMS)
    return path


@pytest.fixture
def plugins(users_file: Path) -> Plugins:
    plugins = Plugins([sasl_plain, sasl_scram])
    plugins.configure(RouterFacts("QDR.A", sasl_users_file=str(users_file)))
    return plugins


def peer_of(*named: str, encrypted: bool = False, bindings: tuple[tuple[str, bytes], ...] = ()) -> PeerFacts:
    listener = ListenerFacts("here", "", "amqp", sasl_mechanisms=named)
    return PeerFacts(1, listener, "192.0.2.1", 40000, encrypted=encrypted, loopback=False, channel_bindings=bindings)


@pytest.mark.parametrize(
    ("peer", "offered"),
    [
        (peer_of(), ("SCRAM-SHA-512", "SCRAM-SHA-256")),
        (peer_of("SCRAM-SHA-1"), ("SCRAM-SHA-1",)),
        (peer_of("PLAIN"), ()),
        (peer_of(encrypted=True), ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")),
        (
            peer_of(encrypted=True, bindings=(BINDING,)),
            ("SCRAM-SHA-512-PLUS", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"),
        ),
        (peer_of("scram-sha-256", "scram-sha-256-plus", bindings=(BINDING,)), ("SCRAM-SHA-256", "SCRAM-SHA-256-PLUS")),
    ],
    ids=str,
)
def test_the_offered_mechanisms_fit_the_users_file_and_the_channel(
    plugins: Plugins, peer: PeerFacts, offered: tuple[str, ...]
) -> None:
    assert plugins.sasl_mechanisms_for(peer) == offered
    assert all(plugins.open_sasl(mechanism, peer) is not None for mechanism in offered)


async def test_a_user_of_the_file_gets_in(plugins: Plugins) -> None:
    for peer, mechanism, binding in (
        (peer_of(), "SCRAM-SHA-512", None),
        (peer_of(bindings=(("tls-exporter", b"x"), BINDING)), "SCRAM-SHA-512-PLUS", BINDING),
    ):
        exchange = plugins.open_sasl(mechanism, peer)
        assert exchange is not None
        assert (await talk(exchange, client_of("alice", SECRET, mechanism, binding)))[-1] == Authenticated("alice")
    assert not plugins.faults


async def test_a_client_that_was_not_offered_bound_mechanisms_is_refused(plugins: Plugins) -> None:
    for named, kind in (((), Refused), (("SCRAM-SHA-256",), Challenge)):
        exchange = plugins.open_sasl("SCRAM-SHA-256", peer_of(*named, bindings=(BINDING,)))
        assert exchange is not None
        assert isinstance(await exchange.respond(b"y,,n=alice,r=x"), kind)


def test_without_verifiers_nothing_is_served(tmp_path: Path) -> None:
    put_user(tmp_path / "users", "alice", SECRET.encode(), ())
    plugins = Plugins([sasl_scram])
    plugins.configure(RouterFacts("QDR.A", sasl_users_file=str(tmp_path / "users")))
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ()
    plugins.configure(RouterFacts("QDR.A"))
    assert plugins.sasl_mechanisms(ListenerFacts("here", "", "amqp")) == ()


def test_a_file_with_errors_refuses_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "users").touch(0o600)
    (tmp_path / "users").write_text("alice:secret\n")
    with pytest.raises(ConfigurationRefused, match="line 1: neither"):
        Plugins([sasl_scram]).configure(RouterFacts("QDR.A", sasl_users_file=str(tmp_path / "users")))


# The file


def test_a_verifier_survives_formatting_and_parsing() -> None:
    for verifier in VERIFIERS:
        again = ScramVerifier.parse(verifier.format())
        assert again == verifier
        assert again.fits(SECRET.encode())
        assert not again.fits(b"open sesame")
        assert not again.fits(b"\0")
        assert SECRET not in repr(verifier)
        assert base64.b64encode(verifier.stored_key).decode() not in repr(verifier)


def test_the_verifier_of_the_standards_example() -> None:
    line = (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
        "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )
    assert ScramVerifier.parse(line).fits(b"pencil")  # RFC 7677, 3


def test_plain_can_do_with_a_verifier_and_prefers_scrypt() -> None:
    users = Users({"alice": VERIFIERS, "bob": [VERIFIERS[0], PasswordHash.make(b"other")]})
    assert users.verify("alice", SECRET.encode())
    assert not users.verify("alice", b"other")
    assert users.verify("bob", b"other")
    assert not users.verify("bob", SECRET.encode())
    assert not users.verify("nobody", SECRET.encode())


GOOD = VERIFIERS[1].format()


@pytest.mark.parametrize(
    ("hashes", "problem"),
    [
        (f"{GOOD} {GOOD}", "two hashes of a kind"),
        (f"{GOOD}  {VERIFIERS[0].format()}", "neither"),
        (GOOD.replace("4096", "4095"), "takes from 4096"),
        (GOOD.replace("4096", "999999999"), "takes from 4096"),
        (GOOD.replace("SHA-256", "SHA-512"), "keys of 64"),
        (GOOD.replace("SHA-256", "MD5"), "neither"),
        (GOOD[:-4], "keys of 32"),
        (GOOD.rpartition(":")[0] + ":=", "neither"),
        ("SCRAM-SHA-256$4096:c2FsdA==$" + GOOD.rpartition("$")[2], "a salt of 12"),
    ],
    ids=range(9),
)
def test_a_bad_verifier_is_named_and_not_quoted(hashes: str, problem: str) -> None:
    with pytest.raises(UsersFileError) as error:
        parse_users(f"alice:{hashes}\n".encode())
    (reported,) = error.value.problems
    assert problem in reported
    assert GOOD[30:60] not in reported


def test_a_password_that_scram_cannot_carry_is_refused_without_being_shown(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SCRAM does not allow") as error:
        put_user(tmp_path / "users", "alice", b"se\x07cret")
    assert "se\x07cret" not in str(error.value)
    assert error.value.__cause__ is None
    put_user(tmp_path / "users", "alice", b"se\x07cret", ())


def test_the_client_of_scramp_refuses_another_server() -> None:
    client = client_of("alice", SECRET)
    first = client.get_client_first().split("r=")[1]
    client.set_server_first(f"r={first}x,s={base64.b64encode(b's' * 16).decode()},i=4096")
    client.get_client_final()
    with pytest.raises(ScramException):
        client.set_server_final("v=AAAA")
