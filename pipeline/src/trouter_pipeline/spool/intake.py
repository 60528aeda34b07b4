"""The data path of the receiver: turns transfers into frames, without an object or a wait for each.

The bytes of a transfer go from the socket's buffer into the frames, and the delivery waits in a list until they are
durable. One call then settles the whole list, which makes one disposition.
"""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from typing import TYPE_CHECKING, Final

from trouter.client import sink
from trouter.wire.performatives import ACCEPTED, Error, Rejected, encode_state
from trouter_pipeline.spool.frames import FrameWriter

if TYPE_CHECKING:
    from cython import Py_ssize_t
    from cython import int as c_int

_ACCEPTED: Final[c_int] = 0x24
_ACCEPTED_STATE: Final[bytes] = encode_state(ACCEPTED)
_REJECTED: Final[c_int] = 0x25


class Batch:
    """The deliveries of one group of frames, with what they use of credit and window."""

    __slots__ = ("unsettled", "credit", "octets", "presettled", "refused", "aborted", "session")

    def __init__(self) -> None:
        #: Deliveries that the sender waits for.
        self.unsettled: list[sink.Delivery] = []
        #: Number of deliveries, these and others.
        self.credit: Py_ssize_t = 0
        self.octets: Py_ssize_t = 0
        self.presettled: Py_ssize_t = 0
        self.refused: Py_ssize_t = 0
        self.aborted: Py_ssize_t = 0
        #: The session whose incoming window the bytes use.
        self.session: sink.SessionPort | None = None


class Intake(sink.LinkSink):
    """The sink of one link: makes frames of its deliveries.

    ``stir`` is called when the first message of a group is whole, and when the group should be written: at
    ``group_bytes`` or ``group_count``, or without credit left. A message above ``max_message_bytes`` is rejected, and
    its remaining transfers are dropped.
    """

    __slots__ = (
        "due",
        "drained",
        "stir",
        "batch",
        "_frames",
        "_max_message_bytes",
        "_group_bytes",
        "_group_count",
        "_open",
        "_refused",
        "_refused_state",
    )

    def __init__(
        self,
        frames: FrameWriter,
        max_message_bytes: Py_ssize_t,
        group_bytes: Py_ssize_t,
        group_count: Py_ssize_t,
        stir: Callable[[], None],
    ) -> None:
        self._frames = frames
        self._max_message_bytes = max_message_bytes
        self._group_bytes = group_bytes
        self._group_count = group_count
        self.stir = stir
        #: The deliveries since the last `take`.
        self.batch = Batch()
        #: Deliveries of which more is to come: into a frame, and to be dropped.
        self._open: sink.Delivery | None = None
        self._refused: sink.Delivery | None = None
        self._refused_state: bytes = encode_state(
            Rejected(
                Error(
                    "amqp:link:message-size-exceeded",
                    f"the message has more than the {max_message_bytes} bytes that the spool takes",
                )
            )
        )
        #: The group should be written at once.
        self.due = False
        #: The sender has answered a drain.
        self.drained = False

    def make_delivery(self, link: sink.LinkPort) -> sink.Delivery:
        """See ``LinkSink``."""
        return sink.new_delivery(link)

    def on_transfer(
        self, link: sink.LinkPort, delivery: sink.Delivery, data: bytes, start: Py_ssize_t, end: Py_ssize_t
    ) -> None:
        """Add one transfer, which is a part of a message or all of it, to the frames."""
        if delivery is self._refused:
            if delivery.complete:
                self._refused = None
                self.batch.credit += 1
                self.stir()
            return
        if delivery.payload_bytes > self._max_message_bytes:
            self._refuse(delivery)
            return
        frames: FrameWriter = self._frames
        if delivery is not self._open:
            frames.begin(delivery.message_format, delivery.tag or b"", time_ns() // 1000)
            self._open = delivery
        frames.extend(data, start, end)
        if not delivery.complete:
            return
        self._open = None
        frames.finish(delivery.remote_settled)
        batch: Batch = self.batch
        batch.credit += 1
        batch.octets += delivery.payload_bytes
        batch.session = link.session
        link.session.windows.hold_bytes(delivery.payload_bytes)
        if delivery.remote_settled:
            batch.presettled += 1
        else:
            batch.unsettled.append(delivery)
        incoming: sink.IncomingLink = link  # type: ignore[assignment]  # the only kind that has transfers
        if frames.whole >= self._group_bytes or frames.count >= self._group_count or incoming.credit <= 0:
            if not self.due:
                self.due = True
                self.stir()
        elif frames.count == 1:
            self.stir()

    def on_aborted(self, link: sink.LinkPort, delivery: sink.Delivery) -> None:
        """Drop the frame of a delivery that the sender aborted."""
        if delivery is self._open:
            self._frames.cancel()
            self._open = None
        elif delivery is self._refused:
            self._refused = None
        self.batch.aborted += 1
        self.batch.credit += 1
        self.stir()

    def on_drained(self, link: sink.LinkPort) -> None:
        """Note that the sender has answered a drain."""
        self.drained = True
        self.stir()

    def take(self) -> Batch:
        """Return the deliveries of the frames that are taken now, and begin a new batch."""
        batch = self.batch
        self.batch = Batch()
        self.due = False
        return batch

    def accept(self, batch: Batch) -> None:
        """Accept a batch whose frames are durable, and open the session's window again."""
        if batch.session is not None:
            batch.session.release_bytes(batch.octets)
        for each in batch.unsettled:
            delivery: sink.Delivery = each
            delivery.link.session.settle_incoming(delivery, _ACCEPTED, _ACCEPTED_STATE, True)

    def cut(self) -> None:
        """Drop the open message, because its link is gone."""
        if self._open is not None:
            self._frames.cancel()
            self._open = None

    def _refuse(self, delivery: sink.Delivery) -> None:
        self.batch.refused += 1
        if delivery is self._open:
            self._frames.cancel()
            self._open = None
        delivery.link.session.settle_incoming(delivery, _REJECTED, self._refused_state, True)
        if delivery.complete:
            self.batch.credit += 1
            self.stir()
        else:
            self._refused = delivery
