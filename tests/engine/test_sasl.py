"""The SASL layer from both sides: its order, its limits, and every bypass that must not exist."""

from __future__ import annotations

import pytest

from tests.engine.talks import OPEN, client, server, with_limits
from tests.script import Script, encode, like
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    SaslChallengeReceived,
    SaslFinished,
    SaslInitReceived,
    SaslMechanismsOffered,
    SaslMechanismsWanted,
    SaslResponseReceived,
)
from trouter.engine.faults import Fault, PeerFault
from trouter.engine.sasl import SASL_AUTH, SASL_OK, SaslClient, SaslServer
from trouter.engine.states import IllegalStep, SaslState
from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, SASL_HEADER, TLS_HEADER, frame
from trouter.wire.performatives import (
    Close,
    Error,
    Open,
    Performative,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    encode_performative,
)

MECHANISMS = ("SCRAM-SHA-256", "ANONYMOUS")
INIT = SaslInit("ANONYMOUS", b"me", "host")
CHALLENGED = SaslInit("SCRAM-SHA-256", b"1")


def listening(*, required: bool = True, rounds: int = 20, piecemeal: bool = False) -> tuple[Script, SaslServer]:
    sasl = SaslServer(MECHANISMS, required, rounds)
    return Script(server(sasl=sasl), piecemeal=piecemeal), sasl


def offered(**options: bool) -> tuple[Script, SaslServer]:
    talk, sasl = listening(**options)
    talk.peer_sends(SASL_HEADER).engine_sends(SASL_HEADER, SaslMechanisms(MECHANISMS))
    return talk, sasl


def dialling(rounds: int = 20) -> tuple[Script, SaslClient]:
    sasl = SaslClient(rounds)
    talk = Script(client(sasl=sasl))
    talk.engine_sends(SASL_HEADER)
    return talk, sasl


def broken(talk: Script, fault: Fault) -> None:
    """Check that the exchange ended with this fault, and the connection with it."""
    assert talk.connection.finished
    assert talk.connection.events[-1] == like(ConnectionClosed, fault=like(PeerFault, fault=fault))
    talk.connection.events.clear()
    talk.peer_sends(AMQP_HEADER, OPEN, INIT).engine_reports()


# --- the server's side


@pytest.mark.parametrize("piecemeal", [False, True], ids=["whole", "byte by byte"])
def test_a_client_comes_in_and_opens(piecemeal: bool) -> None:
    talk, sasl = listening(piecemeal=piecemeal)
    talk.peer_sends(SASL_HEADER).engine_sends(SASL_HEADER, SaslMechanisms(MECHANISMS))
    talk.peer_sends(INIT).engine_reports(SaslInitReceived("ANONYMOUS", b"me", "host"))
    sasl.send_outcome(SASL_OK)
    talk.engine_sends(SaslOutcome(0))
    assert sasl.done
    talk.peer_sends(AMQP_HEADER, OPEN).engine_reports(ConnectionOpened(OPEN))
    talk.connection.open()
    talk.engine_sends(AMQP_HEADER, Open)


def test_nothing_sent_early_is_looked_at_before_the_client_is_known() -> None:
    talk, sasl = listening()
    talk.peer_sends(SASL_HEADER, INIT, AMQP_HEADER, OPEN).engine_reports(SaslInitReceived)
    talk.engine_sends(SASL_HEADER, SaslMechanisms)
    talk.peer_sends(frame(0, b"")).engine_reports().engine_sends()
    sasl.send_outcome(SASL_OK)
    talk.peer_sends().engine_reports(ConnectionOpened)
    talk.engine_sends(SaslOutcome(0), AMQP_HEADER)


def test_nothing_sent_early_is_looked_at_when_the_client_is_turned_away() -> None:
    talk, sasl = listening()
    talk.peer_sends(SASL_HEADER, INIT, AMQP_HEADER, OPEN).engine_reports(SaslInitReceived)
    sasl.send_outcome(SASL_AUTH, b"no")
    talk.peer_sends(AMQP_HEADER, OPEN, b"garbage").engine_reports()
    talk.engine_sends(SASL_HEADER, SaslMechanisms, SaslOutcome(1, b"no"))
    assert talk.connection.finished
    assert not sasl.done


