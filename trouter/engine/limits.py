"""Every limit of one connection; `docs/limits.md` says what happens at each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trouter.wire.constants import MAX_ATTACH_NODES, MAX_NODES
from trouter.wire.transfers import Undecodable

UNLIMITED: Final = 1 << 62
DEFAULT_CHANNEL_MAX: Final = 32767


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What one connection may use. Sizes in bytes, times in seconds."""

    #: The largest frame we accept, and the max-frame-size of our open.
    max_frame_bytes: int = 16384
    #: The highest channel a peer may begin a session on.
    channel_max: int = DEFAULT_CHANNEL_MAX
    #: The highest handle a peer may attach a link on, per session.
    handle_max: int = 65535
    #: Links per connection, all sessions together.
    max_links: int = 65536
    #: Bytes of transfers that a session accepts before it closes its incoming window.
    session_window_bytes: int = 8 * 1024 * 1024
    #: Bytes of messages that the sessions of a connection hold together.
    max_buffered_bytes: int = UNLIMITED
    #: The incoming window in frames; 0 derives it from ``session_window_bytes``.
    session_window_frames: int = 0
    #: A connection silent for this long is closed; 0 for never. Half of it is advertised.
    idle_timeout_s: float = 16.0
    #: Output waiting in a connection before its links pause, and before they go on.
    high_water_bytes: int = 512 * 1024
    low_water_bytes: int = 256 * 1024
    #: Output waiting in a connection from which on we stop reading it: the peer does not read our answers.
    output_limit_bytes: int = 2 * 1024 * 1024
    #: The largest message that a link accepts; 0 for any.
    max_message_bytes: int = 0
    #: Transfer frames of one delivery, besides one for each 256 bytes that it brought.
    max_delivery_frames: int = 65536
    #: Events that one ``receive_data`` may add before the rest of the input waits for the next call.
    max_events: int = UNLIMITED
    #: Work that one ``receive_data`` may do before the rest waits: 4 for a flow, 1 for a disposition and, unless it
    #: settles them, for each of its deliveries. Transfers are bounded by the octets of a read.
    max_work: int = UNLIMITED
    #: Responses (on a server) or challenges (on a client) before a SASL exchange is refused.
    max_sasl_rounds: int = 16
    #: The largest SASL frame; a peer may rely only on the standard's minimum of 512 bytes (part 5, 5.3.1).
    max_sasl_frame_bytes: int = 8192
    #: The largest frame before the peer's open is accepted, if ``max_frame_bytes`` allows more.
    max_open_frame_bytes: int = 65536
    #: Values in the peer's open, nested ones included.
    max_open_nodes: int = MAX_NODES
    #: Values in an attach, nested ones included.
    max_attach_nodes: int = MAX_ATTACH_NODES
    #: Attaches keep the field that a router never reads: ``unsettled``.
    whole_attaches: bool = True
    #: The treatment of a delivery state that cannot be decoded.
    undecodable_states: Undecodable = Undecodable.REFUSED
    #: A peer that opens first must name its container; a client of proton-C that sets no name has an empty one.
    requires_container_id: bool = False
    #: Bytes of a container-id; Qpid Dispatch has no limit.
    max_name_bytes: int = 8192
    #: Bytes of a link's name: clients make it of their container-id and an address, which may have 4,096.
    max_link_name_bytes: int = 8192
    #: Our first transfer-id and delivery-id; tests start near the wrap.
    first_outgoing_id: int = 0

    @property
    def window_frames(self) -> int:
        """Incoming window of a new session, in frames."""
        return self.session_window_frames or max(2, self.session_window_bytes // self.max_frame_bytes)
