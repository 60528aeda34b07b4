"""The numbers and flags of a group as they apply to a connection (security.md 4.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final

from trouter.config.entities import GroupSettings
from trouter.config.entities.group import ANY_NUMBER, OPERATORS

#: The defaults in Qpid Dispatch's manual: they are upper bounds, so configuring them leaves the listener's values.
BOUNDS: Final = {"max_frame_size": 2**31 - 1, "max_sessions": 65535, "max_session_window": 2**31 - 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one connection. Fields that a group has too come from the group; sizes are in bytes."""

    #: The largest message; None for no limit.
    max_message_size: int | None = None
    #: These replace the listener's values; None leaves those.
    max_frame_size: int | None = None
    max_session_window: int | None = None
    max_sessions: int | None = None
    #: Limits of the connection's links: 0 allows none, ANY_NUMBER any number.
    max_senders: int = ANY_NUMBER
    max_receivers: int = ANY_NUMBER
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
_VALUES: Final[Callable[[GroupSettings], tuple[object, ...]]] = attrgetter(*NAMES)
_ROUTES: Final = "allow_dynamic_link_routes"


def numbers_and_flags(group: GroupSettings) -> tuple[object, ...]:
    """Return what ``settings_of`` makes the settings of."""
    return (*_VALUES(group), _ROUTES in group.written)


def settings_of(group: GroupSettings, max_message_size: int | None) -> Settings:
    """Return the settings of a group with ``max_message_size``, in bytes, None for no limit.

    A group that may not operate the router makes link routes only if its attribute for that is given: by default they
    are allowed.
    """
    values = {name: getattr(group, name) for name in NAMES}
    values[_ROUTES] = group.allow_dynamic_link_routes and (_ROUTES in group.written or group.management in OPERATORS)
    for name, bound in BOUNDS.items():
        if not values[name] or values[name] >= bound:
            values[name] = None
    return Settings(**{**values, "max_message_size": max_message_size})


def largest_message(*levels: int | None) -> int | None:
    """Return the first of ``levels`` that is not None, in bytes; None, for no limit, if that is 0 or none is."""
    return next((level for level in levels if level is not None), None) or None
