"""The table of limits: the default of each, the router's reaction, the attribute that sets it, and the metric.

docs/limits.md is written from this table; a test compares its numbers with the constants of the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit. ``at`` describes the reaction, with the AMQP conditions that a peer gets in backticks."""

    name: str
    value: str
    at: str
    #: Types of entities, and in backticks their attributes; empty for a limit that cannot be set.
    set_by: str = ""
    metric: str = ""


LIMITS: Final = (
    Limit(
        "frame size",
        "16384 bytes",
        "connection closed, `amqp:connection:framing-error`",
        set_by="listener `maxFrameSize`",
    ),
    Limit("frames that the router sends", "1 MiB, or the peer's max-frame-size if smaller", "split"),
    Limit(
        "unfinished message before the router begins to send it to a receiver whose session window has fewer than 256 "
        "frames left",
        "a frame of the receiver, or half of the sender's session window; none for streams between routers",
        "streamed, piece by piece",
    ),
    Limit(
        "sessions per connection",
        "1024 on listeners of role `normal`, 256 with `secureDefaults`; else 32768",
        "connection closed, `amqp:connection:framing-error`",
        set_by="listener `maxSessions`",
    ),
    Limit(
        "links between two routers for unfinished messages",
        "256 in use, 128 idle, by direction",
        "further ones take the link of their priority; idle ones are closed, 10 in 30 s",
    ),
    Limit("data links of a neighbour", "512", "refused, `amqp:resource-limit-exceeded`"),
    Limit("handle of a link", "65535 per session", "connection closed, `amqp:connection:framing-error`"),
    Limit(
        "links per connection",
        "32768, with `secureDefaults` 1000; for routers 65536",
        "link refused, `amqp:resource-limit-exceeded`",
        set_by="listener or connector `maxLinks`",
    ),
    Limit(
        "links per connection, with those that are refused and not detached yet",
        "twice as many, 65536 at most",
        "session ended, `amqp:resource-limit-exceeded`",
    ),
    Limit(
        "messages from one connection that the router holds",
        "64 MiB; for routers none",
        "from half of it on, session windows open to an eighth; beyond it, the session that brings more is ended, "
        "`amqp:resource-limit-exceeded`",
        set_by="listener or connector `maxBufferedBytes`",
        metric="`trouter_held_message_bytes`",
    ),
    Limit(
        "unsettled deliveries of a receiver",
        "10,000 a link; for routers none",
        "more wait until some are settled; their senders get no credit",
        set_by="listener or connector `maxUnsettled`",
    ),
    Limit(
        "memory of a delivery that is not settled",
        "220 bytes at each end; its message is let go when all of it was sent",
        "counted in the memory of the user, as links and sessions are: see the overload ladder below",
    ),
    Limit(
        "copies of a message to a multicast address or an exchange",
        "one for each receiver: as many as `maxReceivers` of the connections and the quota `maxLinks` allow",
        "the next receiver is refused, `amqp:resource-limit-exceeded`",
    ),
    Limit(
        "credit of a sender",
        "250 deliveries; beyond it, as many as its credit ever was (64 times as many from a `route-container`, and "
        "about as many as the link has capacity before its first credit) are still accepted, counted as "
        "`overdrawnCount` of the link and `overdrawnDeliveries` of the router, and logged once a link",
        "link detached, `amqp:link:transfer-limit-exceeded`",
        set_by="listener `linkCapacity`",
        metric="`overdrawnCount`, `overdrawnDeliveries`",
    ),
    Limit(
        "incoming window of a session",
        "8 MiB of frames (64 MiB between routers), less the messages held, and divided among the sessions so "
        "that all windows together fit into what the connection may hold",
        "a client that sends more is not read until half of the window is free; one that receives, too, or that has "
        "begun a message on one of several links, is read on, because what it sends may free the window",
        set_by="listener `maxSessionFrames`",
    ),
    Limit(
        "transfer frames beyond the windows of a connection's sessions",
        "`maxBufferedBytes` in frames of `maxFrameSize` (4096); between routers none; besides that, as much as the "
        "window for a delivery already begun",
        "session ended, `amqp:session:window-violation`",
        set_by="listener or connector `maxBufferedBytes`",
    ),
    Limit(
        "messages that the router holds, in all",
        "a quarter of the memory below",
        "from half of it on, session windows open to an eighth; beyond it, the session that brings more is ended, "
        "`amqp:resource-limit-exceeded`",
        set_by="router `maxMemoryBytes`",
        metric="`trouter_held_message_bytes`, `trouter_held_message_bytes_limit`",
    ),
    Limit(
        "memory of the process",
        "what the machine or the container has",
        "from 80 percent on, the connections that hold the most messages, half of them together, get no credit; "
        "from 85 percent on, a client gets no third link, and the router closes connections of a user whose links and "
        "sessions take a quarter of the limit; from 90 percent on, it closes those of the user who uses the most (a "
        "twentieth of the limit or more) with `amqp:resource-limit-exceeded`, or, if no user uses so much, new "
        "connections, except of 8 operators; an alarm for each mark",
        set_by="router `maxMemoryBytes`",
        metric="`trouter_memory_bytes`",
    ),
    Limit(
        "links, addresses, rates, messages held and sessions of a vhost, a group, a user or a host",
        "none",
        "see [policy.md](policy.md#quotas)",
        set_by="vhost, its groups, `perUser`, `perHost`",
        metric="`trouter_vhost_quota_alarms_total`",
    ),
    Limit("delivery-tag", "32 bytes", "delivery rejected, `amqp:invalid-field`"),
    Limit(
        "frames of one delivery",
        "65536, and one more for each 256 bytes of the delivery",
        "link detached, `amqp:resource-limit-exceeded`",
    ),
    Limit("nesting of a value", "32", "connection closed, `amqp:decode-error`"),
    Limit(
        "open and attaches of a connection, beyond 2 KiB of each",
        "counted with the messages from the connection, and in the quotas of its vhost, group, user and host",
        "session ended, or the open refused, with `amqp:resource-limit-exceeded`; by a quota, the link refused",
        set_by="listener or connector `maxBufferedBytes`",
    ),
    Limit(
        "values in a performative, nested ones included",
        "1024; in an attach 8192, of a router 65536",
        "connection closed, `amqp:decode-error`",
    ),
    Limit(
        "a delivery state with fields",
        "must be AMQP, and the two limits above apply; fields of a wrong form are left out",
        "connection closed, `amqp:decode-error`; from a router its outcome goes on without details",
    ),
    Limit(
        "the error of a detach, an end or a close",
        "as above; fields of a wrong form are left out, and an error without a condition is none",
        "connection closed, `amqp:decode-error`",
    ),
    Limit(
        "keys of a map that are uuids, or lists, maps or arrays",
        "64 in a performative",
        "connection closed, `amqp:decode-error`",
    ),
    Limit("items of zero width in an array", "4096", "connection closed, `amqp:decode-error`"),
    Limit("header, annotations or properties of a message", "1 MiB each", "delivery rejected, `amqp:decode-error`"),
    Limit("trace entries of a message", "64", "delivery rejected, `amqp:invalid-field`"),
    Limit("address", "4096 bytes", "attach refused, `amqp:invalid-field`; an anonymous message is released"),
    Limit(
        "key of a [binding](exchanges.md)", "4096 bytes, 128 tokens", 'refused: "The binding key pattern is invalid"'
    ),
    Limit("subject of a message to an exchange", "4096 bytes, 128 tokens", "fits no binding"),
    Limit("exchanges in a row that a message passes on one router", "8, each once", "its copy goes no further"),
    Limit(
        "copies of an exchange that wait for slow next hops",
        "half of the sender's session window",
        "further copies for these next hops are dropped",
        set_by="listener `maxSessionFrames`",
    ),
    Limit(
        "a next hop that accepts nothing of a long message while other next hops wait", "10 s", "its copy is aborted"
    ),
    Limit("message to a consumer inside the router", "1 MiB", "delivery rejected, `amqp:link:message-size-exceeded`"),
    Limit(
        "unfinished message before the router sends its beginning",
        "128 KiB",
        "streamed, piece by piece; between routers over a link of its own",
    ),
    Limit(
        "links for such messages on a connection between routers",
        "256 in use, 128 idle",
        "further ones take the link that short messages take",
    ),
    Limit(
        "pre-settled deliveries waiting for a receiver",
        "`linkCapacity`",
        "all but the first are dropped, and counted",
        set_by="listener `linkCapacity`",
    ),
    Limit("output waiting for a peer", "512 KiB, and a frame; its links resume at 256 KiB", "its links pause"),
    Limit(
        "output waiting for a peer that does not read the answers of the router",
        "2 MiB",
        "the router does not read from the peer until the peer reads",
    ),
    Limit(
        "attaches of a user, ends of its links, and requests of it that are allowed, each with a record of its own",
        "1024 of each, and 16 more each second; for routers all",
        "the others of a second share one record, and one line in the log, with their number",
    ),
    Limit(
        "records of links and connections, in a recordLog with `whenFull` `dropNewest`",
        "seven eighths of `maxBytes`",
        "further ones are dropped and counted; the last eighth is for logins, denials, changes and alarms",
    ),
    Limit(
        "work for a peer that has gone, such as after a reset, while what it sent before is read",
        "16384: 64 for a begin, attach, detach or end, 4 for a flow, 1 for an outcome, none for a message",
        "the rest is dropped",
    ),
    Limit("frame before the open is answered", "65536 bytes", "connection closed, `amqp:connection:framing-error`"),
    Limit("SASL frame", "8192 bytes", "refused"),
    Limit("container-id", "8192 bytes", "connection closed, `amqp:invalid-field`"),
    Limit("user that a client certificate makes", "8192 bytes", "TLS refused"),
    Limit(
        "sessions for routed links on a broker's connection", "32, or what its channel-max leaves", "clients share them"
    ),
    Limit("link routes that a connection creates for itself", "1000", "CREATE answered with 403"),
    Limit(
        "steps of the search for an address's link route, one for each pattern that still fits after each token",
        "20,000",
        "link refused, `qd:no-route-to-dest`; an anonymous message is released",
    ),
    Limit(
        "an error that the router passes on over a routed link",
        "400 bytes",
        "its condition and the first 60 characters of its description go on",
    ),
    Limit("a detach of a routed link that the other side does not answer", "10 s", "the router answers it"),
    Limit("a routed link's attach", "one frame of the other side", "link refused, `amqp:connection:framing-error`"),
    Limit("name of a link", "8192 bytes", "session ended, `amqp:invalid-field`"),
    Limit("symbol", "1024 bytes", "connection closed, `amqp:decode-error`"),
    Limit(
        "connections that have not sent their open yet",
        "1000, of which 20 from one host, with `secureDefaults`; else none",
        "socket closed, a line in the log",
        set_by="router `maxHandshakes`, `maxHandshakesPerHost`",
        metric="`trouter_connections_refused_total`",
    ),
    Limit(
        "bytes a second before the open, after 2 s, once a peer has begun",
        "64 with `secureDefaults`; else none",
        "socket closed",
        set_by="router `minHandshakeRate`",
    ),
    Limit(
        "new connections from one host",
        "50 a second, 100 at once, with `secureDefaults`; one that is refused because of earlier failed logins "
        "counts as 11; else none",
        "socket closed, a line in the log",
        set_by="router `acceptRatePerHost`, `acceptBurstPerHost`",
        metric="`trouter_connections_refused_total`",
    ),
    Limit(
        "time to the open",
        "10 s, 5 s or half of it for TLS",
        "socket closed",
        set_by="listener `initialHandshakeTimeoutSeconds`",
    ),
    Limit("SASL exchange", "16 rounds, 10 s a step", "refused"),
    Limit(
        "failed logins from one host, and of one user from that host",
        "5 in 60 s",
        "with `secureDefaults` further attempts wait 1 to 30 s, one after another, and those that would wait longer "
        "are refused with outcome 4; else only the answers to wrong passwords of that user from that host are late",
        set_by="router `authDelayAfter` and others",
    ),
    Limit(
        "failed logins of one user from one host",
        "20 in 10 min, with `secureDefaults`; else none",
        "the user is locked out at that host for 15 min",
        set_by="router `authLockoutAfter` and others",
    ),
    Limit(
        "failed logins that are remembered",
        "100,000 users and hosts",
        "those that were used least recently are forgotten",
    ),
    Limit(
        "a [decision](decisions.md) sent to the router",
        "4096 bytes, a day, 10 in a second, 1000 in force",
        "rejected; beyond the rate, released",
        set_by="router `pluginSettings` (feedback)",
    ),
    Limit(
        "bodies of messages in records of a vhost",
        "100 in a second, 256 bytes each",
        "not recorded",
        set_by="vhost `sampleBytes`",
    ),
    Limit("file of users", "64 MiB", "refused"),
    Limit("passwords, or calls into PAM or Cyrus SASL, waiting for a thread", "64 each", "refused with outcome 4"),
    Limit(
        "an answer of an authentication service",
        "5 s",
        "refused with outcome 4",
        set_by="authServicePlugin `timeoutSeconds`",
    ),
    Limit(
        "failures of an authentication service in a row",
        "5",
        "the router does not use it for 10 s, then tries it with one login; it refuses logins meanwhile with outcome 4",
    ),
    Limit("a frame of an authentication service", "8192 bytes in SASL, 1 MiB for its open", "refused with outcome 4"),
    Limit("rights of a user, from a service or a token", "10,000", "refused"),
    Limit(
        "remembered answers of an authentication service",
        "10,000, for 60 s at most",
        "the oldest are forgotten",
        set_by="authServicePlugin `cacheSeconds`",
    ),
    Limit(
        "keys of a token issuer",
        "64, in 256 KiB, fetched within 5 s and once in 10 s",
        "the router uses the former keys, for an hour",
    ),
    Limit(
        "iterations that a SCRAM server may ask for, on connectors and in the client",
        "2,000,000",
        "authentication fails",
    ),
    Limit(
        "an update of addresses between routers",
        "16 MiB and 1,100,000 values, enough for half a million addresses; read and stored 100 addresses at a time, "
        "with turns for others in between",
        "thrown away, counted",
        metric="`trouter_network_faults_total`",
    ),
    Limit(
        "any other message between routers",
        "128 KiB",
        "thrown away, counted",
        metric="`trouter_network_faults_total`",
    ),
    Limit(
        "updates of addresses that wait",
        "64 MiB with what waits behind them, of one neighbour half of what the others leave",
        "thrown away, counted; the router requests the addresses again",
        metric="`trouter_network_faults_total`",
    ),
    Limit(
        "other routers that the router remembers; their links; their addresses",
        "10,000; 500,000; 256 MiB",
        "the rest is ignored, with a line in the log",
    ),
    Limit(
        "requests to other routers, and addresses sent to routers that ask, in a second",
        "1000; 1,000,000",
        "they wait for the next second",
    ),
    Limit(
        "routers that a message between routers may have passed",
        "64",
        "thrown away, counted",
        metric="`trouter_network_faults_total`",
    ),
    Limit(
        "log lines about faults of other routers",
        "one for each router and fault in 60 s, 1000 in that time",
        "counted only",
        metric="`trouter_network_faults_total`",
    ),
    Limit(
        "silence",
        "16 s (the router advertises half)",
        "connection closed, `amqp:resource-limit-exceeded`",
        set_by="listener `idleTimeoutSeconds`",
    ),
    Limit(
        "connections per listener",
        "none",
        "socket closed, a line in the log",
        set_by="listener `maxConnections`",
        metric="`trouter_connections_refused_total`",
    ),
    Limit(
        "connections accepted per second",
        "none",
        "the next ones wait; refused ones do not count",
        set_by="listener `acceptRate`",
    ),
    Limit(
        "checks of a listener that has refused clients",
        "one each 10 ms",
        "all clients that connect meanwhile wait, at most for this time",
    ),
    Limit(
        "work of one connection before others have a turn",
        "32 begins, attaches, detaches and ends; 256 flows; 1024 dispositions; or 2 ms, while others wait",
        "the rest waits, and the user who has taken least of the processor is next",
    ),
    Limit("attaches and detaches waiting in a session", "256", "the connection is not read until they are answered"),
    Limit(
        "drain at TERM", "10 s", "connections closed, `amqp:connection:forced`", set_by="router `drainTimeoutSeconds`"
    ),
    Limit("time for the close of a connection to be sent", "2 s", "socket closed"),
    Limit("a management request", "256 KiB", "answered 400"),
    Limit(
        "management requests waiting",
        "1000, and 16 MiB; of one user half of what the others leave, or as much as another one has",
        "delivery released; if all is full, the newest one of the user with the most is refused",
    ),
    Limit("one management answer, and unread answers of one receiver", "64 MiB", "refused with a reason, or dropped"),
    Limit("listings that requesters read page by page", "32 requesters, 60 s", "the listing starts again"),
    Limit(
        "log lines kept for GET-LOG",
        "1000, of 2047 bytes",
        "the oldest are forgotten",
        metric="`trouter_log_lines_lost_total`",
    ),
    Limit("alternative endpoints that a peer may name to a connector", "64", "the rest are ignored"),
    Limit("`openProperties` of a listener or connector", "64", "the file or the request is refused"),
    Limit(
        "changes of the network that are remembered",
        "100, with 50 lines and 100 routers each",
        "the oldest are forgotten; further lines and routers are only counted",
        metric="`trouter_network_changes_total`",
    ),
    Limit("routers whose `validOrigins` management shows", "300 in the network", "none are shown"),
    Limit(
        "time to the first hello of a neighbour that was dialled",
        "60 s",
        "connection closed, tried again after 0.5 to 10 s",
    ),
    Limit("time for a connector to connect, and to open", "20 s each", "tried again after 0.5 to 10 s"),
)
