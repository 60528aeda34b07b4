"""sasl_oauth: the tokens that are accepted, their lifetime, the issuer's keys, and that no text shows a token."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
import trio
import trio.testing
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import Clock
from tests.plugins.tokens import (
    AUDIENCE,
    EC_KEY,
    ED_KEY,
    ISSUER,
    RSA_KEY,
    KeyServer,
    key_set,
    public,
    serving_keys,
    token,
)
from tests.routers import DEADLINE_S
from trouter.config import load
from trouter.config.facts import router_facts
from trouter.hooks import (
    MAX_PERMISSIONS,
    Authenticated,
    Challenge,
    ConfigurationRefused,
    ListenerFacts,
    PeerFacts,
    Permissions,
    Plugins,
    Refused,
    RouterFacts,
)
from trouter_plugins import oauth_keys, sasl_oauth, sasl_plain
from trouter_plugins.oauth_keys import Keys, KeysError, Unreachable, parse_keys
from trouter_plugins.oauth_rights import BadRights, permissions_of
from trouter_plugins.sasl_oauth import INVALID_TOKEN, BadToken, Judge, TokenExchange

pytestmark = pytest.mark.attack

TOKEN = token()


@pytest.fixture(scope="module")
def keys_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("issuer") / "keys.json"
    path.write_text(key_set())
    return path


@pytest.fixture
def judge(keys_file: Path) -> Judge:
    return Judge(ISSUER, AUDIENCE, "sub", Keys(str(keys_file)))


@pytest.fixture
def server() -> Iterator[KeyServer]:
    with serving_keys() as serving:
        yield serving


def bearer(what: str = TOKEN, authorization: str = "a=alice") -> bytes:
    return f"n,{authorization},\x01host=h\x01port=5672\x01auth=Bearer {what}\x01\x01".encode()


def xoauth2(what: str = TOKEN, user: str = "alice") -> bytes:
    return f"user={user}\x01auth=Bearer {what}\x01\x01".encode()


def plain(what: str = TOKEN, user: str = "alice") -> bytes:
    return f"\0{user}\0{what}".encode()


RESPONSES = {"OAUTHBEARER": bearer, "XOAUTH2": xoauth2, "PLAIN": plain}


# Tokens


@pytest.mark.parametrize("mechanism", RESPONSES)
async def test_a_token_authenticates_until_it_expires(judge: Judge, mechanism: str) -> None:
    until = time.time() + 100
    answer = await TokenExchange(mechanism, judge).respond(RESPONSES[mechanism](token(exp=until)))
    assert isinstance(answer, Authenticated)
    assert answer.user == "alice"
    assert answer.expires_at_s is not None
    assert int(until) <= answer.expires_at_s <= until + sasl_oauth.LEEWAY_S


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [
        (RSA_KEY, "RS256", "one"),
        (RSA_KEY, "RS512", None),
        (RSA_KEY, "PS256", "one"),
        (EC_KEY, "ES256", "two"),
        (EC_KEY, "ES256", None),
        (ED_KEY, "EdDSA", "three"),
    ],
)
async def test_each_kind_of_key_will_do(judge: Judge, key: Any, algorithm: str, kid: str | None) -> None:
    assert (await judge.judge(token(key, algorithm, kid))).user == "alice"


OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = RSA_KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def signed_with_public_key() -> str:
    """Return a token signed with the public key as a symmetric one."""
    header, claims = (
        jwt.utils.base64url_encode(json.dumps(part).encode()).decode() for part in ({"alg": "HS256", "kid": "one"}, {})
    )
    from jwt.algorithms import HMACAlgorithm

    signature = HMACAlgorithm(HMACAlgorithm.SHA256).sign(f"{header}.{claims}".encode(), PEM)
    return f"{header}.{claims}.{jwt.utils.base64url_encode(signature).decode()}"


BAD = {
    "expired": token(exp=time.time() - 3600),
    "not yet valid": token(nbf=time.time() + 3600),
    "issued tomorrow": token(iat=time.time() + 86400),
    "without an end": token(exp=None),
    "with an end that is no number": token(exp="never"),
    "of another issuer": token(iss="https://other.example"),
    "of no issuer": token(iss=None),
    "for another audience": token(aud="other"),
    "without an audience": token(aud=None),
    "without a user": token(sub=None),
    "with an empty user": token(sub=""),
    "with a user in two lines": token(sub="al\nice"),
    "with a user too long": token(sub="a" * 256),
    "signed with another key": token(OTHER_KEY),
    "that names a key of another type": token(RSA_KEY, "RS256", "two"),
    "that names no key there is": token(kid="four"),
    "of another kind": token(header={"typ": "secevent+jwt"}),
    "with extensions that must be understood": token(header={"crit": ["b64"], "b64": True}),
    "not signed": jwt.encode({"sub": "alice"}, "", algorithm="none"),
    "signed with a secret": token("x" * 64, "HS256", "one"),
    "signed with the public key as a secret": signed_with_public_key(),
    "cut": TOKEN[:-10],
    "in two parts": TOKEN.rpartition(".")[0],
    "no token": "a.b.c",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
async def test_any_other_token_is_refused_and_not_quoted(judge: Judge, bad: str) -> None:
    with pytest.raises(BadToken) as error:
        await judge.judge(bad)
    assert error.value.__cause__ is None
    assert not any(part and part in str(error.value) for part in bad.split(".") if len(part) > 3)
    exchange = TokenExchange("PLAIN", judge)
    answer = await exchange.respond(plain(bad))
    assert isinstance(answer, Refused)
    assert not answer.temporary


async def test_a_moment_of_difference_between_clocks_is_forgiven(judge: Judge) -> None:
    assert (await judge.judge(token(exp=time.time() - 5, iat=time.time() + 5))).user == "alice"


async def test_the_claim_that_names_the_user_can_be_chosen(keys_file: Path) -> None:
    judge = Judge(ISSUER, AUDIENCE, "email", Keys(str(keys_file)))
    assert (await judge.judge(token(email="alice@example"))).user == "alice@example"
    others: tuple[object, ...] = (7, None, ["alice"], {})
    for email in others:
        with pytest.raises(BadToken, match="claim email"):
            await judge.judge(token(email=email))


# Exchanges


@pytest.mark.parametrize(
    ("mechanism", "response", "lets_in"),
    [
        ("OAUTHBEARER", bearer(authorization=""), True),
        ("OAUTHBEARER", bearer(authorization="a=bob"), False),
        ("XOAUTH2", xoauth2(user=""), True),
        ("XOAUTH2", xoauth2(user="bob"), False),
        ("PLAIN", plain(user="bob"), False),
    ],
)
async def test_a_token_is_for_its_own_user_only(judge: Judge, mechanism: str, response: bytes, lets_in: bool) -> None:
    exchange = TokenExchange(mechanism, judge)
    answer = await exchange.respond(response)
    if isinstance(answer, Challenge):
        answer = await exchange.respond(b"\x01")
    assert isinstance(answer, Authenticated if lets_in else Refused)


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "XOAUTH2"])
async def test_a_refusal_is_reported_first_and_then_done(judge: Judge, mechanism: str) -> None:
    exchange = TokenExchange(mechanism, judge)
    assert await exchange.respond(b"") == Challenge(b"")
    answer = await exchange.respond(RESPONSES[mechanism](BAD["expired"]))
    assert isinstance(answer, Challenge)
    assert answer.data == INVALID_TOKEN
    for response in (b"\x01", RESPONSES[mechanism]()):
        answer = await exchange.respond(response)
        assert isinstance(answer, Refused)
        assert answer.reason == "the token is not accepted: its claims do not hold (ExpiredSignatureError)"


@pytest.mark.parametrize("mechanism", RESPONSES)
async def test_one_exchange_judges_one_token(judge: Judge, mechanism: str) -> None:
    exchange = TokenExchange(mechanism, judge)
    assert isinstance(await exchange.respond(RESPONSES[mechanism]()), Authenticated)
    assert await exchange.respond(RESPONSES[mechanism]()) == Refused("the exchange is over")


MALFORMED = {
    "nothing": ("OAUTHBEARER", b"\x01"),
    "no end": ("OAUTHBEARER", bearer()[:-1]),
    "no header": ("OAUTHBEARER", b"\x01auth=Bearer x\x01\x01"),
    "bound": ("OAUTHBEARER", bearer().replace(b"n,", b"p=tls-unique,", 1)),
    "an odd name": ("OAUTHBEARER", bearer(authorization="alice")),
    "no name": ("OAUTHBEARER", bearer(authorization="a=")),
    "two tokens": ("OAUTHBEARER", bearer()[:-1] + b"auth=Bearer x\x01\x01"),
    "another scheme": ("OAUTHBEARER", bearer().replace(b"Bearer", b"Basic")),
    "not UTF-8": ("OAUTHBEARER", b"n,a=\xff,\x01auth=Bearer x\x01\x01"),
    "too long": ("OAUTHBEARER", bearer("x" * 16001)),
    "no user": ("XOAUTH2", xoauth2().partition(b"\x01")[2]),
    "two users": ("XOAUTH2", b"user=bob\x01" + xoauth2()),
    "a line break": ("XOAUTH2", xoauth2("x\ny")),
    "no equals sign": ("XOAUTH2", b"user\x01auth=Bearer x\x01\x01"),
    "no password": ("PLAIN", b"\0alice\0"),
    "not a token": ("PLAIN", plain("open s\u00e9same")),
    "another authorization id": ("PLAIN", b"root" + plain()),
}


@pytest.mark.parametrize(("mechanism", "response"), MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_response_is_refused(judge: Judge, mechanism: str, response: bytes) -> None:
    assert await TokenExchange(mechanism, judge).respond(response) == Refused(f"malformed {mechanism} response")


PARTS = st.sampled_from(
    [b"n,a=alice,", b"user=alice", b"auth=Bearer ", TOKEN.encode(), b"\x01", b"\0", b"a.b.c", b"\xff", b","]
)


@given(
    st.sampled_from(sorted(RESPONSES)),
    st.lists(st.binary(max_size=99) | st.lists(PARTS, max_size=9).map(b"".join), max_size=3),
)
async def test_any_bytes_are_answered(keys_file: Path, mechanism: str, responses: list[bytes]) -> None:
    exchange = TokenExchange(mechanism, Judge(ISSUER, "other", "sub", Keys(str(keys_file))))
    for response in responses:
        assert isinstance(await exchange.respond(response), Challenge | Refused)


@given(st.binary(max_size=200), st.integers(0, 2))
async def test_random_bytes_in_any_part_of_a_token_are_refused(keys_file: Path, part: bytes, place: int) -> None:
    parts = TOKEN.split(".")
    parts[place] = jwt.utils.base64url_encode(part).decode()
    with pytest.raises(BadToken):
        await Judge(ISSUER, AUDIENCE, "sub", Keys(str(keys_file))).judge(".".join(parts))


def test_no_token_is_shown() -> None:
    assert TOKEN not in repr(sasl_oauth.parse_plain(plain()))
    assert TOKEN not in repr(sasl_oauth.parse_xoauth2(xoauth2()))


# Keys


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "not JSON"),
        ("[" * 100000, "not JSON"),
        ("[]", "not a JSON Web Key Set"),
        ('{"keys": {}}', "not a JSON Web Key Set"),
        (json.dumps({"keys": [{}] * 65}), "more than 64"),
        ('{"keys": []}', "no key among these"),
        (
            '{"keys": [7, {}, {"kty": 7}, {"kty": "RSA"}, {"kty": "EC", "crv": "P-256", "x": "", "y": "!"}]}',
            "no key among",
        ),
        (key_set({"kty": "oct", "k": "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"}), "no key among"),
        (key_set(public(RSA_KEY, use="enc")), "no key among"),
        (key_set(public(RSA_KEY, key_ops=["encrypt"])), "no key among"),
        (key_set(public(RSA_KEY, alg="HS256")), "no key among"),
        (key_set(public(rsa.generate_private_key(public_exponent=65537, key_size=1024))), "no key among"),
        (key_set(public(ec.generate_private_key(ec.SECP256K1()))), "no key among"),
        (" " * 300000, "more than 262144 bytes"),
    ],
    ids=range(14),
)
def test_a_set_that_cannot_be_used_refuses_the_configuration(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "keys").write_text(content)
    with pytest.raises(ConfigurationRefused, match=problem):
        configured(str(tmp_path / "keys"))


def test_keys_for_other_purposes_are_passed_over() -> None:
    keys = parse_keys(
        key_set({"kty": "oct", "k": "eHh4"}, public(RSA_KEY, "enc", use="enc"), public(EC_KEY, "sig")).encode()
    )
    assert len(keys) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://issuer.example/keys",
        "ftp://h/x",
        "file:///etc/passwd",
        "https://",
        "https://u:p@h/x",
        "https://h:x/",
        "http://[::1/",
    ],
)
def test_keys_are_had_from_where_they_can_be_trusted(url: str) -> None:
    with pytest.raises(KeysError):
        Keys(url)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationRefused, match=r"oauthJwks: .*nowhere: No such file"):
        configured(str(tmp_path / "nowhere"))


async def test_keys_are_fetched_when_needed_and_kept(server: KeyServer) -> None:
    clock = Clock()
    keys = Keys(server.url, clock)
    assert server.asked == 0
    for _ in range(3):
        assert await keys.find("one", "RS256")
    assert server.asked == 1
    clock.now_s = oauth_keys.FRESH_S
    assert await keys.find("one", "RS256")
    assert server.asked == 2


async def test_a_key_that_is_unknown_is_looked_for_now_and_then(server: KeyServer) -> None:
    clock = Clock()
    keys = Keys(server.url, clock)
    for _ in range(5):
        assert not await keys.find("four", "RS256")
    assert server.asked == 1
    server.body = key_set(public(RSA_KEY, "four")).encode()
    clock.now_s = oauth_keys.PAUSE_S
    assert await keys.find("four", "RS256")
    assert not await keys.find("one", "RS256")
    assert server.asked == 2


@pytest.mark.parametrize("fault", ["status", "rubbish", "too much", "redirect"])
async def test_an_issuer_that_fails_leaves_the_keys_there_were_for_an_hour(
    server: KeyServer, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    keys = Keys(server.url, clock)
    assert await keys.find("one", "RS256")
    if fault == "status":
        server.status = 500
    elif fault == "rubbish":
        server.body = b"<html>"
    elif fault == "too much":
        server.body = b" " * 300000
    else:
        server.status, server.location = 302, server.url
    clock.now_s = oauth_keys.STALE_S - 1
    assert await keys.find("one", "RS256")
    assert server.asked == 2
    assert "cannot fetch the keys of the token issuer from http://127.0.0.1" in caplog.text
    clock.now_s = oauth_keys.STALE_S
    with pytest.raises(Unreachable, match="too old"):
        await keys.find("one", "RS256")


async def test_an_issuer_that_stalls_is_given_up(server: KeyServer, autojump_clock: trio.testing.MockClock) -> None:
    server.gate.clear()
    judge = Judge(ISSUER, AUDIENCE, "sub", Keys(server.url))
    answer = await TokenExchange("OAUTHBEARER", judge).respond(bearer())
    assert answer == Refused(
        "the keys of the issuer cannot be had: they were never fetched", temporary=True, user="alice"
    )


@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"], ids=["head", "body"])
async def test_an_issuer_that_trickles_is_requested_again(begins: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any rate of data the thread that reads it ends, and the next one can begin."""
    monkeypatch.setattr(oauth_keys, "TIMEOUT_S", 0.2)
    body = key_set().encode()
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    cut = threading.Event()

    def serve(listening: socket.socket) -> None:
        sock, _ = listening.accept()
        with sock:
            try:
                sock.sendall(begins)
                while True:
                    sock.sendall(b" ")
                    cut.wait(0.01)
            except OSError:
                cut.set()
        sock, _ = listening.accept()
        with sock:
            sock.recv(65536)
            sock.sendall(whole)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        clock = Clock()
        keys = Keys(f"http://127.0.0.1:{listening.getsockname()[1]}/keys", clock)
        with pytest.raises(Unreachable, match="never fetched"):
            await keys.find("one", "RS256")
        assert await trio.to_thread.run_sync(cut.wait, DEADLINE_S)
        clock.now_s = oauth_keys.PAUSE_S
        assert await keys.find("one", "RS256")
        thread.join(DEADLINE_S)


