"""Any change to the messages of the two ends of SCRAM logs no other user in; without a change both ends accept.

The first byte picks the message that is changed: the client's first, the server's first, the proof, the server's
signature, or the empty response after it. The rest is the script: the position, the count of bytes to replace, and the
bytes that replace them.

Allowed: AuthenticationFailed from trouter's client. The server refuses and raises nothing.
"""

from __future__ import annotations

from typing import Any, Final

import trio

from trouter.client.errors import AuthenticationFailed
from trouter.client.sasl import Scram
from trouter.hooks import Authenticated, Challenge, Refused
from trouter.testing.fuzz import behind, octets
from trouter_plugins.sasl_scram import ScramExchange
from trouter_plugins.users import Users
from trouter_plugins.verifiers import ScramVerifier

MUTATOR = behind(1, octets)
COVERS = ("trouter_plugins.sasl_scram", "trouter.client.sasl")
NAME: Final = "SCRAM-SHA-256"
PASSWORD: Final = "nobody can guess this one"
USERS: Final = Users({"alice": ScramVerifier.make(NAME, PASSWORD.encode(), 4096)})
MOST_TURNS: Final = 4096


def changed(message: bytes, script: bytes) -> bytes:
    """Return the message with the script's bytes in place of its own, unless it would then request many iterations."""
    if len(script) < 2:
        return message
    at, length = script[0] % (len(message) + 1), script[1]
    result = message[:at] + script[2:] + message[at + length :]
    return result if turns_of(result) <= MOST_TURNS else message


def turns_of(message: bytes) -> int:
    """Return the iteration count that a server's first message requests; high counts would only slow the target."""
    found = [part[2:] for part in message.split(b",") if part.startswith(b"i=")]
    return max((int(each) for each in found if each.isdigit()), default=0)


async def talk(how: int, script: bytes) -> None:
    client, server = Scram(NAME, "alice", PASSWORD), ScramExchange(NAME, USERS, {})
    steps = [script if number == how % 5 else b"" for number in range(5)]
    same = True

    def carried(message: bytes, step: int) -> bytes:
        nonlocal same
        arrived = changed(message, steps[step])
        same = same and arrived == message
        return arrived

    try:
        answer: Any = await server.respond(carried(await client.start() or b"", 0))
        proof = await client.respond(carried(answer.data, 1)) if isinstance(answer, Challenge) else b""
        if isinstance(answer, Challenge):
            answer = await server.respond(carried(proof, 2))
        if isinstance(answer, Challenge):
            await client.respond(carried(answer.data, 3))
            answer = await server.respond(carried(b"", 4))
        client.check_success(None)
        believed = True
    except AuthenticationFailed as failed:
        believed = False
        assert PASSWORD not in str(failed)  # noqa: PT017 - the secret is ours
    if same:
        assert believed
        assert answer == Authenticated("alice")
    elif isinstance(answer, Refused):
        assert PASSWORD not in answer.reason
    else:
        # Only bytes that neither end checks may have been changed: then both accept, or the server waits.
        assert isinstance(answer, Authenticated | Challenge)
        assert not isinstance(answer, Authenticated) or answer.user == "alice"


def check(data: bytes) -> None:
    how, script = (data[0], data[1:]) if data else (0, b"")
    trio.run(talk, how, script)
