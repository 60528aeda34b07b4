"""One log line for each message received and sent, with chosen properties (routing.md 4.8, messageLoggingComponents).

Only connections that ask for it have a log; for others the data path compares one pointer. The order of the components
is fixed, absent ones are omitted, and an unreadable message is logged as far as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from trouter.wire import constants
from trouter.wire.errors import DecodeError
from trouter.wire.message import SectionReader
from trouter.wire.types import PairMap
from trouter.wire.value_text import property_text

if TYPE_CHECKING:
    from trouter.engine.link_base import Link

    from .arrival import Arrival
    from .message import OutgoingDelivery

#: The longest line, in characters.
MAX_LINE: Final = 2048
#: Texts kept for messages of a link that are not known to wait, beside two for each that waits.
_SPARE_TEXTS: Final = 64

#: Components and their positions in the properties.
PROPERTIES: Final = {
    "message-id": 0,
    "user-id": 1,
    "to": 2,
    "subject": 3,
    "reply-to": 4,
    "correlation-id": 5,
    "content-type": 6,
    "content-encoding": 7,
    "absolute-expiry-time": 8,
    "creation-time": 9,
    "group-id": 10,
    "group-sequence": 11,
    "reply-to-group-id": 12,
}
APPLICATION_PROPERTIES: Final = "app-properties"
COMPONENTS: Final = (*PROPERTIES, APPLICATION_PROPERTIES)


class MessageLog:
    """The log of one connection: ``components`` by name or ``all``; ``emit`` gets the link and the text."""

    def __init__(self, components: Iterable[str], emit: Callable[[Link, str], None]) -> None:
        wanted = set(components)
        self._names = [name for name in COMPONENTS if name in wanted or "all" in wanted]
        self._emit = emit

    def note_received(self, arrival: Arrival) -> None:
        """Log a message that was received."""
        link: Link = arrival.delivery.link  # type: ignore[assignment]  # messages come on links
        self._log_line(link, f"Received {self.describe_message(arrival.whole())}")

    def note_aborted(self, link: Link) -> None:
        """Log a message that its sender aborted."""
        self._log_line(link, "Received aborted message")

    def log_sent(self, link: Link, text: str) -> None:
        """Log a message that was sent in full, by its description."""
        self._log_line(link, f"Sent {text}")

    def describe_message(self, message: bytes) -> str:
        """Return ``Message{...}`` with the chosen components that the message has."""
        properties, application = _read(message)
        shown: list[str] = []
        for name in self._names:
            place = PROPERTIES.get(name)
            value = application if place is None else properties[place] if place < len(properties) else None
            if value is not None:
                shown.append(f"{name}={property_text(value)}")
        return f"Message{{{', '.join(shown)}}}"

    def _log_line(self, link: Link, text: str) -> None:
        attach = link.remote_attach
        source = getattr(attach.source, "address", None) if attach is not None else None
        target = getattr(attach.target, "address", None) if attach is not None else None
        where = f" on link '{link.name}' ({source or ''} -> {target or ''})"
        self._emit(link, text[: MAX_LINE - len(where)] + where)


class SendingLink(Protocol):
    """An outgoing link whose messages are logged; see ``Egress``."""

    @property
    def link(self) -> Link:
        """Return the link."""

    @property
    def backlog(self) -> int:
        """Return the number of deliveries that wait."""

    @property
    def queue(self) -> Collection[OutgoingDelivery]:
        """Return the deliveries that wait."""


class SentLog:
    """The log of one outgoing link; it keeps the descriptions of messages that wait."""

    def __init__(self, log: MessageLog, outgoing: SendingLink) -> None:
        self._log = log
        self._outgoing = outgoing
        self._texts: dict[OutgoingDelivery, str] = {}

    def note_offered(self, out: OutgoingDelivery, message: bytes) -> None:
        """Describe ``out``, which is about to be sent or to wait."""
        if len(self._texts) > 2 * self._outgoing.backlog + _SPARE_TEXTS:
            waiting = set(self._outgoing.queue)
            self._texts = {each: text for each, text in self._texts.items() if each in waiting}
        self._texts[out] = self._log.describe_message(message)

    def log_sent(self, out: OutgoingDelivery) -> None:
        """Log ``out``, which was sent in full."""
        text = self._texts.pop(out, None)
        if text is not None:
            self._log.log_sent(self._outgoing.link, text)


def _read(message: bytes) -> tuple[list[object], object]:
    """Return the properties and the application properties, as far as they are readable."""
    properties: list[object] = []
    application: object = None
    reader = SectionReader(message)
    try:
        while (code := reader.next_section()) and code <= constants.APPLICATION_PROPERTIES:
            if code == constants.PROPERTIES:
                fields = reader.read_value()
                properties = fields if isinstance(fields, list) else properties
            elif code == constants.APPLICATION_PROPERTIES:
                entries = reader.read_value()
                application = entries if isinstance(entries, dict | PairMap) else None
    except DecodeError:
        pass
    return properties, application