async def test_many_at_once_fetch_once(server: KeyServer) -> None:
    keys = Keys(server.url)
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(keys.find, "one", "RS256")
    assert server.asked == 1


# Through a real manager


def configured(jwks: str, **more: Any) -> Plugins:
    plugins = Plugins([sasl_oauth])
    plugins.configure(facts(jwks, **more))
    return plugins


def facts(jwks: str, **more: Any) -> RouterFacts:
    return RouterFacts("QDR.A", **{"oauth_issuer": ISSUER, "oauth_audience": AUDIENCE, "oauth_jwks": jwks, **more})


def peer_of(*, encrypted: bool = True) -> PeerFacts:
    return PeerFacts(1, ListenerFacts("here", "", "amqp"), "192.0.2.1", 40000, encrypted=encrypted, loopback=False)


async def test_a_token_gets_in_through_a_real_manager(keys_file: Path) -> None:
    plugins = configured(str(keys_file), oauth_plain=True)
    assert plugins.sasl_mechanisms_for(peer_of()) == ("OAUTHBEARER", "XOAUTH2", "PLAIN")
    for mechanism, response in RESPONSES.items():
        exchange = plugins.open_sasl(mechanism, peer_of())
        assert exchange is not None
        assert isinstance(await plugins.objects.respond_or_refuse(exchange, response()), Authenticated)
        assert plugins.open_sasl(mechanism, peer_of(encrypted=False)) is None
    assert plugins.sasl_mechanisms_for(peer_of(encrypted=False)) == ()
    assert not plugins.faults


