"""Configuration: text to frozen entities, with every error, its file, line and key, in one run."""

from trouter.config.changes import ChangeRefused, Changes, Updated, compare, created, deleted, updated
from trouter.config.configuration import Configuration
from trouter.config.entities import (
    AddressEntity,
    AuthServicePluginEntity,
    AutoLinkEntity,
    BindingEntity,
    ConnectorEntity,
    Entity,
    ExchangeEntity,
    GroupSettings,
    LinkRouteEntity,
    ListenerEntity,
    LogEntity,
    PolicyEntity,
    RecordLogEntity,
    RouterEntity,
    SslProfileEntity,
    VhostEntity,
)
from trouter.config.load import DEFAULT_TEXT, load
from trouter.config.passwords import Secret
from trouter.config.problems import ConfigurationError, Problem
from trouter.config.rows import row
from trouter.config.schema import Attribute, EntityType, Kind
from trouter.config.texts import FailoverUrl
from trouter.config.types import TYPES, type_named

__all__ = [
    "DEFAULT_TEXT", "TYPES", "AddressEntity", "Attribute", "AuthServicePluginEntity", "AutoLinkEntity", "BindingEntity",
    "ChangeRefused", "Changes", "Configuration", "ConfigurationError", "ConnectorEntity", "Entity", "EntityType",
    "ExchangeEntity", "FailoverUrl", "GroupSettings", "Kind", "LinkRouteEntity", "ListenerEntity", "LogEntity",
    "PolicyEntity", "Problem", "RecordLogEntity", "RouterEntity", "Secret", "SslProfileEntity", "Updated",
    "VhostEntity", "compare", "created", "deleted", "load", "row", "type_named", "updated",
]  # fmt: skip