@pytest.mark.parametrize("response", [None, b""])
def test_an_empty_initial_response_is_not_the_same_as_none(response: bytes | None) -> None:
    talk, _ = offered()
    talk.peer_sends(SaslInit("PLAIN", response)).engine_reports(SaslInitReceived("PLAIN", response, None))


def test_a_server_may_get_its_mechanisms_later() -> None:
    sasl = SaslServer(None, True)
    talk = Script(server(sasl=sasl))
    talk.peer_sends(SASL_HEADER, INIT, AMQP_HEADER, OPEN).engine_reports(SaslMechanismsWanted)
    talk.engine_sends(SASL_HEADER)
    sasl.offer_mechanisms(MECHANISMS)
    talk.engine_sends(SaslMechanisms(MECHANISMS))
    talk.peer_sends(b"").engine_reports(SaslInitReceived("ANONYMOUS", b"me", "host"))
    sasl.send_outcome(SASL_OK)
    talk.peer_sends(b"").engine_reports(ConnectionOpened)


def test_a_server_without_mechanisms_yet_lets_a_client_skip_sasl() -> None:
    talk = Script(server(sasl=SaslServer(None, False)))
    talk.peer_sends(AMQP_HEADER, OPEN).engine_reports(ConnectionOpened)


def test_mechanisms_are_offered_once() -> None:
    talk, sasl = offered()
    with pytest.raises(IllegalStep, match="send mechanisms while offered"):
        sasl.offer_mechanisms(MECHANISMS)
    talk.engine_sends()


@pytest.mark.parametrize("rounds", [0, 1, 2, 20])
def test_challenges_and_responses_alternate_up_to_the_limit(rounds: int) -> None:
    talk, sasl = listening(rounds=rounds)
    talk.peer_sends(SASL_HEADER, CHALLENGED).engine_reports(SaslInitReceived)
    talk.sent()
    for number in range(rounds):
        sasl.send_challenge(b"c%d" % number)
        talk.engine_sends(SaslChallenge(b"c%d" % number))
        talk.peer_sends(SaslResponse(b"r%d" % number)).engine_reports(SaslResponseReceived(b"r%d" % number))
    sasl.send_challenge(b"once more")
    talk.sent()
    talk.peer_sends(SaslResponse(b"too much"))
    broken(talk, Fault.ILLEGAL_CONNECTION_STEP)
    talk.engine_sends(SaslOutcome(2))


AFTER_OFFER = [SaslMechanisms(MECHANISMS), SaslChallenge(b""), SaslOutcome(0), SaslResponse(b""), OPEN, Close()]


@pytest.mark.parametrize("wrong", AFTER_OFFER, ids=lambda wrong: wrong.symbol)
def test_a_frame_out_of_order_ends_the_exchange_with_an_outcome(wrong: Performative) -> None:
    talk, _ = offered()
    talk.peer_sends(frame(0, encode_performative(wrong), FRAME_SASL))
    broken(talk, Fault.ILLEGAL_CONNECTION_STEP)
    talk.engine_sends(SaslOutcome(2))


@pytest.mark.parametrize("wrong", [INIT, SaslMechanisms(()), SaslOutcome(0)], ids=lambda wrong: wrong.symbol)
def test_a_second_init_or_the_like_in_place_of_a_response(wrong: Performative) -> None:
    talk, sasl = offered()
    talk.peer_sends(CHALLENGED)
    sasl.send_challenge(b"c")
    talk.sent()
    talk.peer_sends(wrong)
    broken(talk, Fault.ILLEGAL_CONNECTION_STEP)
    talk.engine_sends(SaslOutcome(2))


def test_a_second_init_behind_the_first_does_not_get_in_the_way_of_the_decision() -> None:
    talk, sasl = offered()
    talk.peer_sends(INIT, INIT).engine_reports(SaslInitReceived)
    sasl.send_outcome(SASL_OK)
    talk.peer_sends()
    broken(talk, Fault.FRAMING)  # where the AMQP header is due