def test_a_token_is_a_password_only_where_that_is_configured(keys_file: Path) -> None:
    plugins = configured(str(keys_file))
    assert plugins.sasl_mechanisms_for(peer_of()) == ("OAUTHBEARER", "XOAUTH2")
    assert plugins.open_sasl("PLAIN", peer_of()) is None


@pytest.mark.parametrize("missing", ["oauth_issuer", "oauth_audience", "oauth_jwks", "oauth_user_claim"])
def test_half_a_configuration_is_refused(keys_file: Path, missing: str) -> None:
    with pytest.raises(ConfigurationRefused, match="oauth"):
        configured(**{"jwks": str(keys_file), missing: ""}) if missing != "oauth_jwks" else configured("")
    with pytest.raises(ConfigurationRefused, match="oauthPlain needs"):
        Plugins([sasl_oauth]).configure(RouterFacts("QDR.A", oauth_plain=True))


@pytest.mark.parametrize("accepted", [False, True])
async def test_a_file_of_keys_that_strangers_can_change_meanwhile_is_not_read_again(
    tmp_path: Path, accepted: bool
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(key_set())
    comment = "# trouter: accept writable-by-others: the only user of this machine\n" if accepted else ""
    oauth = f"oauthIssuer: {ISSUER}\n oauthAudience: {AUDIENCE}\n oauthJwks: {path}"
    configuration = load(text=f"{comment}router {{\n secureDefaults: yes\n {oauth}\n}}\n")
    plugins = Plugins([sasl_oauth])
    plugins.configure(router_facts(configuration))

    async def answer(key: Any) -> object:
        exchange = plugins.open_sasl("XOAUTH2", peer_of())
        assert exchange is not None
        return await exchange.respond(xoauth2(token(key, kid=None)))

    assert isinstance(await answer(RSA_KEY), Authenticated)
    strange = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(OTHER_KEY.public_key()))
    path.write_text(json.dumps({"keys": [strange]}))
    path.chmod(0o666)
    if accepted:
        plugins.configure(router_facts(configuration))
    else:
        why = f"oauthJwks: all users of this machine can change {path}; with secureDefaults it is refused"
        with pytest.raises(ConfigurationRefused, match=why):
            plugins.configure(router_facts(configuration))
    assert isinstance(await answer(OTHER_KEY), Authenticated) == accepted
    assert isinstance(await answer(RSA_KEY), Authenticated) != accepted


