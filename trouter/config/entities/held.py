"""The attributes that a vhost and a group have about quotas: for each user, for each host, and the mode.

Both have the seven of ``quotas``, too, for all their users together.
"""

from __future__ import annotations

from typing import Any

from trouter.config import quota_maps
from trouter.config.entities.quotas import MODES
from trouter.config.schema import choice, mapping


def per_user() -> Any:
    """Return the attribute of the quotas of each user."""
    return _each("The same seven quotas for each user, in a map.")


def per_host() -> Any:
    """Return the attribute of the quotas of each host."""
    return _each(
        "The same seven quotas for each host of these users, in a map; with secureDefaults an IPv6 network of 64 bits "
        "counts as one host."
    )


def _each(doc: str) -> Any:
    return mapping(doc, parse=quota_maps.parse_quotas, extra=True)


def mode(default: str | None, default_doc: str = "") -> Any:
    """Return the attribute for the mode of quotas: enforce or alarm."""
    doc = "Enforce these quotas, or only raise an alarm."
    return choice(doc, default, default_doc=default_doc, values=MODES, extra=True)
