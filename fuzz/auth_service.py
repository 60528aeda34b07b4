"""Any answers of an authentication service admit only the user that its open names, with the rights that it grants.

The first byte chooses the mechanism and the leniency. The other bytes are the whole output of the service: SASL,
outcome and open. The router's client of the service reads them.

Allowed: _Failure while the client reads the mechanisms, because most bytes offer none. A later fault is a refusal.
"""

from __future__ import annotations

from typing import Any, Final

import trio
import trio.testing

from trouter.auth import auth_service
from trouter.auth.grants import NAMELESS, BadGrant, permissions_of, user_of
from trouter.hooks import Authenticated, AuthServiceFacts, Challenge, Refused
from trouter.testing.fuzz import behind, frames
from trouter.wire.errors import DecodeError
from trouter.wire.performatives import Open, SaslOutcome, decode_performative

MUTATOR = behind(1, frames)
COVERS = ("trouter.auth.auth_service", "trouter.auth.grants")
FACTS: Final = AuthServiceFacts("fuzzed", "service.example", "5672")
MOST_STEPS: Final = 20


class Silent:
    """A sink for alarms that drops them; it also stands in for the TLS settings, which the target does not use."""

    def emit(self, record: object) -> None:
        pass


def check(data: bytes) -> None:
    how, stream = (data[0], data[1:]) if data else (0, b"")
    answer = trio.run(converse, how, stream)
    if not isinstance(answer, Authenticated):
        return
    said = frames_of(stream)
    assert any(isinstance(each, SaslOutcome) and each.code == 0 for each in said)
    opens = [each for each in said if isinstance(each, Open)]
    assert opens
    assert answer.user.isprintable()
    lenient, optional = bool(how & 1), bool(how & 2)
    assert (answer.user, answer.permissions) in [granted(each, lenient, optional) for each in opens]
    assert lenient or answer.user != NAMELESS or any(NAMELESS in repr(each) for each in opens)


def granted(opened: Open, lenient: bool, optional: bool) -> tuple[object, object]:
    try:
        return (
            user_of(opened.properties, lenient=lenient),
            permissions_of(opened.properties, optional=optional),
        )
    except BadGrant:
        return None, None


def frames_of(stream: bytes) -> list[Any]:
    """Return the performatives of a stream, up to the first that does not decode."""
    found: list[Any] = []
    at = 0
    while at < len(stream):
        if stream[at : at + 4] == b"AMQP":
            at += 8
            continue
        size = int.from_bytes(stream[at : at + 4], "big")
        start = at + 4 * int.from_bytes(stream[at + 4 : at + 5], "big")
        at += max(size, 8)
        if start < at <= len(stream):
            try:
                found.append(decode_performative(stream, start, at)[0])
            except DecodeError:
                break
    return found


async def converse(how: int, stream: bytes) -> object:
    """Return the last answer that the peer gets, or None where the service offered no mechanisms."""
    near, far = trio.testing.memory_stream_pair()
    terms = auth_service.ServiceTerms(FACTS, lenient=bool(how & 1), authz_optional=bool(how & 2))
    silent: Any = Silent()
    service = auth_service.RemoteAuthService(terms, silent, silent)
    session = auth_service._Session(service, near, lambda: None, not how & 4)
    await far.send_all(stream)
    await far.send_eof()
    try:
        await session.receive_mechanisms()
    except auth_service._Failure:
        return None
    mechanisms = session.mechanisms
    assert how & 4 == 0 or "PLAIN" not in mechanisms
    answer: Any = await session.start(mechanisms[0] if mechanisms else "X", b"\0alice\0password")
    for _ in range(MOST_STEPS):
        assert isinstance(answer, Challenge | Authenticated | Refused)
        if isinstance(answer, Refused):
            assert "password" not in answer.reason
        if not isinstance(answer, Challenge):
            return answer
        answer = await session.respond(b"x")
    raise AssertionError("it asks for ever")
