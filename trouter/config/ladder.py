"""The overload ladder: what the router does, rung by rung, as a budget of memory, places or log lines runs out.

docs/limits.md shows it; a test holds each rung to the tests that reach it.
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
    """One step of one budget. ``condition`` is what the peer is sent, ``ends`` what leads back down."""

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
    Rung(_CONNECTION, "over 50 %", "slow credit: windows of its sessions open an eighth as far", "-", _HELD, "at 50 %"),
    Rung(_CONNECTION, "over 100 %", "the session that brings more is ended", _RESOURCE, _HELD, "with the session"),
    Rung(_VHOST, "over 50 %", "slow credit: windows of its sessions open an eighth as far", "-", _HELD, "at 50 %"),
    Rung(
        _VHOST,
        "100 %",
        "no credit; links are refused, and sessions beyond a connection's first",
        _RESOURCE,
        _QUOTA,
        "below 100 %; the alarm 10 s later",
    ),
    Rung(_VHOST, "125 %", "connections are refused", _RESOURCE, _QUOTA, "below 125 %"),
    Rung(_MESSAGES, "over 50 %", "slow credit: windows of all sessions open an eighth as far", "-", _HELD, "at 50 %"),
    Rung(_MESSAGES, "over 100 %", "the session that brings more is ended", _RESOURCE, _HELD, "with the session"),
    Rung(
        _PROCESS,
        "80 %",
        "no credit for the connections that make up half of the messages held",
        "-",
        _MEMORY,
        "below 75 %",
    ),
    Rung(_PROCESS, "85 %", "links are refused to clients that have two", _RESOURCE, _MEMORY, "below 80 %"),
    Rung(
        _PROCESS,
        "90 %",
        "connections of the user who takes most are closed; where no user takes a twentieth, new ones are refused",
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
        "when one opens or goes, which is after `initialHandshakeTimeoutSeconds` at the latest",
    ),
    Rung(
        _HALF_OPEN,
        "below `minHandshakeRate`",
        "a peer that has begun and sends too slowly is cut off",
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
        "when one goes",
    ),
    Rung(
        _PLACES,
        "no descriptor left",
        "clients wait in the system's queue; present ones go on",
        "-",
        "line `cannot accept on`, once",
        "with the next free descriptor, with a line",
    ),
    Rung(
        _LOG,
        "one refusal in a second",
        "further ones are counted, and stand in the next line",
        "-",
        _REFUSED,
        "after a second",
    ),
    Rung(
        _LOG,
        "16 faults or denials of one connection in a second",
        "further ones are one line at its end",
        "-",
        "the counts themselves",
        "after a second",
    ),
    Rung(
        _LOG,
        "the output takes nothing for 250 ms",
        "lines are lost and counted; messages go on",
        "-",
        "`trouter_log_lines_lost_total`",
        "with the first line that is taken, which says how many were lost",
    ),
)
