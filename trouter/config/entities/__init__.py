"""The table of everything that can be configured: one frozen dataclass for each kind of section.

Names, types and defaults are those of Qpid Dispatch; where trouter differs on purpose the text of the attribute
says so. schema.py explains the declarations, types.py lists all types.
"""

from trouter.config.entities.base import DISTRIBUTIONS, MANAGEMENT, NOWHERE, Entity
from trouter.config.entities.ends import DEFAULT_LINK_CAPACITY, MAX_SESSIONS
from trouter.config.entities.group import GROUP_SETTINGS, GroupSettings
from trouter.config.entities.listener import ConnectorEntity, ListenerEntity
from trouter.config.entities.log import DEFAULT_MODULE, LOG_MODULES, LogEntity
from trouter.config.entities.oddities import ConsoleEntity, DummyEntity
from trouter.config.entities.quotas import QUOTAS, Quotas
from trouter.config.entities.records import DELETE_OLDEST, DROP_NEWEST, RecordLogEntity
from trouter.config.entities.router import RouterEntity
from trouter.config.entities.routing import (
    AddressEntity,
    AutoLinkEntity,
    BindingEntity,
    ExchangeEntity,
    LinkRouteEntity,
)
from trouter.config.entities.security import AuthServicePluginEntity, SslProfileEntity
from trouter.config.entities.vhost import PolicyEntity, VhostEntity

__all__ = [
    "DEFAULT_LINK_CAPACITY", "DEFAULT_MODULE", "DELETE_OLDEST", "DISTRIBUTIONS", "DROP_NEWEST", "GROUP_SETTINGS",
    "LOG_MODULES", "MANAGEMENT", "MAX_SESSIONS", "NOWHERE", "QUOTAS", "AddressEntity", "AuthServicePluginEntity",
    "AutoLinkEntity", "BindingEntity", "ConnectorEntity", "ConsoleEntity", "DummyEntity", "Entity", "ExchangeEntity",
    "GroupSettings", "LinkRouteEntity", "ListenerEntity", "LogEntity", "PolicyEntity", "Quotas", "RecordLogEntity",
    "RouterEntity", "SslProfileEntity", "VhostEntity",
]  # fmt: skip