def test_an_amqp_frame_in_the_sasl_layer_is_refused() -> None:
    talk, _ = offered()
    talk.peer_sends(OPEN)
    broken(talk, Fault.FRAME_TYPE)
    talk.engine_sends(SaslOutcome(2))


def test_a_sasl_frame_above_the_layer_is_refused() -> None:
    talk, sasl = offered()
    talk.peer_sends(INIT)
    sasl.send_outcome(SASL_OK)
    talk.peer_sends(AMQP_HEADER, OPEN, INIT)
    broken(talk, Fault.FRAME_TYPE)


def test_an_empty_sasl_frame_is_passed_over() -> None:
    talk, _ = offered()
    talk.peer_sends(frame(0, b"", FRAME_SASL), INIT).engine_reports(SaslInitReceived)


@pytest.mark.parametrize("data", [b"\0\0\0\7\2\1\0\0", b"\0\0\0\x0b\2\1\0\0\0\x53\x41", b"\xff" * 8])
def test_garbage_in_the_sasl_layer_ends_the_connection(data: bytes) -> None:
    talk, _ = offered()
    talk.peer_sends(data)
    assert talk.connection.finished
    talk.engine_sends(SaslOutcome(2))


@pytest.mark.parametrize(
    ("tls_due", "required", "text"),
    [
        (False, True, "Client skipped authentication - forbidden"),
        (True, False, "Client connection unencrypted - forbidden"),
        (True, True, "Client connection unencrypted - forbidden"),
    ],
)
def test_a_client_that_skips_a_required_layer_gets_that_error_only(tls_due: bool, required: bool, text: str) -> None:
    talk = Script(server(sasl=SaslServer(("PLAIN",), required, tls_due=tls_due)))
    talk.peer_sends(AMQP_HEADER, OPEN)
    talk.engine_reports(like(ConnectionClosed, fault=like(PeerFault, fault=Fault.FORBIDDEN, text=text)))
    error = like(Error, condition="amqp:connection:policy-error", description=text)
    talk.engine_sends(AMQP_HEADER, Open, like(Close, error=error))
    assert talk.connection.finished
    talk.peer_sends(OPEN, SASL_HEADER, INIT).engine_reports().engine_sends()


@pytest.mark.amqp("2.2")
def test_a_client_that_must_begin_with_tls_gets_the_tls_header_before_any_mechanism() -> None:
    talk = Script(server(sasl=SaslServer(("PLAIN",), False, tls_due=True)))
    talk.peer_sends(SASL_HEADER, INIT)
    talk.engine_reports(like(ConnectionClosed, fault=like(PeerFault, fault=Fault.FORBIDDEN)))
    talk.engine_sends(TLS_HEADER)
    assert talk.connection.finished


def test_a_client_may_skip_a_layer_that_is_not_required() -> None:
    talk, _ = listening(required=False)
    talk.peer_sends(AMQP_HEADER[:5]).peer_sends(AMQP_HEADER[5:], OPEN).engine_reports(ConnectionOpened)
    talk.engine_sends(AMQP_HEADER)


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x02\x01\x02\0\1\0\1", b"AMQP\0\0\x09\1", b"AMQX"])
def test_a_header_of_neither_layer_is_answered_in_amqp(required: bool, data: bytes) -> None:
    talk, _ = listening(required=required)
    talk.peer_sends(data)
    broken(talk, Fault.FRAMING)
    talk.engine_sends(AMQP_HEADER, Open, like(Close, error=like(object, condition="amqp:connection:framing-error")))


@pytest.mark.parametrize("size", [512, 600, 601])
def test_a_sasl_frame_may_be_as_large_as_its_own_limit(size: int) -> None:
    """A ticket may need more than the AMQP frames of a small peer, and a stranger gets no more than that."""
    limits = with_limits(max_frame_bytes=512, max_sasl_frame_bytes=600)
    sasl = SaslServer(MECHANISMS, True)
    talk = Script(server(limits, sasl))
    body = encode_performative(SaslInit("PLAIN", bytes(300)))
    init = encode(SaslInit("PLAIN", bytes(300 + size - len(frame(0, body, FRAME_SASL)))))
    assert len(init) == size
    talk.peer_sends(SASL_HEADER, init)
    if size <= 600:
        talk.engine_reports(SaslInitReceived)
        sasl.send_outcome(SASL_OK)
        talk.peer_sends(AMQP_HEADER, Open("x" * 600))
        broken(talk, Fault.FRAMING)
    else:
        broken(talk, Fault.FRAMING)


