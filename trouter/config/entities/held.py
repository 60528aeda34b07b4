"""The attributes of vhosts and groups about quotas: for all together, for each user, for each host, and the mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trouter.config import quota_maps
from trouter.config.entities.quotas import MODES, Quotas, Seven
from trouter.config.schema import choice, mapping


def each(doc: str) -> Any:
    """Return the attribute of the quotas for each user or host."""
    return mapping(doc, parse=quota_maps.parse_quotas, extra=True)


def mode(default: str | None, default_doc: str = "") -> Any:
    """Return the attribute for the mode of quotas: enforce or alarm."""
    doc = "Enforce these quotas, or only raise an alarm."
    return choice(doc, default, default_doc=default_doc, values=MODES, extra=True)


@dataclass(frozen=True, kw_only=True)
class HeldToQuotas(Seven):
    """The base of entities whose users have quotas."""

    __slots__ = ()

    per_user: Quotas | None = each("The same seven quotas for each user, in a map.")  # noqa: RUF009  # a field, like all the others
    per_host: Quotas | None = each("The same seven quotas for each host of these users, in a map.")  # noqa: RUF009  # a field, like all the others
    quota_mode: str | None = mode(None, "the vhost's")