async def test_a_reload_keeps_the_fetched_keys(server: KeyServer) -> None:
    plugins = configured(server.url)
    for _ in range(2):
        exchange = plugins.open_sasl("XOAUTH2", peer_of())
        assert exchange is not None
        assert isinstance(await exchange.respond(xoauth2()), Authenticated)
        plugins.configure(facts(server.url))
    assert server.asked == 1


def test_two_ways_to_check_a_password_are_an_error_that_names_both(keys_file: Path, tmp_path: Path) -> None:
    (tmp_path / "users").touch(mode=0o600)
    plugins = Plugins([sasl_oauth, sasl_plain])
    both = {"oauth_plain": True, "sasl_users_file": str(tmp_path / "users")}
    with pytest.raises(ConfigurationRefused, match=r"PLAIN is served by .*sasl_oauth and by .*sasl_plain at once"):
        plugins.configure(facts(str(keys_file), **both, listeners=(ListenerFacts("here", "", "amqp"),)))
    plugins.configure(
        facts(str(keys_file), **both, listeners=(ListenerFacts("here", "", "amqp", sasl_mechanisms=("XOAUTH2",)),))
    )
    assert "PLAIN" not in plugins.sasl_mechanisms(ListenerFacts("there", "", "amqp"))
    assert plugins.offers.of(ListenerFacts("there", "", "amqp")).conflicts


