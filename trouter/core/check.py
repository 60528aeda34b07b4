"""The checks of the messages of one connection; made when the connection opens, and immutable.

A link without a check costs nothing. One check serves every link of its connection, and notifies its owner of each
message that is denied (security.md 4.9, 6.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from trouter.wire import octets
from trouter.wire.order import SectionOrder
from trouter.wire.sections import MessageScan
from trouter.wire.stamp import stamped

from .addresses import MAX_ADDRESS_BYTES
from .arrival import Arrival
from .outcomes import rejected_state

if TYPE_CHECKING:
    from cython import int as c_int

#: The reasons for ``MessageCheck.notify``.
USER_ID: Final = "user-id"
TARGET: Final = "target"
NO_TO: Final = "no-address"
#: The address is none of the tenant's.
RESERVED: Final = "reserved"

USER_ID_DENIED: Final = rejected_state("amqp:unauthorized-access", "user_id proxy violation")
TARGET_DENIED: Final = rejected_state("amqp:unauthorized-access", "policy violation on target")

#: Addresses of anonymous messages whose verdict is cached, and the longest one, in bytes.
MAX_KNOWN: Final = 1024
MAX_KNOWN_BYTES: Final = 256


class MessageCheck:
    """The check of one connection's messages.

    ``user`` is the only user-id allowed, None for any; ``stamp`` is set on messages without one, None for none.
    ``may_send`` judges the addresses of anonymous messages, None allows all; its verdicts are cached.
    """

    __slots__ = ("user", "stamp", "notify", "order", "_may_send", "_known")

    def __init__(
        self,
        user: bytes | None,
        stamp: bytes | None,
        may_send: Callable[[str], bool] | None,
        notify: Callable[[str, str], None],
    ) -> None:
        self.user = user
        self.stamp = stamp
        #: Called with the reason, and the address or user-id that is denied.
        self.notify = notify
        #: Checks the sections of messages that come whole.
        self.order = SectionOrder()
        self._may_send = may_send
        self._known: dict[bytes, bool] = {}

    @property
    def reads_messages(self) -> bool:
        """True if messages to a known address are read too."""
        return self.user is not None or self.stamp is not None

    def inspect_message(self, scan: MessageScan, arrival: Arrival, depth: c_int) -> bool:
        """Return whether the message in hand may go on; it has the user's name then, if that is set. InvalidMessage.

        ``scan`` has read the message up to ``depth``; it describes what goes on.
        """
        if arrival.message is None:
            self.order.check_message(arrival.data, arrival.start, arrival.end)
        if scan.user_id_start < scan.user_id_end:
            user_id: bytes = octets.cut(arrival.data, scan.user_id_start, scan.user_id_end)
            if self.user is not None and user_id != self.user:
                self.notify(USER_ID, str(user_id[:MAX_ADDRESS_BYTES], errors="replace"))
                return False
        elif self.stamp is not None:
            data: bytes = stamped(arrival.data, arrival.start, arrival.end, scan, self.stamp)
            scan.scan_sections(data, 0, len(data), depth, arrival.delivery.complete)
            arrival.replace_data(data)
            if arrival.message is not None:
                arrival.message.replace_kept(data)
        return True

    def allows_address(self, address: bytes) -> bool:
        """Return whether an anonymous message may go to ``address``."""
        if self._may_send is None:
            return True
        known = self._known.get(address)
        if known is None:
            known = self._judge_address(address)
        return known

    def _judge_address(self, address: bytes) -> bool:
        assert self._may_send is not None  # noqa: S101 - called only if it is set
        if len(address) > MAX_ADDRESS_BYTES:
            return False
        try:
            allowed = self._may_send(address.decode())
        except UnicodeDecodeError:
            allowed = False
        if len(address) > MAX_KNOWN_BYTES:
            return allowed
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[address] = allowed
        return allowed
