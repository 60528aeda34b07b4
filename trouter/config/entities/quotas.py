"""Quotas of numbers and rates: the same seven for a vhost, a group, a user and a host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from trouter.config.schema import BASES, EntityType, integer

#: The treatment of an excess.
MODES: Final = ("enforce", "alarm")

_DOCS: Final = {
    "max_links": "Links open at once.",
    "max_addresses": "Different addresses of these links at once.",
    "max_connections_per_second": "Connections that open in a second.",
    "max_attaches_per_second": "Links attached in a second.",
    "max_messages_per_second": "Messages that are sent to the router in a second.",
    "max_bytes_per_second": "Bytes that arrive on the connections in a second.",
    "max_buffered_bytes": "Bytes of their sessions, and of their messages that no receiver has accepted yet.",
}


def quota(field: str) -> Any:
    """Return the attribute of one of the quotas."""
    high = 2**63 - 1 if "bytes" in field else 2**31 - 1
    return integer(_DOCS[field], default_doc="any number", low=1, high=high, extra=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """The seven quotas alone; None for no limit."""

    max_links: int | None = quota("max_links")
    max_addresses: int | None = quota("max_addresses")
    max_connections_per_second: int | None = quota("max_connections_per_second")
    max_attaches_per_second: int | None = quota("max_attaches_per_second")
    max_messages_per_second: int | None = quota("max_messages_per_second")
    max_bytes_per_second: int | None = quota("max_bytes_per_second")
    max_buffered_bytes: int | None = quota("max_buffered_bytes")


QUOTAS: Final = EntityType(
    "vhostQuotas",
    "What each user, or each host, may have; it stands within `perUser` and `perHost`.",
    entity=Quotas,
    bases=BASES["configuration"],
)
