"""What becomes of deliveries without an outcome of the receiver: the message or the link is lost, or holds others up.

Their senders hear of it, a multicast's together with the outcomes of its other copies (routing.md 2.7, 4.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trouter.engine.ports import Delivery

from .arrival import notify_sender
from .egress import Egress
from .message import IncomingDelivery, Message, OutgoingDelivery
from .outcomes import (
    FAILED_STATE,
    MODIFIED,
    RELEASED,
    RELEASED_STATE,
    TRANSACTIONAL,
    has_outcome_in_transaction,
)

if TYPE_CHECKING:
    from cython import int as c_int

_FIRST_OUTCOME: Final[c_int] = 0x24
_LAST_OUTCOME: Final[c_int] = 0x27


# --- one copy of a message


def abort_copy(out: OutgoingDelivery) -> None:
    """Abort a copy whose message will never be complete; forget it if it was not begun."""
    outgoing: Egress = out.link.sink  # type: ignore[assignment]  # it made the copy
    out.sender_delivery = None
    out.leave_outstanding()
    if out.message is not None:
        out.message.remove_copy(out)
    outgoing.remove_waiting(out)
    outgoing.link.abort_delivery(out)
    outgoing.on_credit(outgoing.link)


def cut_copy_off(out: OutgoingDelivery) -> None:
    """Abort a pre-settled copy whose receiver takes no more of it, because others wait for it."""
    outgoing: Egress = out.link.sink  # type: ignore[assignment]  # it made the copy
    outgoing.count_dropped(1)
    abort_copy(out)


def release_blocked_copy(out: OutgoingDelivery) -> None:
    """Release a copy that waits for another message to end while its session has hardly any window left.

    The other message may need that window to end, and then neither would continue. A pre-settled copy of an exchange is
    dropped instead if the message can continue without it.
    """
    outgoing: Egress = out.link.sink  # type: ignore[assignment]  # it made the copy
    if not out.begun and (_is_dispensable(out) or _waits_for_unfinished(outgoing, out)):
        outgoing.remove_waiting(out)
        _release_copy(outgoing, out)
        out.drop_unsent()


def _is_dispensable(out: OutgoingDelivery) -> bool:
    """Return whether a pre-settled copy of an exchange may be dropped: its message can continue without it."""
    message: Message | None = out.message
    if message is None or message.heads is None or not out.settled or out.sender_delivery is not None:
        return False
    if message.complete:
        return True
    for other in message.copies:
        copy: OutgoingDelivery = other
        if copy.begun:
            return True
    return False


def _waits_for_unfinished(outgoing: Egress, out: OutgoingDelivery) -> bool:
    """Return whether an unfinished message has to be sent before this copy."""
    if outgoing.waiting.count == 0 or outgoing.waiting.begins_with(out):
        return False
    ahead: Message | None = outgoing.waiting.first().message
    return ahead is not None and not ahead.complete


def _release_copy(outgoing: Egress, out: OutgoingDelivery) -> None:
    """Release a copy that will not be sent in full; drop it if its sender does not wait for an outcome."""
    if out.settled and out.sender_delivery is None:
        outgoing.count_dropped(1)
    if out.message is not None:
        out.message.remove_copy(out)
    _answer_lost_copy(out, RELEASED, RELEASED_STATE)


def _answer_lost_copy(out: OutgoingDelivery, code: c_int, state: bytes) -> None:
    """Give the sender the outcome of a copy, if it waits for one."""
    out.leave_outstanding()
    sender_delivery: IncomingDelivery | None = out.sender_delivery
    if sender_delivery is not None:
        out.sender_delivery = None
        notify_sender(out, sender_delivery, code, state, True)


# --- all of a link


def fail_sent(outgoing: Egress) -> None:
    """Fail what a silent peer was sent, and release what waits for it. The link stays.

    A peer that returns learns that all this is settled.
    """
    link = outgoing.link
    out: OutgoingDelivery
    for out in [waiting for waiting in outgoing.queue if not waiting.aborted]:
        outgoing.remove_waiting(out)
        if out.begun:
            link.abort_delivery(out)
        _release_copy(outgoing, out)
        if not out.begun:
            out.drop_unsent()
    for delivery in link.session.deliveries.deliveries_of(link, False):
        out = delivery  # type: ignore[assignment]  # made by ``Egress.offer``, as all of the link
        code, state, sender_delivery = out.remote_code, out.remote_state, out.sender_delivery
        if state is None or not _FIRST_OUTCOME <= code <= _LAST_OUTCOME:
            code, state = out.remote_code, out.remote_state = MODIFIED, FAILED_STATE
        out.sender_delivery = None
        outgoing.settle_with_receiver(out, code, state)
        if sender_delivery is not None:
            notify_sender(out, sender_delivery, code, state, True)


def lose_outgoing(outgoing: Egress, own: list[Delivery] | None) -> None:
    """Fail what the lost link had sent in full, and release the rest (routing.md 2.7).

    ``own`` is the link's unsettled deliveries, if its session is lost with it. Else, with None, an outcome in a
    transaction stays: the transaction may still be committed, on the link to its coordinator.
    """
    detached = own is None
    waiting = outgoing.waiting.clear()
    session = outgoing.link.session
    if own is None and (outgoing.unsettled > 0 or waiting):
        own = session.deliveries.deliveries_of(outgoing.link, False)
    out: OutgoingDelivery
    for out in waiting:
        _release_copy(outgoing, out)
    for delivery in own or ():
        out = delivery  # type: ignore[assignment]  # made by ``Egress.offer``
        session.deliveries.forget_outgoing(out)
        if out.complete:
            code: c_int = out.remote_code
            state: bytes | None = out.remote_state
            if state is None or not (
                _FIRST_OUTCOME <= code <= _LAST_OUTCOME
                or (detached and code == TRANSACTIONAL and has_outcome_in_transaction(state))
            ):
                code = MODIFIED
                state = FAILED_STATE
            outgoing.counters.count_outcome(code, outgoing.shared.now_s - out.arrived_at_s)
            _answer_lost_copy(out, code, state)
    outgoing.unsettled = 0
