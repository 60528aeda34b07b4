"""The attributes that listeners and connectors share: those of an AMQP connection."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from trouter.config import texts
from trouter.config.entities.base import ROLES
from trouter.config.schema import NEXT, choice, integer, properties, string

DEFAULT_LINK_CAPACITY: Final = 250
MAX_SESSIONS: Final = 32768
MAX_SECONDS: Final = 4_000_000
#: Default limits of a connection: links with secureDefaults and without, unsettled deliveries, held bytes; and the
#: highest limit of links that can be configured.
MAX_LINKS_SECURE: Final = 1000
MAX_LINKS: Final = 32768
MAX_UNSETTLED: Final = 10_000
MAX_BUFFERED_BYTES: Final = 64 << 20
MAX_LINKS_GIVEN: Final = 65536


def role(doc: str) -> Any:
    return choice(doc, "normal", values=ROLES, reload=NEXT)


def cost() -> Any:
    return integer("The cost of the hop to the other router. If the two ends differ, the greater one counts.", 1, low=1)


def ssl_profile(doc: str) -> Any:
    return string(doc, reload=NEXT)


def policy_vhost() -> Any:
    return string(
        "The vhost whose policy applies, whatever the peer asks for; on a multi-tenant listener also the tenant.",
        reload=NEXT,
    )


def max_frame_size() -> Any:
    return integer("The largest frame accepted, in bytes.", 16384, low=512, reload=NEXT)


def max_sessions() -> Any:
    return integer(
        "Sessions on one connection; 0 means the maximum. Not given: 1024 on listeners of role normal.",
        MAX_SESSIONS,
        high=MAX_SESSIONS,
        parse=lambda count: count or MAX_SESSIONS,
        reload=NEXT,
    )


def max_links() -> Any:
    default = f"{MAX_LINKS}, {MAX_LINKS_SECURE} with secureDefaults"
    return _cap("Links on one connection; more are refused.", default, MAX_LINKS_GIVEN)


def max_unsettled() -> Any:
    return _cap(
        "Deliveries that a receiver may have unsettled on one link; further ones wait. The limit for senders is "
        "linkCapacity.",
        str(MAX_UNSETTLED),
    )


def max_buffered_bytes() -> Any:
    return _cap(
        "Bytes of messages from one connection that the router holds. From half of it on, session windows open "
        "to an eighth; beyond it, the router ends the session that brings more.",
        "64 MiB",
    )


def _cap(doc: str, text: str, high: int = 2**53) -> Any:
    """Return a limit of one client's connection (security.md 8.5); routers, which carry others' messages, have none."""
    return integer(
        doc,
        default_doc=f"{text}; no limit for the roles inter-router and edge",
        low=1,
        high=high,
        reload=NEXT,
        extra=True,
    )


def max_session_frames() -> Any:
    return integer(
        "The incoming window of a session, in transfer frames; 0 means no limit. Without it the window is bounded, "
        "unlike Qpid Dispatch's.",
        default_doc="a bounded window",
        reload=NEXT,
    )


def idle_timeout_seconds() -> Any:
    return integer("Close a connection that was silent for so long; 0 means never.", 16, high=MAX_SECONDS, reload=NEXT)


def strip_annotations() -> Any:
    return choice(
        "Which router annotations to remove from messages.", "both", values=("in", "out", "both", "no"), reload=NEXT
    )


def link_capacity() -> Any:
    return integer(
        "Credit granted to a sender; 0 means 250.",
        DEFAULT_LINK_CAPACITY,
        unset=None,
        parse=lambda credit: credit or DEFAULT_LINK_CAPACITY,
        reload=NEXT,
    )


def message_logging_components() -> Any:
    return string(
        "Parts of each message to log (module MESSAGE, level trace): `none`, `all`, or a list separated by commas.",
        (),
        shown="none",
        default_doc="`none`",
        old_names=("logMessage",),
        parse=texts.message_components,
        reload=NEXT,
    )


def open_properties() -> Any:
    return properties(
        "Properties added to the Open frame sent to the peer.",
        factory=lambda: MappingProxyType({}),
        parse=texts.open_properties,
        reload=NEXT,
    )


def allow_insecure_plain(doc: str, default: str) -> Any:
    return choice(
        doc,
        default,
        values=("no", "loopback", "yes"),
        also={"false": "no", "off": "no", "true": "yes", "on": "yes"},
        reload=NEXT,
        extra=True,
    )