# Rights of a token


def with_scopes(keys_file: Path, claim: str = "scope", prefix: str = "trouter.") -> Judge:
    return Judge(ISSUER, AUDIENCE, "sub", Keys(str(keys_file)), claim, prefix)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({}, Permissions()),
        ({"scope": ""}, Permissions()),
        ({"scope": "openid profile"}, Permissions()),
        ({"scope": "trouter.read:a trouter.write:b/*"}, Permissions(("a",), ("b/*",))),
        ({"scope": ["trouter.read:a b", "trouter.read:${user}/x"]}, Permissions(("a b", "${user}/x"))),
        (
            {"scope": "read:a Trouter.read:b trouter.READ:c trouter.read: trouter.write trouter.configure:d"},
            Permissions(),
        ),
        ({"scope": "trouter.read:* trouter.write:a,b"}, Permissions(("*",), ("a,b",))),
        ({"scopes": "trouter.read:a"}, Permissions()),
    ],
)
async def test_scopes_are_permissions(keys_file: Path, claims: dict[str, Any], expected: Permissions) -> None:
    assert (await with_scopes(keys_file).judge(token(**claims))).permissions == expected


async def test_scopes_may_stand_within_another_claim(keys_file: Path) -> None:
    judge = with_scopes(keys_file, "resource_access.trouter.roles", "")
    flat: dict[str, Any] = {"resource_access.trouter.roles": "read:b"}
    roles: dict[str, Any] = {"resource_access": {"trouter": {"roles": ["read:a"]}}}
    assert (await judge.judge(token(**roles))).permissions == Permissions(("a",))
    assert (await judge.judge(token(resource_access="no"))).permissions == Permissions()
    assert (await judge.judge(token(**flat))).permissions == Permissions(("b",))


