"""The drop-in cases: for each configuration in `files/` and `manual/` the messages that must flow through it.

`files/` has forty configurations of the kinds that Qpid Dispatch's packages and manual show; `manual/` has the
examples of that manual, named after their sections. The folder of a case has one file for each router; the test starts
them in the order of their names. In a file ``@A.1@`` stands for the port of A's second listener, ``@broker@`` and
``@broker2@`` for those of brokers beside the routers, ``@dir@`` for a folder with the files that the configuration
names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple


class Login(NamedTuple):
    """How a client connects: with a user name and password, over TLS, or with a client certificate."""

    user: str = ""
    tls: bool = False
    certificate: bool = False
    #: The hostname of its open; empty for none.
    vhost: str = ""


ANONYMOUS: Final = Login()
#: With secureDefaults listeners ask for logins, and the file has no users.
NO_LOGIN: Final = "no client will be able to log in"
#: With secureDefaults a listener for routers says which users are routers.
NO_ROUTERS: Final = "allowedUsers must name the users that are routers"


@dataclass(frozen=True, slots=True)
class Way:
    """A way that messages to ``address`` take, from a client of one router to a client of another.

    ``X.1`` is X's second listener.
    """

    sender: str
    receiver: str
    address: str = "some.address"
    login: Login = ANONYMOUS
    #: The receiver's login; None for the same as the sender's.
    receiver_login: Login | None = None
    #: Count of receivers that get each message.
    copies: int = 1
    #: Whether a broker keeps the message until its receiver attaches.
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One configuration, named after its folder."""

    name: str
    ways: tuple[Way, ...]
    #: The text that `check` prints for it with `secureDefaults: yes`; empty if the configuration is valid then, too.
    strict: str = ""
    #: Lines that the log of the first router must contain.
    logs: tuple[str, ...] = ()


HERE: Final = Way("A.0", "A.0")

CASES: Final = (
    Case(
        "packaged",
        (
            Way("A.0", "A.0", "closest/a"),
            Way("A.0", "A.0", "multicast.a", copies=2),
        ),
    ),
    Case("old-names", (HERE,)),
    Case("one-line-sections", (HERE,), strict=NO_LOGIN),
    Case(
        "distributions",
        (
            Way("A.0", "A.0", "some/where/else"),
            Way("A.0", "A.0", "all/a", copies=3),
        ),
    ),
    Case("unavailable-by-default", (Way("A.0", "A.0", "closest.a"),)),
    Case("logs", (HERE,), logs=("SERVER \\(info\\) Container Name: A", "Router started in Standalone mode")),
    Case("limits", (HERE,)),
    Case("clamped-limits", (HERE,), strict="maxFrameSize"),
    Case("failover-list", (HERE,)),
    Case("http", (HERE,)),
    Case("http-folder", (HERE,)),
    Case("json", (HERE,)),
    Case("fallback", (HERE,)),
    Case(
        "exchange",
        (
            HERE,
            Way("A.0", "A.0", "some.exchange"),
        ),
    ),
    Case("one-address-twice", (HERE,), strict="prefix"),
    Case(
        "link-route",
        (
            Way("A.0", "A.0", "broker.queue", kept=True),
            HERE,
        ),
    ),
    Case("link-route-by-container", (Way("A.0", "A.0", "broker/queue", kept=True),)),
    Case("queue", (Way("A.0", "A.0", "queue.first"),)),
    Case("sharded-queue", (Way("A.0", "A.0", "queue.first"),)),
    Case("external-address", (Way("A.0", "A.0", "queue.first"),)),
    Case("sasldb", (Way("A.0", "A.0", login=Login(user="alice")),)),
    Case("names-or-none", (Way("A.0", "A.0", login=Login(user="alice"), receiver_login=Login()),)),
    Case("mechanism-that-is-not-there", (HERE,), strict="which no plugin serves"),
    Case("tls", (Way("A.0", "A.0", login=Login(tls=True)),)),
    Case("tls-if-they-like", (Way("A.0", "A.0", login=Login(tls=True), receiver_login=Login()),)),
    Case("certificates", (Way("A.0", "A.0", login=Login(tls=True, certificate=True)),)),
    Case("passwords-in-tls", (Way("A.0", "A.0", login=Login(user="alice", tls=True)),)),
    Case("a-profile-that-cannot-be-used", (HERE,), strict="cannot be read"),
    Case("vhost", (Way("A.0", "A.0", login=Login(vhost="example.com")),)),
    Case("vhost-with-names-that-are-ignored", (HERE,), strict="maxConnections"),
    Case("policy-folder", (HERE,)),
    Case("policy-without-vhosts", (HERE,)),
    Case("tenants", (Way("A.0", "A.0", login=Login(vhost="one.com")),)),
    Case(
        "pair",
        (
            Way("A.0", "B.0"),
            Way("B.0", "A.0", "other.address"),
        ),
        strict=NO_ROUTERS,
    ),
    Case("pair-with-area", (Way("A.0", "B.0"),), strict=NO_ROUTERS),
    Case(
        "three-in-line",
        (
            Way("A.0", "C.0"),
            Way("C.0", "A.0"),
        ),
        strict=NO_ROUTERS,
    ),
    Case(
        "triangle",
        (
            Way("A.0", "B.0"),
            Way("B.0", "C.0"),
        ),
        strict=NO_ROUTERS,
    ),
    Case("multicast-on-two", (Way("A.0", "B.0", "multicast.a", copies=2),), strict=NO_ROUTERS),
    Case(
        "edge",
        (
            Way("E.0", "A.0"),
            Way("A.0", "E.0"),
        ),
        strict=NO_LOGIN,
    ),
    Case(
        "two-edges",
        (
            Way("E.0", "F.0"),
            Way("F.0", "E.0"),
        ),
        strict=NO_LOGIN,
    ),
    Case("tls-between-routers", (Way("A.0", "B.0"),), strict="will not be opened"),
    Case("passwords-between-routers", (Way("B.0", "A.0"),), strict=NO_ROUTERS),
    Case("queue-behind-a-network", (Way("A.0", "A.0", "queue.first"),), strict=NO_ROUTERS),
)

