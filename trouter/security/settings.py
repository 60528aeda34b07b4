"""The numbers and flags of a group as they apply to a connection (security.md 4.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final

from trouter.config.entities import GroupSettings

UNLIMITED: Final = 2**31 - 1
#: What the older document calls the defaults: they are upper bounds, so that writing them leaves the listener's.
BOUNDS: Final = {"max_frame_size": 2**31 - 1, "max_sessions": 65535, "max_session_window": 2**31 - 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one connection may do. Fields that a group has too are taken from there; sizes in octets."""

    #: The largest message; None for any.
    max_message_size: int | None = None
    #: Instead of the listener's; None where the listener's counts.
    max_frame_size: int | None = None
    max_session_window: int | None = None
    max_sessions: int | None = None
    #: Links of the connection: none for 0, any number for UNLIMITED.
    max_senders: int = UNLIMITED
    max_receivers: int = UNLIMITED
    allow_dynamic_source: bool = False
    allow_anonymous_sender: bool = False
    allow_user_id_proxy: bool = False
    allow_waypoint_links: bool = False
    allow_fallback_links: bool = False
    allow_dynamic_link_routes: bool = False
    allow_admin_status_update: bool = False
    #: One of `trouter.config.entities.group.LEVELS`.
    management: str = "none"


NAMES: Final = tuple(row.name for row in fields(Settings))
#: What a group says, in the order of NAMES.
numbers_and_flags: Final[Callable[[GroupSettings], tuple[object, ...]]] = attrgetter(*NAMES)


def settings_of(group: GroupSettings, max_message_size: int | None) -> Settings:
    """Return the settings of a group, the largest message being settled already."""
    values = {name: getattr(group, name) for name in NAMES}
    for name, bound in BOUNDS.items():
        if not values[name] or values[name] >= bound:
            values[name] = None
    return Settings(**{**values, "max_message_size": max_message_size})


def largest_message(*levels: int | None) -> int | None:
    """Return what the first level that says anything says; 0 there means no limit, None here."""
    return next((level for level in levels if level is not None), None) or None
