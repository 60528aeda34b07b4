"""An authentication service that answers twice, too early or too much: one login has one outcome, of a bounded size."""

from __future__ import annotations

from typing import Any

import pytest

from tests.auth.test_auth_service import CREDENTIALS, begun, logged_in, remote
from tests.auth_double import ALICE, AUTHZ, IDENTITY, Script, Wire, service, words
from trouter.hooks import MAX_PERMISSIONS, Authenticated, Challenge, Permissions, Refused
from trouter.wire.framing import AMQP_HEADER
from trouter.wire.performatives import Open, SaslChallenge, SaslOutcome, SaslResponse

pytestmark = pytest.mark.attack

ROOT = {"sub": "root"}
PROTOCOL = Refused("the authentication service there: it violated the protocol", temporary=True)
REFUSED = Refused("the authentication service refused the user")
IN = Authenticated("alice", permissions=Permissions())


def opened(wire: Wire, *users: dict[str, str]) -> None:
    """Answer the open once for each user, all at once."""
    wire.header(AMQP_HEADER)
    wire.expect(Open)
    for user in users:
        wire.say(Open(container_id="service", properties={IDENTITY: user}), 0)
    wire.until_gone()


def answers(*frames: SaslOutcome | SaslChallenge) -> Script:
    """Return a script that answers the login with these frames."""

    def script(wire: Wire) -> None:
        wire.offer("PLAIN")
        for each in frames:
            wire.say(each)
        wire.until_gone()

    return script


def two_opens(wire: Wire) -> None:
    wire.offer("PLAIN")
    wire.say(SaslOutcome(0))
    opened(wire, dict(ALICE), ROOT)


def a_challenge_twice(wire: Wire) -> None:
    wire.offer("PLAIN")
    wire.say(SaslChallenge(b"1"))
    wire.say(SaslChallenge(b"2"))
    wire.expect(SaslResponse)
    wire.expect(SaslResponse)
    wire.say(SaslOutcome(0))
    opened(wire, dict(ALICE))


TWICE: dict[str, tuple[Script, object]] = {
    "a refusal, then an acceptance": (answers(SaslOutcome(1), SaslOutcome(0)), REFUSED),
    "an acceptance, then a refusal": (answers(SaslOutcome(0), SaslOutcome(1)), PROTOCOL),
    "an acceptance twice": (answers(SaslOutcome(0), SaslOutcome(0)), PROTOCOL),
    "a challenge after the acceptance": (answers(SaslOutcome(0), SaslChallenge(b"once more")), PROTOCOL),
    "two opens": (two_opens, IN),
    "a challenge twice": (a_challenge_twice, IN),
    "an outcome before the response": (answers(SaslChallenge(b"1"), SaslOutcome(1)), REFUSED),
}


async def answer_of(script: Script, **terms: Any) -> object:
    with service(script) as double:
        session = await begun(remote(double.port, **terms))
        try:
            answer: object = await session.start("PLAIN", CREDENTIALS)
            while isinstance(answer, Challenge):
                answer = await session.respond(b"!")
        finally:
            session.close()
    return answer


@pytest.mark.parametrize(("script", "expected"), TWICE.values(), ids=TWICE)
async def test_the_first_answer_counts_and_a_second_one_admits_no_user(script: Script, expected: object) -> None:
    found = await answer_of(script)
    if expected == PROTOCOL:
        assert isinstance(found, Refused)
        assert found.temporary
    else:
        assert found == expected


def grants(properties: dict[Any, Any], additional: bytes | None = None) -> Script:
    def script(wire: Wire) -> None:
        wire.offer("PLAIN")
        wire.let_in(properties, additional)

    return script


async def test_as_many_rights_as_are_allowed_are_taken_and_one_more_is_not() -> None:
    names = [f"{'a' * 60}{number}" for number in range(MAX_PERMISSIONS)]
    rights = {name: words("recv") for name in names}
    assert await answer_of(grants({IDENTITY: ALICE, AUTHZ: rights})) == Authenticated(
        "alice", permissions=Permissions(tuple(names))
    )
    refused = await answer_of(grants({IDENTITY: ALICE, AUTHZ: {**rights, "one more": words("send")}}))
    assert isinstance(refused, Refused)
    assert "more than 10000 rights" in refused.reason


@pytest.mark.parametrize(
    "properties",
    [
        {IDENTITY: ALICE, AUTHZ: {"a" * 1_100_000: words("recv")}},
        {IDENTITY: ALICE, "more": ["x"] * 70_000},
        {IDENTITY: {"sub": "alice", "more": [[]] * 70_000}},
    ],
    ids=["bytes", "values", "values of the identity"],
)
async def test_a_larger_answer_is_a_temporary_refusal(properties: dict[Any, Any]) -> None:
    assert await answer_of(grants(properties)) == PROTOCOL


@pytest.mark.parametrize("size", [1_000, 8_000])
async def test_data_for_the_client_are_passed_on_up_to_the_size_of_a_frame(size: int) -> None:
    with service(grants({IDENTITY: ALICE}, bytes(size))) as double:
        answer = await logged_in(remote(double.port))
    assert answer == Authenticated("alice", bytes(size), permissions=Permissions())


async def test_more_data_for_the_client_are_a_temporary_refusal() -> None:
    assert await answer_of(grants({IDENTITY: ALICE}, bytes(8_193))) == PROTOCOL
