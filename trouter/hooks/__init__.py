"""The contract between the router and its plugins: hookspecs, the values they exchange, the registry that calls."""

from trouter.hooks.consumers import DECISION_ACTIONS, Consumer, ConsumerTerms, Decision, IncomingMessage, Rejected
from trouter.hooks.facts import (
    CLEARTEXT_MECHANISMS,
    INSECURE_PLAIN_CHOICES,
    STRIP_ANNOTATIONS_CHOICES,
    UID_MISSING_CHOICES,
    AuthServiceFacts,
    CertificateFacts,
    ConnectorFacts,
    ListenerFacts,
    PeerFacts,
    RouterFacts,
    SslProfileFacts,
    TlsFacts,
)
from trouter.hooks.faults import Culprit
from trouter.hooks.installed import allowed_plugins, code_of_plugin, digest_of, installed_plugins
from trouter.hooks.loading import ConfigurationRefused, InstalledPlugin, PluginDescription, PluginError
from trouter.hooks.policy import (
    MAX_PERMISSIONS,
    AnnotationFilter,
    AttachRequest,
    ConnectionRequest,
    Permissions,
    VhostPolicy,
    Vote,
)
from trouter.hooks.registry import ENTRY_POINT_GROUP, Plugins
from trouter.hooks.sasl import (
    Authenticated,
    AuthService,
    AuthSession,
    Challenge,
    Refused,
    SaslAnswer,
    SaslClientExchange,
    SaslExchange,
)
from trouter.hooks.specs import hookimpl
from trouter.hooks.tracing import EndedSpan, MessageTracer
from trouter.mechanisms import Mechanism

__all__ = [
    "CLEARTEXT_MECHANISMS",
    "DECISION_ACTIONS",
    "ENTRY_POINT_GROUP",
    "INSECURE_PLAIN_CHOICES",
    "MAX_PERMISSIONS",
    "STRIP_ANNOTATIONS_CHOICES",
    "UID_MISSING_CHOICES",
    "AnnotationFilter",
    "AttachRequest",
    "AuthService",
    "AuthServiceFacts",
    "AuthSession",
    "Authenticated",
    "CertificateFacts",
    "Challenge",
    "ConfigurationRefused",
    "ConnectionRequest",
    "ConnectorFacts",
    "Consumer",
    "ConsumerTerms",
    "Culprit",
    "Decision",
    "EndedSpan",
    "IncomingMessage",
    "InstalledPlugin",
    "ListenerFacts",
    "Mechanism",
    "MessageTracer",
    "PeerFacts",
    "Permissions",
    "PluginDescription",
    "PluginError",
    "Plugins",
    "Refused",
    "Rejected",
    "RouterFacts",
    "SaslAnswer",
    "SaslClientExchange",
    "SaslExchange",
    "SslProfileFacts",
    "TlsFacts",
    "VhostPolicy",
    "Vote",
    "allowed_plugins",
    "code_of_plugin",
    "digest_of",
    "hookimpl",
    "installed_plugins",
]
