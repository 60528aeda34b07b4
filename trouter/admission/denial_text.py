"""The log lines of denials and of closed connections (module POLICY), in Qpid Dispatch's words for its tools.

Texts that a client chose, its user name and its vhost, are quoted so that they cannot end their quotes.
"""

from __future__ import annotations

from typing import Final

from trouter.logs.peer_text import quoted

from .policy_counts import VhostCounts

#: The limits on links of Qpid Dispatch, with its names.
_LINK_LIMITS: Final = ("maxSenders", "maxReceivers")
_MAX_RULE: Final = 256


def denied(operation: str, reason: str, user: str, host: str, vhost: str, rule: str, text: str) -> str:
    """Return the text for a denied ``operation``; ``text`` is the address, or the object of the denial."""
    if operation == "begin":
        who = f"user: {quoted(user)}, rhost: {host}, vhost: {quoted(vhost)}"
        return f"DENY AMQP Begin Session due to session limit. {who}"
    who = f"for user {quoted(user)}, rhost '{host}', vhost {quoted(vhost)}"
    if operation == "open":
        return f"DENY AMQP Open {who}: {reason} rule={_shown(rule)} {_shown(text)}"
    if operation == "attach":
        limit = rule.rpartition(":")[2]
        if limit in _LINK_LIMITS:
            return f"DENY AMQP Attach {reason} {who} based on {limit} limit"
        return f"DENY AMQP Attach {reason} link {quoted(text)} {who} based on {_shown(rule)}"
    if operation == "send" and reason == "message-size":
        return f"DENY AMQP Transfer maxMessageSize exceeded {who} rule={_shown(rule)}"
    whose = f"user={_shown(user)} host={host} vhost={_shown(vhost)}"
    return f"DENY {operation} {reason}: {whose} rule={_shown(rule)} {_shown(text)}"


def closed(name: str, held: tuple[int, int, int], denials: VhostCounts, connections: int) -> str:
    """Return the text for the end of a connection that had ``held`` sessions, senders and receivers.

    ``denials`` are those of its vhost so far, on all connections.
    """
    sessions, senders, receivers = held
    return (
        f"Connection {quoted(name)} closed with resources n_sessions={sessions}, n_senders={senders}, "
        f"n_receivers={receivers}, sessions_denied={denials.session_denied}, "
        f"senders_denied={denials.sender_denied}, receivers_denied={denials.receiver_denied}, "
        f"max_message_size_denied:{denials.max_message_size_denied}, nConnections= {connections}."
    )


def _shown(text: str) -> str:
    return repr(text[:_MAX_RULE])