_ALICE: Final = Login(user="alice")
_TRADER: Final = Login(user="trader-1", vhost="traders.com")

#: The examples of Qpid Dispatch's manual by section: 3 to 5 of the upstream manual, 8 of the product's.
MANUAL: Final = (
    Case(
        "3.4-link-routing",
        (
            Way("C.0", "C.0", "b2.event-queue", kept=True),
            Way("A.1", "C.0", "not.the.broker's"),
        ),
        strict=NO_ROUTERS,
    ),
    Case(
        "3.5.1-queue-waypoint",
        (
            Way("A.0", "A.0", "queue.first"),
            Way("A.0", "A.0", "queue.second"),
        ),
    ),
    Case("3.5.2-sharded-queue", (Way("A.0", "A.0", "queue.first"),)),
    Case("3.5.4-external-address", (Way("A.0", "A.0", "queue.first"),)),
    Case("3.6.3-every-policy-attribute", (Way("A.0", "A.0", login=Login(vhost="one.com")), HERE)),
    Case(
        "3.6.4-names-in-addresses",
        (
            Way("A.0", "A.0", "tmp_alice", _ALICE),
            Way("A.0", "A.0", "alice-home-1", _ALICE),
            Way("A.0", "A.0", "temperature", _ALICE),
        ),
    ),
    Case("3.6.5-example-2", (HERE,)),
    Case(
        "3.6.5-example-3",
        (
            Way("A.0", "A.0", "whatever", Login(user="alice", vhost="example.com")),
            Way("A.0", "A.0", "chat.room", Login(vhost="example.com")),
            Way("A.0", "A.0", "sports", Login(user="alice", vhost="example.com"), Login(vhost="example.com")),
        ),
    ),
    Case("3.6.5-example-4", (Way("A.0", "A.0", login=_TRADER),)),
    Case(
        "4.4-every-attribute",
        (
            HERE,
            Way("A.0", "A.0", "a/queue/b"),
        ),
        strict=NO_LOGIN,
    ),
    Case("5.2-console", (HERE,), strict="without an sslProfile"),
    Case(
        "8.1-connecting-routers",
        (
            Way("A.0", "B.0"),
            Way("B.0", "A.0"),
        ),
        strict="without an sslProfile",
    ),
    Case("8.2-clients", (HERE,), strict=NO_LOGIN),
    Case("8.3-containers", (Way("A.0", "A.0", "b.queue", kept=True),)),
)
