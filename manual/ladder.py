"""The overload ladder: the router's reaction, rung by rung, when a budget of memory, places or log lines runs out.

docs/limits.md shows it; a test maps each rung to the tests that reach it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_RESOURCE: Final = "`amqp:resource-limit-exceeded`"
_HELD: Final = "`trouter_held_message_bytes`"
_REFUSED: Final = "`trouter_connections_refused_total`"
_QUOTA: Final = "`trouter_vhost_quota_alarms_raised`, alarm `quota`"
_MEMORY: Final = "alarm `memory`"


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of one budget. ``condition`` is the error that the peer gets, ``ends`` the event that reverses it."""

    budget: str
    at: str
    happens: str
    condition: str
    seen_by: str
    ends: str


_CONNECTION: Final = "messages held that came on one connection: `maxBufferedBytes` of the listener or connector"
_VHOST: Final = "messages and sessions of a vhost, group, user or host: their `maxBufferedBytes`"
_MESSAGES: Final = "messages held in all: a quarter of `maxMemoryBytes`"
_PROCESS: Final = "memory of the process: `maxMemoryBytes` of the router"
_HALF_OPEN: Final = "connections before their open"
_PLACES: Final = "connections"
_LOG: Final = "lines of the log"

LADDER: Final = (
    Rung(_CONNECTION, "over 50 %", "slow credit: the windows of its sessions open to an eighth", "-", _HELD, "at 50 %"),
    Rung(_CONNECTION, "over 100 %", "the session that brings more is ended", _RESOURCE, _HELD, "with the session"),
    Rung(_VHOST, "over 50 %", "slow credit: the windows of its sessions open to an eighth", "-", _HELD, "at 50 %"),
    Rung(
        _VHOST,
        "100 %",
        "no credit; links are refused, and all sessions of a connection but its first",
        _RESOURCE,
        _QUOTA,
        "below 100 %; the alarm 10 s later",
    ),
    Rung(_VHOST, "125 %", "connections are refused", _RESOURCE, _QUOTA, "below 125 %"),
    Rung(_MESSAGES, "over 50 %", "slow credit: the windows of all sessions open to an eighth", "-", _HELD, "at 50 %"),
    Rung(_MESSAGES, "over 100 %", "the session that brings more is ended", _RESOURCE, _HELD, "with the session"),
    Rung(
        _PROCESS,
        "80 %",
        "no credit for the connections that hold the most messages, half of them together",
        "-",
        _MEMORY,
        "below 75 %",
    ),
    Rung(
        _PROCESS,
        "85 %",
        "a client that has two links gets no third; connections of a user whose links, sessions and unsettled "
        "deliveries take a quarter of the limit are closed",
        _RESOURCE,
        _MEMORY,
        "below 80 %",
    ),
    Rung(
        _PROCESS,
        "90 %",
        "connections of the user who uses the most are closed; if no user uses a twentieth, new ones are refused, "
        "except of 8 operators",
        f"{_RESOURCE}, or the socket is closed",
        f"{_MEMORY}, {_REFUSED}",
        "below 85 %",
    ),
    Rung(
        _HALF_OPEN,
        "`maxHandshakesPerHost`, `maxHandshakes`",
        "the next one is closed",
        "-",
        _REFUSED,
        "when one opens or closes, after `initialHandshakeTimeoutSeconds` at the latest",
    ),
    Rung(
        _HALF_OPEN,
        "below `minHandshakeRate`",
        "the connection of a peer that has begun and sends too slowly is closed",
        "-",
        "line `too slow`",
        "with the connection",
    ),
    Rung(_HALF_OPEN, "`acceptRatePerHost`", "the next one from that host is closed", "-", _REFUSED, "with time"),
    Rung(
        _PLACES,
        "`maxConnections` of a listener or of the policy",
        "the next one is closed",
        "-",
        f"{_REFUSED}, `connectionsDenied`",
        "when one closes",
    ),
    Rung(
        _PLACES,
        "64 descriptors left, or a quarter of a limit below 256; half of that for HTTP and routers",
        "new clients wait in the queue of the system, and WebSockets are refused with 503; with half of that left new "
        "connections of HTTP take the place of others; existing connections, probes, records and files go on",
        "-",
        "line `cannot accept connections on`, once",
        "with the next free descriptor; a line says so",
    ),
    Rung(
        _LOG,
        "one refusal in a second",
        "further ones are counted, and the next line has their number",
        "-",
        _REFUSED,
        "after a second",
    ),
    Rung(
        _LOG,
        "16 faults or denials of one connection in a second",
        "further ones are counted, in one line a second",
        "-",
        "the counts themselves",
        "after a second",
    ),
    Rung(
        _LOG,
        "64 denials of a kind to one user in a second that are the first of a connection, and 64 others; the same of "
        "refused management requests, of which one connection has 16",
        "further ones are counted, in one line a second for all connections of the user",
        "-",
        "the counts themselves",
        "after a second",
    ),
    Rung(
        _LOG,
        "the output accepts nothing for 250 ms",
        "lines are dropped and counted; messages go on",
        "-",
        "`trouter_log_lines_lost_total`",
        "when the output accepts a line again; it says how many were lost",
    ),
)
