"""The differences to the older router that no configuration removes, and why: part of the manual's migration page."""

from __future__ import annotations

from typing import Final, NamedTuple


class Difference(NamedTuple):
    """The older router's behaviour, trouter's behaviour, and the reason."""

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
        "bounds on handshakes, rates, failed logins and memory that no working client meets ([limits.md](limits.md))",
        "one peer must not stop the others",
    ),
    Difference(
        "`workerThreads`, the `console` section",
        "threads; a program is started",
        "accepted without effect, with a warning",
        "one thread routes; the console is served by a listener with `http`",
    ),
)
