"""The differences to Qpid Dispatch that no configuration removes, and why: part of the manual's migration page."""

from __future__ import annotations

from typing import Final, NamedTuple


class Difference(NamedTuple):
    """Qpid Dispatch's behaviour, trouter's behaviour, and the reason."""

    what: str
    there: str
    here: str
    why: str


STAYS: Final = (
    Difference(
        "`delivery-failed` of a relayed `modified` outcome",
        "forced to true",
        "as the receiver sent it",
        "the sender learns what happened: a message that was only returned does not count as a failed attempt",
    ),
    Difference(
        "how credit comes back to a sender",
        "delivery by delivery",
        "in portions: when as much is due as the sender still has, at once when it has none, or after 10 ms of silence",
        "a flow frame for each delivery costs as much as the delivery; no sender waits for it "
        "([routing.md](protocol/routing.md#31-when-credit-is-returned))",
    ),
    Difference(
        "`maxSessions` of a listener of role `normal`, and the window of a session, if not given",
        "32768 sessions, and a window without a bound",
        "1024 sessions (256 with `secureDefaults`), and a window of 8 MiB, 64 MiB between routers",
        "what one peer can make the router hold is bounded; `maxSessions` and `maxSessionFrames` set the numbers "
        "([limits.md](limits.md))",
    ),
    Difference(
        "`linkCount` of the router, and rows of `router.link`, where large messages pass between routers",
        "all links for streams are on one session",
        "each has a session of its own, and up to 128 idle ones wait for the next streams; they count",
        "a stalled receiver does not hold up the other streams (decision "
        "[0015](decisions/0015-streams-have-sessions-of-their-own.md)); do not compare the counts of two routers",
    ),
    Difference(
        "a connector whose sslProfile cannot be used, or whose password is missing",
        "dials, and fails each time",
        "is not dialled until that is mended; a finding, the log and `/readyz` say why",
        "an attempt that cannot succeed tells the other side nothing, and the operator would look for the fault there",
    ),
    Difference(
        "a connector that logs in with SCRAM",
        "accepts the outcome without the signature of the server",
        "verifies the signature",
        "a server that does not know the password could pass for the right one",
    ),
    Difference(
        "`requireSsl` and `requireEncryption` with a client in clear",
        "the password is read and checked before the connection is closed",
        "refused before a password is asked for",
        "otherwise the password has already crossed the network in clear",
    ),
    Difference(
        "a broker that ends the session, or closes the connection, of a routed link with an error",
        "the client gets `qd:routed-link-lost`",
        "the client gets the broker's error, and each router on the way logs it",
        "RabbitMQ refuses links so, and the client needs the reason",
    ),
    Difference(
        "the first receiver of an address comes to another router, or the last one leaves",
        "the other routers know within a second",
        "within 10 ms, if it does not happen often",
        "until then messages without a receiver are released, as fast as their sender sends them",
    ),
    Difference(
        "messages to an address with the distribution `closest`, from an edge router that has a consumer itself",
        "shared between this consumer and those of other edge routers",
        "to the consumers of this edge router alone",
        "these are the closest ones ([edge.md](edge.md))",
    ),
    Difference(
        "two listeners on one host and port",
        "the second fails at the start of listening",
        "the file is refused",
        "only one of the two could ever serve",
    ),
    Difference(
        "`file:`, `env:` and `httpRootDir` in requests to management",
        "any file, variable and folder",
        "those that the file names already, or lie below `secretDir`",
        "management does not read the machine's disk ([hardening.md](hardening.md))",
    ),
    Difference(
        "floods, and guessed passwords",
        "no bound",
        "bounds on memory and descriptors, and later answers to wrong passwords of one user from one host; bounds by "
        "host with `secureDefaults` ([limits.md](limits.md))",
        "one peer must not stop the others",
    ),
    Difference(
        "`workerThreads`, the `console` section",
        "threads; a program is started",
        "accepted without effect, with a warning",
        "one thread routes; the console is served by a listener with `http`",
    ),
)