# --- the client's side


def test_a_local_client_chooses_answers_and_opens() -> None:
    talk, sasl = dialling()
    talk.peer_sends(SASL_HEADER, SaslMechanisms(MECHANISMS)).engine_reports(SaslMechanismsOffered(MECHANISMS))
    sasl.send_init("SCRAM-SHA-256", b"1", "host")
    talk.engine_sends(SaslInit("SCRAM-SHA-256", b"1", "host"))
    talk.peer_sends(SaslChallenge(b"2")).engine_reports(SaslChallengeReceived(b"2"))
    sasl.send_response(b"3")
    talk.engine_sends(SaslResponse(b"3"))
    talk.peer_sends(SaslOutcome(0, b"4")).engine_reports(like(SaslFinished, code=0))
    assert sasl.done
    talk.connection.open()
    talk.engine_sends(AMQP_HEADER, Open)
    talk.peer_sends(AMQP_HEADER, OPEN).engine_reports(ConnectionOpened)


def test_a_sasl_refusal_ends_the_connection() -> None:
    talk, sasl = dialling()
    talk.peer_sends(SASL_HEADER, SaslMechanisms(("PLAIN",)))
    sasl.send_init("PLAIN", b"\0a\0b")
    talk.peer_sends(SaslOutcome(1), AMQP_HEADER)
    assert talk.connection.events[-1] == like(SaslFinished, code=1)
    assert talk.connection.finished
    assert sasl.refused


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_server_may_challenge_up_to_the_limit(rounds: int) -> None:
    talk, sasl = dialling(rounds)
    talk.peer_sends(SASL_HEADER, SaslMechanisms(("X",)))
    sasl.send_init("X", None)
    for _ in range(rounds):
        talk.peer_sends(SaslChallenge(b"c"))
        sasl.send_response(b"r")
    assert not talk.connection.finished
    talk.peer_sends(SaslChallenge(b"c"))
    broken(talk, Fault.ILLEGAL_CONNECTION_STEP)


@pytest.mark.parametrize("data", [AMQP_HEADER, b"HTTP/1.1 400 Bad Request", TLS_HEADER])
def test_a_server_that_does_not_speak_sasl_is_left(data: bytes) -> None:
    talk, sasl = dialling()
    talk.peer_sends(data)
    broken(talk, Fault.FRAMING)
    assert sasl.refused


@pytest.mark.parametrize(
    "wrong", [SaslOutcome(0), SaslChallenge(b""), SaslInit("X"), OPEN], ids=lambda wrong: wrong.symbol
)
def test_a_server_that_breaks_the_order_is_left(wrong: Performative) -> None:
    talk, sasl = dialling()
    talk.peer_sends(SASL_HEADER, frame(0, encode_performative(wrong), FRAME_SASL))
    broken(talk, Fault.ILLEGAL_CONNECTION_STEP)
    assert not sasl.done


def test_two_engines_agree() -> None:
    sasl_client, sasl_server = SaslClient(), SaslServer(MECHANISMS, True)
    one, two = client(sasl=sasl_client), server(sasl=sasl_server)

    def carry(giver: Connection, taker: Connection) -> None:
        data = bytes(giver.out)
        giver.out.clear()
        taker.receive_data(data)

    carry(one, two)
    carry(two, one)
    assert one.events == [SaslMechanismsOffered(MECHANISMS)]
    sasl_client.send_init("ANONYMOUS", b"x")
    carry(one, two)
    sasl_server.send_outcome(SASL_OK)
    carry(two, one)
    assert (sasl_client.state, sasl_server.state) == (SaslState.ACCEPTED, SaslState.ACCEPTED)
    one.open()
    carry(one, two)
    assert two.events[-1] == like(ConnectionOpened)
