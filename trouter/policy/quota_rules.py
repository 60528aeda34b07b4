"""The quotas of a configuration as rules, each with its owner and its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Final, NamedTuple

from trouter.config.entities import GroupSettings, Quotas, VhostEntity
from trouter.config.schema import camel

LINKS: Final = "max_links"
ADDRESSES: Final = "max_addresses"
CONNECTIONS_RATE: Final = "max_connections_per_second"
ATTACHES_RATE: Final = "max_attaches_per_second"
MESSAGES_RATE: Final = "max_messages_per_second"
BYTES_RATE: Final = "max_bytes_per_second"
BUFFERED: Final = "max_buffered_bytes"
NAMES: Final = tuple(row.name for row in fields(Quotas))
#: All quotas of a vhost or a group; most have none.
_quotas: Final[Callable[[VhostEntity | GroupSettings], tuple[object, ...]]] = attrgetter(*NAMES, "per_user", "per_host")
RATES: Final = tuple(name for name in NAMES if name.endswith("_per_second"))
#: The quotas that are enforced by withholding credit.
PACED: Final = (MESSAGES_RATE, BYTES_RATE, BUFFERED)


class QuotaRule(NamedTuple):
    """Configured quotas of ``owner`` (``VHOST`` or ``VHOST:GROUP``), for all or ``per`` user or host."""

    vhost: str
    owner: str
    per: str
    limits: Quotas
    enforced: bool

    def counted_name(self, user: str, host: str) -> str:
        """Return the user or the host that a connection counts for; empty if it counts for all."""
        return {"perUser": user, "perHost": host}.get(self.per, "")

    def rule_id(self, measure: str) -> str:
        """Return the id of the rule about ``measure``."""
        return ":".join(part for part in (self.owner, self.per, camel(measure)) if part)


def rules_of(vhost: VhostEntity, group_name: str, group: GroupSettings) -> tuple[QuotaRule, ...]:
    """Return the quotas that apply to the users of a group: those of the vhost, then those of the group."""
    if not any(_quotas(vhost)) and not any(_quotas(group)):
        return ()
    enforced = vhost.quota_mode == "enforce"
    in_group = enforced if group.quota_mode is None else group.quota_mode == "enforce"
    of_group = f"{vhost.hostname}:{group_name}"
    rules = [
        QuotaRule(vhost.hostname, owner, per, limits, mode)
        for owner, mode, source in ((vhost.hostname, enforced, vhost), (of_group, in_group, group))
        for per, limits in (("", _own(source)), ("perUser", source.per_user), ("perHost", source.per_host))
        if limits is not None
    ]
    return tuple(rule for rule in rules if rule.limits != Quotas())


def _own(source: VhostEntity | GroupSettings) -> Quotas:
    return Quotas(**{name: getattr(source, name) for name in NAMES})