@pytest.mark.parametrize("claim", [7, True, {"read": ["a"]}, ["trouter.read:a", 7], [["trouter.read:a"]]])
async def test_scopes_of_another_shape_let_no_user_in(keys_file: Path, claim: object) -> None:
    with pytest.raises(BadToken, match="its claim scope is of no use"):
        await with_scopes(keys_file).judge(token(scope=claim))


def test_scopes_are_bounded() -> None:
    with pytest.raises(BadRights, match=f"more than {MAX_PERMISSIONS} rights"):
        permissions_of(["read:a", "write:a"] * (MAX_PERMISSIONS // 2 + 1), "")


async def test_without_a_claim_for_them_scopes_are_not_looked_at(judge: Judge) -> None:
    assert (await judge.judge(token(scope=7))).permissions is None


async def test_a_claim_names_the_tenant(keys_file: Path) -> None:
    judge = Judge(ISSUER, AUDIENCE, "sub", Keys(str(keys_file)), tenant_claim="org.id")
    assert (await judge.judge(token(org={"id": "acme"}))).tenant == "acme"
    for org in (None, {"id": ""}, {"id": 7}, "acme"):
        with pytest.raises(BadToken, match=r"its claim org\.id names no tenant"):
            await judge.judge(token(org=org))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"oauth_scopes_claim": "scope"}, "oauthScopesClaim needs oauthIssuer"),
        ({"oauth_tenant_claim": "org"}, "oauthTenantClaim needs oauthIssuer"),
        ({"oauth_issuer": "i", "oauth_audience": "a", "oauth_jwks": "f", "oauth_scopes_claim": ""}, "Claim is empty"),
        ({"oauth_issuer": "i", "oauth_audience": "a", "oauth_jwks": "f", "oauth_tenant_claim": ""}, "Claim is empty"),
        (
            {"oauth_issuer": "i", "oauth_audience": "a", "oauth_jwks": "f", "oauth_scope_prefix": "x"},
            "oauthScopePrefix needs oauthScopesClaim",
        ),
    ],
)
def test_scopes_that_cannot_be_served_are_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationRefused, match=problem):
        Plugins([sasl_oauth]).configure(RouterFacts("R", **given))
