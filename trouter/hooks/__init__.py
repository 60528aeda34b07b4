"""The contract between the router and its plugins: hookspecs, the values they exchange, and the registry that asks."""

from trouter.hooks.registry import ENTRY_POINT_GROUP, Plugins
from trouter.hooks.specs import hookimpl
from trouter.hooks.types import (
    CLEARTEXT_MECHANISMS,
    INSECURE_PLAIN_CHOICES,
    MAX_PERMISSIONS,
    STRIP_ANNOTATIONS_CHOICES,
    AnnotationFilter,
    Authenticated,
    Challenge,
    ConfigurationRefused,
    ListenerFacts,
    PeerFacts,
    Permissions,
    PluginDescription,
    PluginError,
    Refused,
    RouterFacts,
    SaslAnswer,
    SaslExchange,
    TlsFacts,
)

__all__ = [
    "CLEARTEXT_MECHANISMS",
    "ENTRY_POINT_GROUP",
    "INSECURE_PLAIN_CHOICES",
    "MAX_PERMISSIONS",
    "STRIP_ANNOTATIONS_CHOICES",
    "AnnotationFilter",
    "Authenticated",
    "Challenge",
    "ConfigurationRefused",
    "ListenerFacts",
    "PeerFacts",
    "Permissions",
    "PluginDescription",
    "PluginError",
    "Plugins",
    "Refused",
    "RouterFacts",
    "SaslAnswer",
    "SaslExchange",
    "TlsFacts",
    "hookimpl",
]
