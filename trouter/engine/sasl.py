"""The SASL layer below a connection, both sides (AMQP 1.0 part 5, 5.3).

The layer moves frames and keeps their order; the holder of the connection decides: it gets an event and answers with a
command. Until then input waits, so the router reads nothing that an unauthenticated client sends early.
"""

from __future__ import annotations

from typing import ClassVar, Final

from trouter.wire.framing import AMQP_HEADER, FRAME_SASL, SASL_HEADER, TLS_HEADER, FrameReader, frame
from trouter.wire.performatives import (
    Performative,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
    decode_performative,
    encode_performative,
)

from .events import (
    ConnectionClosed,
    SaslChallengeReceived,
    SaslFinished,
    SaslInitReceived,
    SaslMechanismsOffered,
    SaslMechanismsWanted,
    SaslResponseReceived,
)
from .faults import Fault, PeerFault
from .ports import ConnectionPort
from .states import SASL_CLIENT_NEXT, SASL_SERVER_NEXT, IllegalStep, SaslState, SaslStep, advance

#: Outcome codes (5.3.3.6).
SASL_OK = 0
SASL_AUTH = 1
SASL_SYS = 2
SASL_SYS_TEMP = 4

#: The error for a peer that skips a layer, in the words of Qpid Dispatch's log.
UNENCRYPTED: Final = "Client connection unencrypted - forbidden"
UNAUTHENTICATED: Final = "Client skipped authentication - forbidden"


class SaslLayer:
    """What both sides share. ``done``: the AMQP layer may begin. ``refused``: it never will."""

    __slots__ = ("_connection", "_reader", "_rounds_left", "done", "refused", "state")

    _table = SASL_SERVER_NEXT
    #: The state in which the other side's header is due.
    _before: ClassVar[SaslState] = SaslState.START

    def __init__(self, max_rounds: int = 16) -> None:
        self.done = False
        self.refused = False
        self.state = SaslState.START
        self._rounds_left = max_rounds

    def read_from(self, connection: ConnectionPort, reader: FrameReader) -> None:
        """Read the input of ``connection``, below its AMQP layer."""
        self._connection = connection
        self._reader = reader

    def send_first_frame(self) -> None:
        """Send the first frame; only a client does."""

    def process_frames(self) -> bool:
        """Process whole frames; return True once the AMQP layer may begin. PeerFault."""
        reader = self._reader
        if self.state == self._before and not self._receive_header():
            return False
        while not (self.done or self.refused or self.state in _THINKING):
            if not reader.next_frame():
                return False
            if reader.frame_type != FRAME_SASL:
                raise PeerFault(Fault.FRAME_TYPE, frame_type=reader.frame_type, due="SASL")
            if reader.end > reader.start:
                try:
                    self._receive_performative(decode_performative(reader.data, reader.start, reader.end)[0])
                except IllegalStep as error:
                    raise PeerFault(Fault.ILLEGAL_CONNECTION_STEP, detail=f"SASL: {error}") from None
        return self.done

    def end_broken(self) -> None:
        """End the exchange because the peer broke its rules."""
        self.refused = True

    def _receive_header(self) -> bool:
        """Read the layer's header; return False while it is incomplete or if it ends the exchange. PeerFault."""
        raise PeerFault(Fault.FRAMING, detail="no SASL header")

    def _receive_performative(self, performative: Performative) -> None:
        raise PeerFault(Fault.ILLEGAL_CONNECTION_STEP, detail="SASL frame out of place")

    def _advance_state(self, step: SaslStep) -> None:
        self.state = advance(self._table, self.state, step)

    def _count_round(self) -> None:
        self._rounds_left -= 1
        if self._rounds_left < 0:
            raise PeerFault(Fault.ILLEGAL_CONNECTION_STEP, detail="SASL: too many rounds")

    def _write(self, performative: Performative) -> None:
        self._connection.out += frame(0, encode_performative(performative), FRAME_SASL)
        self._connection.touch()

    def _write_header(self) -> None:
        self._connection.out += SASL_HEADER
        self._connection.touch()


