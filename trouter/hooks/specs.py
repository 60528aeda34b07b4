"""Every hook: when it is called, its answers, and the effect of a raise, an answer of the wrong type, and silence.

Hooks select, objects act: a hook answers at once, without I/O and without await; slow work belongs to the object it
returns. ``registry.Plugins`` calls these hooks and enforces what is written here. docs/hooks.md repeats each signature
(a test compares), and tests/hooks/ has a test named after each hook. Silence means that no plugin implements the hook,
or that all answer None; rubbish is an answer of the wrong type.
"""
# mypy: disable-error-code="empty-body"
# A hookspec has no body: pluggy reads its name, its arguments and its mark.

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pluggy

from trouter.hooks.consumers import Consumer
from trouter.hooks.facts import CertificateFacts, ConnectorFacts, ListenerFacts, PeerFacts, RouterFacts, SslProfileFacts
from trouter.hooks.policy import AnnotationFilter, AttachRequest, ConnectionRequest, VhostPolicy, Vote
from trouter.hooks.sasl import AuthService, Refused, SaslClientExchange, SaslExchange
from trouter.hooks.tracing import MessageTracer

PROJECT = "trouter"

hookspec = pluggy.HookspecMarker(PROJECT)
#: The mark that a plugin puts on its functions.
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def configure(router: RouterFacts) -> None:
    """Take over the configuration, or refuse it by raising ConfigurationRefused.

    Called for every plugin at start and at each reload, before any other hook; files may be read here. Parse first,
    take over last: after a refused reload the former configuration stays in force. Any other raise, and any returned
    value, refuses the configuration too. Silence accepts.
    """


@hookspec
def refresh() -> bool:
    """Take over changes of the plugin's own files, such as that of the users; return True if there were any.

    Called for every plugin every two seconds or so, in a thread and one call at a time: files may be read. A raise or
    anything but a bool is logged and counts as no change: keep the former state then. Silence delays nothing.
    """


@hookspec
def sasl_mechanisms(listener: ListenerFacts) -> Sequence[str]:
    """Return the SASL mechanisms that this plugin serves on ``listener``, strongest first.

    Called once per listener after each ``configure``, and after each ``refresh`` that returned True; every plugin
    answers. The registry keeps those that the listener lists in ``saslMechanisms``, in that order, and drops ANONYMOUS
    where authentication is required. A raise or anything but a list or tuple of mechanism names leaves the listener
    without mechanisms: no client is admitted. Silence offers none.
    """


@hookspec(firstresult=True)
def open_sasl(mechanism: str, peer: PeerFacts) -> SaslExchange | None:
    """Return an exchange that runs ``mechanism`` for ``peer``; None passes to the next plugin.

    Called per connection, only for a mechanism that was offered to that peer. No I/O here: the exchange returned is
    awaited. A raise, an object without ``respond``, or silence from every plugin refuses the peer; so does an exchange
    that raises, answers rubbish or outlives its deadline.
    """


@hookspec(firstresult=True)
def open_sasl_client(mechanisms: Sequence[str], connector: ConnectorFacts) -> SaslClientExchange | None:
    """Return an exchange that authenticates the router by one of ``mechanisms``; None passes to the next plugin.

    Called per connection to the server of ``connector``, for mechanisms that the server offers and the connector lists,
    if the router's own client (SCRAM, PLAIN, EXTERNAL and ANONYMOUS) serves none. No I/O here: the exchange returned is
    awaited. A raise, an object that is no SaslClientExchange or whose name is none of ``mechanisms``, or silence from
    every plugin ends the connection; so does an exchange that raises, answers rubbish or outlives its deadline.
    """


@hookspec(firstresult=True)
def map_uid(certificate: CertificateFacts, profile: SslProfileFacts) -> str | Refused | None:
    """Return the user of ``certificate``, or Refused for the connection; None passes to the next plugin.

    Called per TLS connection with a client certificate, once it is verified and before any SASL. No I/O here. A raise,
    rubbish, the empty name, or silence from every plugin refuses the connection.
    """


@hookspec(firstresult=True)
def auth_service(listener: ListenerFacts, remote: AuthService) -> AuthService | None:
    """Return the authentication service for ``listener``, which has a ``saslPlugin``; None passes to the next plugin.

    ``remote`` is the router's own client of the configured service: return it, an object around it, or another.
    Called once for a listener and whenever the listener or the service changes. A raise, an object that is no
    AuthService, or silence from every plugin refuses every peer; so does a session that raises, answers rubbish or
    outlives its deadline.
    """


@hookspec(firstresult=True)
def vhost_policy(connection: ConnectionRequest) -> VhostPolicy | None:
    """Return the policy for ``connection``; None passes to the next plugin.

    Called once per connection, when it opens, and again when the policy changes; with a vhost, the configured vhost of
    that name decides instead of the peer's hostname. A raise or rubbish closes the connection; silence from every
    plugin leaves it to the configuration.
    """


@hookspec
def judge_attach(request: AttachRequest) -> Vote | None:
    """Return a vote on a link that the configured policy allows.

    Called per attach, and again for open links when the policy changes; every plugin answers, and one DENY wins. A
    raise or rubbish is a DENY. Silence allows the link, as the policy does: plugins are not called for a link that the
    policy denies, as no vote could allow it.
    """


@hookspec(firstresult=True)
def annotation_filter(endpoint: ListenerFacts) -> AnnotationFilter | None:
    """Return in which directions ``endpoint`` strips router annotations; None passes to the next plugin.

    Called per connection, except on the roles inter-router and edge, where routers need the annotations. A raise,
    rubbish, or silence from every plugin strips both directions: peers can neither read nor forge them.
    """


@hookspec
def consumers(router: RouterFacts) -> Sequence[Consumer]:
    """Return the consumers of this plugin, which take messages at addresses of the router and answer with decisions.

    Called for every plugin after each ``configure``, with the same facts. No I/O. Each consumer has its own address and
    lists the permitted senders; the router enforces that list, size and rate, and carries out the decisions. A raise,
    or anything but a list or tuple of consumers, leaves the plugin without consumers. So does silence. A consumer that
    raises, or answers rubbish, rejects the message.
    """


@hookspec
def message_tracer(router: RouterFacts) -> MessageTracer | None:
    """Return the object that chooses which messages get a span, and takes the spans; None for none.

    Called for every plugin after each ``configure``, with the same facts; the first tracer counts. No I/O in the
    tracer, which is called on the event loop. A raise or rubbish is no tracer, and a tracer that raises loses the spans
    that it was passed. Silence means no spans, and messages then pass as if the hook did not exist.
    """


@hookspec
def observe(record: Mapping[str, object]) -> None:
    """Receive ``record``, one of those that docs/records.md describes.

    Called for every plugin and each record, or only for the kinds that the plugin's attribute ``observes`` names; in a
    thread, one record after another, so it may wait for a file. Records that come too fast are dropped, counted and
    reported. A raise, and any answer, is counted and ignored: the other plugins still receive the record. Silence is
    the wanted answer.
    """
