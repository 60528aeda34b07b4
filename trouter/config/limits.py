"""The one table of limits: what each is by default, what happens at it, what sets it, and which metric counts it.

docs/limits.md is written from this table; a test holds numbers that stand here to the constants of the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit. ``at`` says what happens; AMQP conditions that a peer is sent stand there in backticks."""

    name: str
    value: str
    at: str
    #: Kinds of entities, and in backticks their attributes; empty for a limit that cannot be set.
    set_by: str = ""
    metric: str = ""


LIMITS: Final = (
    Limit(
        "frame size",
        "16384 octets",
        "connection closed, `amqp:connection:framing-error`",
        set_by="listener `maxFrameSize`",
    ),
    Limit("frames of ours", "65536 octets, or the peer's max-frame-size if smaller", "split"),
    Limit(
        "sessions per connection",
        "1024 on listeners of role `normal`, 256 with `secureDefaults`; else 32768",
        "connection closed, `amqp:connection:framing-error`",
        set_by="listener `maxSessions`",
    ),
    Limit(
        "links between two routers for messages that are still coming",
        "256 in use, 128 idle, by direction",
        "further ones take the link of their priority; idle ones are closed, 10 in 30 s",
    ),
    Limit("data links of a neighbour's", "512", "refused, `amqp:resource-limit-exceeded`"),
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
        "messages held that came on one connection",
        "64 MiB; for routers none",
        "from half of it windows open an eighth as far; beyond it the session that brings more is ended, "
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
        "credit of a sender",
        "250 deliveries; as many again as it ever had credit for at once are taken in, counted as "
        "`overdrawnCount` of the link and `overdrawnDeliveries` of the router, and logged once a link",
        "link detached, `amqp:link:transfer-limit-exceeded`",
        set_by="listener `linkCapacity`",
        metric="`overdrawnCount`, `overdrawnDeliveries`",
    ),
    Limit(
        "incoming window of a session",
        "8 MiB of frames (64 MiB between routers), less what is held, and less the more sessions a "
        "connection has, so that all windows fit into what it may hold; as much again for a delivery "
        "already begun",
        "session ended, `amqp:session:window-violation`",
        set_by="listener `maxSessionFrames`",
    ),
    Limit(
        "messages held in all",
        "a quarter of the memory below",
        "from half of it windows open an eighth as far; beyond it the session that brings more is ended, "
        "`amqp:resource-limit-exceeded`",
        set_by="router `maxMemoryBytes`",
        metric="`trouter_held_message_bytes`, `trouter_held_message_bytes_limit`",
    ),
    Limit(
        "memory of the process",
        "what the machine or the container has",
        "from 80 percent on the connections that make up half of the messages held get no credit; from 85"
        " percent on a client gets no link beyond its first two; from 90 percent on"
        " connections of the user who takes most (a twentieth of the limit or more) are closed"
        " with `amqp:resource-limit-exceeded`, or, where no user takes so much, new connections; an alarm"
        " for each mark",
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
    Limit("delivery-tag", "32 octets", "delivery rejected, `amqp:invalid-field`"),
    Limit(
        "frames of one delivery",
        "65536, and one for each 256 octets that it brought",
        "link detached, `amqp:resource-limit-exceeded`",
    ),
    Limit("nesting of a value", "32", "connection closed, `amqp:decode-error`"),
    Limit(
        "values in a performative, those within others included",
        "1024; 65536 in an attach",
        "connection closed, `amqp:decode-error`",
    ),
    Limit(
        "a delivery state with fields",
        "must be what it says; the two above hold for it",
        "connection closed, `amqp:decode-error`; from a router its outcome goes on without details",
    ),
    Limit(
        "keys of a map that are uuids, or contain others",
        "64 in a performative",
        "connection closed, `amqp:decode-error`",
    ),
    Limit("items of zero width in an array", "4096", "connection closed, `amqp:decode-error`"),
    Limit("header, annotations or properties of a message", "1 MiB each", "delivery rejected, `amqp:decode-error`"),
    Limit("trace entries of a message", "64", "delivery rejected, `amqp:invalid-field`"),
    Limit("address", "4096 octets", "attach refused, `amqp:invalid-field`; an anonymous message is released"),
    Limit(
        "key of a [binding](exchanges.md)", "4096 octets, 128 tokens", 'refused: "The binding key pattern is invalid"'
    ),
    Limit("subject of a message to an exchange", "4096 octets, 128 tokens", "fits no binding"),
    Limit("exchanges that a message goes through in a row on one router", "8, none twice", "its copy goes no further"),
    Limit(
        "an exchange's copies that wait for slow next hops",
        "half of the sender's session window",
        "further copies for those are dropped",
        set_by="listener `maxSessionFrames`",
    ),
    Limit("a next hop that takes nothing of a long message for which others wait", "10 s", "its copy is aborted"),
    Limit("message to a consumer inside the router", "1 MiB", "delivery rejected, `amqp:link:message-size-exceeded`"),
    Limit(
        "unfinished message before it is sent on",
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
        "dropped but for the first, and counted",
        set_by="listener `linkCapacity`",
    ),
    Limit("output waiting for a peer", "512 KiB; its links go on at 256 KiB", "its links pause"),
    Limit("output waiting for a peer that does not read our answers", "2 MiB", "it is not read until it does"),
    Limit("frame before the open is through", "65536 octets", "connection closed, `amqp:connection:framing-error`"),
    Limit("SASL frame", "8192 octets", "refused"),
    Limit("container-id", "1024 octets", "connection closed, `amqp:invalid-field`"),
    Limit(
        "sessions for routed links on a broker's connection", "32, or what its channel-max leaves", "clients share them"
    ),
    Limit("link routes that a connection makes for itself", "1000", "CREATE answered with 403"),
    Limit(
        "an error passed on over a routed link",
        "400 octets",
        "its condition and the first 60 characters of its description go on",
    ),
    Limit("a detach of a routed link that the other side does not answer", "10 s", "the router answers it"),
    Limit(
        "a routed link's attach",
        "what fits into a frame of the other side's",
        "link refused, `amqp:connection:framing-error`",
    ),
    Limit("name of a link", "8192 octets", "session ended, `amqp:invalid-field`"),
    Limit("symbol", "1024 octets", "connection closed, `amqp:decode-error`"),
    Limit(
        "connections that have not come as far as their open",
        "1000, 20 of them from one place",
        "socket closed, a line in the log",
        set_by="router `maxHandshakes`, `maxHandshakesPerHost`",
        metric="`trouter_connections_refused_total`",
    ),
    Limit(
        "octets a second before the open, after 2 s, once a peer has begun",
        "64",
        "socket closed",
        set_by="router `minHandshakeRate`",
    ),
    Limit(
        "new connections from one place",
        "50 a second, 100 at once; one that is refused for the failures before it counts as 11",
        "socket closed, a line in the log",
        set_by="router `acceptRatePerHost`, `acceptBurstPerHost`",
        metric="`trouter_connections_refused_total`",
    ),
    Limit("time to the open", "10 s", "socket closed", set_by="listener `initialHandshakeTimeoutSeconds`"),
    Limit("SASL exchange", "16 rounds, 10 s a step", "refused"),
    Limit(
        "failed logins from one place, and of one user from there",
        "5 in 60 s",
        "further attempts wait 1 to 30 s, one after another; refused with outcome 4 where 30 s do not suffice",
        set_by="router `authDelayAfter` and others",
    ),
    Limit(
        "failed logins of one user from one place",
        "20 in 10 min",
        "locked out there for 15 min",
        set_by="router `authLockoutAfter` and others",
    ),
    Limit("failed logins that are remembered", "100,000 users and places", "the least lately touched go"),
    Limit(
        "a [decision](decisions.md) that is sent to the router",
        "4096 octets, a day, 10 in a second, 1000 in force",
        "rejected; those beyond the rate released",
        set_by="router `pluginSettings` (feedback)",
    ),
    Limit(
        "bodies of messages in records of a vhost",
        "100 in a second, 256 octets each",
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
        "a responder of OCSP that cannot be reached, or is silent for 2 s",
        "asked once in 10 s",
        "certificates it would speak for are judged as `ocsp` says of certificates without a responder's answer",
    ),
    Limit(
        "failures of an authentication service in a row",
        "5",
        "it is left alone for 10 s, then one login tries it; logins meanwhile are refused with outcome 4",
    ),
    Limit("a frame of an authentication service", "16384 octets in SASL, 1 MiB for its open", "refused with outcome 4"),
    Limit("rights of a user, from a service or a token", "10,000", "refused"),
    Limit(
        "remembered answers of an authentication service",
        "10,000, for 60 s at most",
        "the oldest go",
        set_by="authServicePlugin `cacheSeconds`",
    ),
    Limit(
        "keys of a token issuer",
        "64, in 256 KiB, fetched within 5 s and once in 10 s",
        "tokens are judged by the former keys, for an hour",
    ),
    Limit("turns that a server may ask of SCRAM, on connectors and in the client", "2,000,000", "authentication fails"),
    Limit(
        "a message between routers",
        "16 MiB and 1,100,000 values, which is half a million addresses",
        "thrown away, counted",
        metric="`trouter_network_faults_total`",
    ),
    Limit(
        "other routers that are remembered; links of all of them; their addresses",
        "10,000; 500,000; 256 MiB",
        "the rest is ignored, with a line in the log",
    ),
    Limit(
        "questions to other routers, and addresses told to routers that ask, in a second",
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
        "faults of other routers that are told",
        "each router's once in 60 s, 1000 in that time",
        "counted only",
        metric="`trouter_network_faults_total`",
    ),
    Limit(
        "silence",
        "16 s (half is advertised)",
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
        "the next ones wait; those that are turned away do not count",
        set_by="listener `acceptRate`",
    ),
    Limit(
        "looks at a listener that has turned clients away",
        "one each 10 ms",
        "clients that come meanwhile, from whatever host, wait so long at most",
    ),
    Limit("attaches and detaches waiting in a session", "256", "the connection is not read until they are answered"),
    Limit(
        "drain at TERM", "10 s", "connections closed, `amqp:connection:forced`", set_by="router `drainTimeoutSeconds`"
    ),
    Limit("last words", "2 s", "socket closed"),
    Limit("a management request", "256 KiB", "answered 400"),
    Limit("management requests waiting", "1000, and 16 MiB", "delivery released"),
    Limit("one management answer, and unread answers of one receiver", "64 MiB", "refused with a reason, or dropped"),
    Limit("management listings that are paged", "32 requesters, 60 s", "the listing begins anew"),
    Limit(
        "log lines kept for GET-LOG", "1000, of 2047 octets", "the oldest go", metric="`trouter_log_lines_lost_total`"
    ),
    Limit("alternates that a peer may name to a connector", "64", "the others are not looked at"),
    Limit("`openProperties` of a listener or connector", "64", "the file or the request is refused"),
    Limit(
        "changes of the network that are remembered",
        "100, with 50 lines and 100 routers each",
        "the oldest go, the rest is counted",
        metric="`trouter_network_changes_total`",
    ),
    Limit("routers whose `validOrigins` are told", "300 in the network", "none are told"),
    Limit(
        "time to the first hello of a neighbour that was dialled",
        "60 s",
        "connection closed, tried again after 0.5 to 10 s",
    ),
    Limit("time for a connector to connect, and to open", "20 s each", "tried again after 0.5 to 10 s"),
)