class SaslServer(SaslLayer):
    """The server side: offers ``mechanisms``, or those that ``offer_mechanisms`` gets if None.

    Unless ``required``, a client may skip the layer. With ``tls_due`` no client passes: the layer only answers clients
    that had to begin with TLS.
    """

    __slots__ = ("_mechanisms", "_required", "_tls_due", "mechanism")

    def __init__(
        self, mechanisms: tuple[str, ...] | None, required: bool, max_rounds: int = 16, *, tls_due: bool = False
    ) -> None:
        super().__init__(max_rounds)
        self._mechanisms = mechanisms
        self._required = required
        self._tls_due = tls_due
        self.mechanism = ""

    def offer_mechanisms(self, mechanisms: tuple[str, ...]) -> None:
        """Send the client the mechanisms; its input waits until the next ``receive_data``."""
        self._advance_state(SaslStep.SEND_MECHANISMS)
        self._mechanisms = mechanisms
        self._write(SaslMechanisms(mechanisms))

    def send_challenge(self, challenge: bytes) -> None:
        """Send a challenge to the client."""
        self._advance_state(SaslStep.SEND_CHALLENGE)
        self._write(SaslChallenge(challenge))

    def send_outcome(self, code: int, additional: bytes | None = None) -> None:
        """Accept the client (0) or refuse it (any other code of 5.3.3.6)."""
        self._advance_state(SaslStep.SEND_OUTCOME if code == SASL_OK else SaslStep.SEND_REFUSAL)
        self._write(SaslOutcome(code, additional))
        self.done = code == SASL_OK
        self.refused = not self.done

    def end_broken(self) -> None:
        """End a broken exchange, with an outcome if the state allows one."""
        if self.state in (SaslState.OFFERED, SaslState.CHALLENGED, SaslState.DECIDING):
            self._write(SaslOutcome(SASL_SYS))
        self.refused = True

    def _receive_header(self) -> bool:
        seen = self._reader.peek_bytes(8)
        if seen == SASL_HEADER:
            if self._tls_due:
                self._connection.out += TLS_HEADER  # 2.2: answer with the header that we support, then close
                self._connection.touch()
                self.refused = True
                self._connection.report(ConnectionClosed(None, PeerFault(Fault.FORBIDDEN, detail=UNENCRYPTED)))
                return False
            self._reader.take_bytes(8)
            self._advance_state(SaslStep.RECEIVE_HEADER)
            self._write_header()
            self._advance_state(SaslStep.SEND_HEADER)
            if self._mechanisms is None:
                self._connection.report(SaslMechanismsWanted())
            else:
                self.offer_mechanisms(self._mechanisms)
            return True
        if seen == AMQP_HEADER:
            self.done = True  # continue with AMQP, if only to send the error
            if self._tls_due or self._required:
                raise PeerFault(Fault.FORBIDDEN, detail=UNENCRYPTED if self._tls_due else UNAUTHENTICATED)
            return True
        if not (AMQP_HEADER.startswith(seen) or SASL_HEADER.startswith(seen)):
            self.done = True  # neither header: the connection answers it
            return True
        return False

    def _receive_performative(self, performative: Performative) -> None:
        if isinstance(performative, SaslInit):
            self._advance_state(SaslStep.RECEIVE_INIT)
            named = performative.mechanism
            # the text that was offered, which all connections share, in place of an equal one
            self.mechanism = next((offered for offered in self._mechanisms or () if offered == named), named)
            self._connection.report(
                SaslInitReceived(self.mechanism, performative.initial_response, performative.hostname)
            )
        elif isinstance(performative, SaslResponse):
            self._advance_state(SaslStep.RECEIVE_RESPONSE)
            self._count_round()
            self._connection.report(SaslResponseReceived(performative.response))
        else:
            raise PeerFault(Fault.ILLEGAL_CONNECTION_STEP, detail=f"SASL: {performative.symbol} from a client")


class SaslClient(SaslLayer):
    """The client side: the router where it dials, or a client."""

    __slots__ = ()

    _table = SASL_CLIENT_NEXT
    _before: ClassVar[SaslState] = SaslState.HEADER_SENT

    def send_first_frame(self) -> None:
        """Send the SASL header."""
        self._write_header()
        self._advance_state(SaslStep.SEND_HEADER)

    def send_init(self, mechanism: str, response: bytes | None, hostname: str | None = None) -> None:
        """Choose ``mechanism`` and send its initial response."""
        self._advance_state(SaslStep.SEND_INIT)
        self._write(SaslInit(mechanism, response, hostname))

    def send_response(self, response: bytes) -> None:
        """Send the response to a challenge."""
        self._advance_state(SaslStep.SEND_RESPONSE)
        self._write(SaslResponse(response))

    def _receive_header(self) -> bool:
        seen = self._reader.peek_bytes(8)
        if seen == SASL_HEADER:
            self._reader.take_bytes(8)
            self._advance_state(SaslStep.RECEIVE_HEADER)
            return True
        if SASL_HEADER.startswith(seen):
            return False
        raise PeerFault(Fault.FRAMING, detail="the server does not speak SASL")

    def _receive_performative(self, performative: Performative) -> None:
        if isinstance(performative, SaslMechanisms):
            self._advance_state(SaslStep.RECEIVE_MECHANISMS)
            self._connection.report(SaslMechanismsOffered(performative.sasl_server_mechanisms))
        elif isinstance(performative, SaslChallenge):
            self._advance_state(SaslStep.RECEIVE_CHALLENGE)
            self._count_round()
            self._connection.report(SaslChallengeReceived(performative.challenge))
        elif isinstance(performative, SaslOutcome):
            self._advance_state(SaslStep.RECEIVE_OUTCOME if performative.code == SASL_OK else SaslStep.RECEIVE_REFUSAL)
            self.done = performative.code == SASL_OK
            self.refused = not self.done
            self._connection.report(SaslFinished(performative.code, performative.additional_data))
        else:
            raise PeerFault(Fault.ILLEGAL_CONNECTION_STEP, detail=f"SASL: {performative.symbol} from a server")


_THINKING = frozenset((SaslState.HEADER_SENT, SaslState.DECIDING, SaslState.CHOOSING, SaslState.RESPONDING))
