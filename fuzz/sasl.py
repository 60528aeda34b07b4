"""Any bytes from a client, above and inside SASL, raise nothing, and log no client in without a password.

The first byte chooses whether a login is required, the second the size of the pieces. The plugins' exchanges get the
responses of the frames. The target also checks that the rounds stay within their limit and that the engine answers
nothing after a refusal.

Allowed: nothing. The engine reports each fault of a peer as an event, and each wrong response is a refusal.
"""

from __future__ import annotations

from typing import Final

from fuzz.parts.at_once import now
from trouter.engine.connection import Connection
from trouter.engine.events import ConnectionOpened, SaslInitReceived, SaslResponseReceived
from trouter.engine.limits import EngineLimits
from trouter.engine.sasl import SASL_AUTH, SASL_OK, SaslServer
from trouter.hooks import Authenticated, Challenge, Refused
from trouter.testing.fuzz import behind, frames
from trouter.wire.performatives import Open
from trouter_plugins.sasl_plain import parse_response
from trouter_plugins.sasl_scram import ScramExchange
from trouter_plugins.users import Users
from trouter_plugins.verifiers import ScramVerifier

MUTATOR = behind(2, frames)
COVERS = ("trouter.engine.sasl", "trouter_plugins.sasl_plain", "trouter_plugins.sasl_scram")

PASSWORD: Final = b"nobody can guess this one, 9f8a7c"
VERIFIER: Final = ScramVerifier.make("SCRAM-SHA-256", PASSWORD, 4096)
USERS: Final = Users({"alice": VERIFIER})
LIMITS: Final = EngineLimits(max_sasl_rounds=3)
MECHANISMS: Final = ("SCRAM-SHA-256", "PLAIN")

Answer = Challenge | Authenticated | Refused


class Plain:
    """PLAIN without the hashing threads of the plugin."""

    async def respond(self, response: bytes) -> Answer:
        credentials = parse_response(response)
        if credentials is None or credentials.user != "alice" or credentials.password != PASSWORD:
            return Refused("no")
        return Authenticated("alice")


def check(data: bytes) -> None:
    choice, cut, octets = data[:1] or b"\0", max(1, data[1] if len(data) > 1 else 0), data[2:]
    sasl = SaslServer(MECHANISMS, required=bool(choice[0] & 1), max_rounds=LIMITS.max_sasl_rounds)
    connection = Connection(LIMITS, Open("R"), [], sasl, server=True)
    exchange: Plain | ScramExchange | None = None
    rounds = 0
    for start in range(0, len(octets), cut):
        connection.receive_data(octets[start : start + cut])
        while connection.events:
            event = connection.events.pop(0)
            if isinstance(event, ConnectionOpened):
                assert not choice[0] & 1, "a client is logged in"
            if not isinstance(event, SaslInitReceived | SaslResponseReceived):
                continue
            rounds += 1
            assert rounds <= LIMITS.max_sasl_rounds + 1
            if isinstance(event, SaslInitReceived):
                scram = event.mechanism.upper() == "SCRAM-SHA-256"
                exchange = ScramExchange("SCRAM-SHA-256", USERS, {}) if scram else Plain()
            assert exchange is not None
            answer = now(exchange.respond(event.response or b""))
            if isinstance(answer, Challenge):
                sasl.send_challenge(answer.data)
            else:
                known = isinstance(answer, Authenticated)
                assert not known or PASSWORD in octets
                sasl.send_outcome(SASL_OK if known else SASL_AUTH)
        if sasl.refused:
            said = len(connection.out)
            connection.receive_data(b"AMQP\0\1\0\0")
            assert len(connection.out) == said
            return
