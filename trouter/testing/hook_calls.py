"""Calls of each hook, and the answers that count as denials."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from trouter.client import ConnectionClosed, LinkDetached
from trouter.hooks import (
    AnnotationFilter,
    AttachRequest,
    AuthServiceFacts,
    AuthSession,
    CertificateFacts,
    ConfigurationRefused,
    ConnectionRequest,
    ConnectorFacts,
    PeerFacts,
    Plugins,
    Refused,
    RouterFacts,
    SslProfileFacts,
    VhostPolicy,
)

from .subject import Subject


def _call_configure(plugins: Plugins, subject: Subject) -> object:
    try:
        subject.configure(plugins)
    except ConfigurationRefused:
        return ConfigurationRefused
    return None


def _call_open_sasl(plugins: Plugins, subject: Subject) -> object:
    peer = subject.peer()
    return [
        exchange
        for mechanism in plugins.sasl_mechanisms_for(peer)
        if (exchange := plugins.open_sasl(mechanism, peer)) is not None
    ]


def _call_auth_service(plugins: Plugins, subject: Subject) -> object:
    return plugins.auth_service(subject.listener, _Remote())


def _call_vhost_policy(plugins: Plugins, subject: Subject) -> object:
    request = ConnectionRequest(1, "alice", True, "127.0.0.1", subject.listener.name, "normal", "example.com")
    return plugins.vhost_policy(request)


def _call_judge_attach(plugins: Plugins, _: Subject) -> object:
    request = AttachRequest(
        connection_id=1,
        user="alice",
        authenticated=True,
        remote_host="127.0.0.1",
        role="normal",
        vhost="example.com",
        group="users",
        link_name="link",
        sends=True,
        address="alice.orders",
        dynamic=False,
    )
    return plugins.may_attach(request)


class _Remote:
    """An authentication service that never answers."""

    facts = AuthServiceFacts("service", "localhost", "5671")

    async def begin(self, peer: PeerFacts) -> AuthSession | Refused:
        return Refused("the service does not answer", temporary=True)


def _call_open_sasl_client(plugins: Plugins, _: Subject) -> object:
    return plugins.open_sasl_client(["X-ANY"], ConnectorFacts("connector", "localhost", may_send_password=True))


def _call_map_uid(plugins: Plugins, _: Subject) -> object:
    answer = plugins.map_uid(CertificateFacts("CN=alice", b"not a certificate"), SslProfileFacts("profile"))
    return Refused if isinstance(answer, Refused) else answer


#: A record for observing plugins; nothing depends on their reaction.
ALARM: Final = MappingProxyType(
    {"k": "alarm", "n": 0, "t": 0, "name": "test", "severity": "warning", "subject": "s", "state": "raised"}
)

#: The call of each hook, and the answer of a broken one.
CALLS: Final[dict[str, Callable[[Plugins, Subject], object]]] = {
    "configure": _call_configure,
    "refresh": lambda plugins, _: plugins.refresh(),
    "sasl_mechanisms": lambda plugins, subject: plugins.sasl_mechanisms(subject.listener),
    "open_sasl": _call_open_sasl,
    "open_sasl_client": _call_open_sasl_client,
    "map_uid": _call_map_uid,
    "auth_service": _call_auth_service,
    "vhost_policy": _call_vhost_policy,
    "judge_attach": _call_judge_attach,
    "annotation_filter": lambda plugins, subject: plugins.annotation_filter(subject.listener),
    "consumers": lambda plugins, _: plugins.consumers(RouterFacts("R")),
    "message_tracer": lambda plugins, _: plugins.message_tracer(RouterFacts("R")),
    "observe": lambda plugins, _: plugins.observe(ALARM),
}
DENIED: Final[dict[str, object]] = {
    "configure": ConfigurationRefused,
    "refresh": False,
    "sasl_mechanisms": (),
    "open_sasl": [],
    "open_sasl_client": None,
    "map_uid": Refused,
    "auth_service": None,
    "vhost_policy": VhostPolicy(denied="plugin-failed"),
    "judge_attach": False,
    "annotation_filter": AnnotationFilter(strip_in=True, strip_out=True),
    "consumers": (),
    "message_tracer": None,
    "observe": None,
}


#: The error of a client whose router has the broken hook.
REFUSED: Final[dict[str, type[Exception]]] = {"vhost_policy": ConnectionClosed, "judge_attach": LinkDetached}
