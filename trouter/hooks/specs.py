"""Every hook: when it is asked, what it may answer, and what a raise, rubbish or silence means.

Hooks select, objects act: a hook answers at once, without I/O and without await; slow work belongs to the object it
returns. ``registry.Plugins`` asks these hooks and enforces what is written here. docs/hooks.md repeats each signature
(a test compares), and tests/hooks/ has a test named after each hook.
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

PROJECT = "trouter"

hookspec = pluggy.HookspecMarker(PROJECT)
#: The mark which a plugin puts on its functions.
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def configure(router: RouterFacts) -> None:
    """Take over the configuration, or refuse it by raising ConfigurationRefused.

    Asked of every plugin at start and at each reload, before any other hook; files may be read here. Parse first,
    take over last: after a refused reload the former configuration stays in force. Any other raise, and any returned
    value, refuses the configuration too. Silence accepts.
    """


@hookspec
def refresh() -> bool:
    """Take over what has changed in files of your own, such as that of the users; True if something did.

    Asked of every plugin every two seconds or so, in a thread and one call at a time: files may be read. A raise or
    anything but a bool is logged, and counts as no change: leave in force what you had. Silence keeps nothing up.
    """


@hookspec
def sasl_mechanisms(listener: ListenerFacts) -> Sequence[str]:
    """List the SASL mechanisms which this plugin serves on ``listener``, strongest first.

    Asked once per listener after each ``configure``; every plugin answers. The registry keeps what the listener lists
    in ``saslMechanisms``, in that order, and drops ANONYMOUS where authentication is required. A raise or anything but
    a list or tuple of mechanism names leaves the listener without mechanisms: no client gets in. Silence offers none.
    """


@hookspec(firstresult=True)
def open_sasl(mechanism: str, peer: PeerFacts) -> SaslExchange | None:
    """Offer to run ``mechanism`` for ``peer``; None passes to the next plugin.

    Asked per connection, only for a mechanism which was offered to that peer. No I/O here: the exchange returned is
    awaited. A raise, an object without ``respond``, or silence from every plugin refuses the peer; so does an exchange
    which raises, answers rubbish or outlives its deadline.
    """


@hookspec(firstresult=True)
def open_sasl_client(mechanisms: Sequence[str], connector: ConnectorFacts) -> SaslClientExchange | None:
    """Offer to authenticate us by one of ``mechanisms`` to the server of ``connector``; None passes to the next.

    Asked per connection, for mechanisms that the server offers and the connector lists, where the router's own client
    (SCRAM, PLAIN, EXTERNAL and ANONYMOUS) can do nothing. No I/O here: the exchange returned is awaited. A raise, an
    object that is no SaslClientExchange or whose name is none of ``mechanisms``, or silence from every plugin gives the
    connection up; so does an exchange that raises, answers rubbish or outlives its deadline.
    """


@hookspec(firstresult=True)
def map_uid(certificate: CertificateFacts, profile: SslProfileFacts) -> str | Refused | None:
    """Name the user whom ``certificate`` stands for, or refuse the connection; None passes to the next plugin.

    Asked per TLS connection with a client certificate, once it is verified and before any SASL. No I/O here. A raise,
    rubbish, the empty name, or silence from every plugin refuses the connection.
    """


@hookspec(firstresult=True)
def auth_service(listener: ListenerFacts, remote: AuthService) -> AuthService | None:
    """Choose what authenticates the peers of ``listener``, which has a ``saslPlugin``; None passes to the next plugin.

    ``remote`` is the router's own client of the service that is configured: return it, something around it, or another.
    Asked once for a listener and whenever the listener or the service changes. A raise, an object that is no
    AuthService, or silence from every plugin refuses every peer; so does a session that raises, answers rubbish or
    outlives its deadline.
    """


@hookspec(firstresult=True)
def vhost_policy(connection: ConnectionRequest) -> VhostPolicy | None:
    """Say what ``connection`` is held to; None passes to the next plugin.

    Asked once per connection, when it opens, and again when the policy changes; with a vhost the configured policy of
    that name decides, whatever the peer asked for. A raise or rubbish closes the connection; silence from every plugin
    leaves it to the configuration.
    """


@hookspec
def judge_attach(request: AttachRequest) -> Vote | None:
    """Vote on a link that the configured policy allows.

    Asked per attach; every plugin answers, and one DENY wins. A raise or rubbish is a DENY. Silence leaves the link as
    the policy has it: a link that the policy denies is not put to the plugins, as no vote could allow it.
    """


@hookspec(firstresult=True)
def annotation_filter(endpoint: ListenerFacts) -> AnnotationFilter | None:
    """Say which way router annotations are stripped on ``endpoint``; None passes to the next plugin.

    Asked per connection, except on the roles inter-router and edge, where they are never stripped because routers need
    them. A raise, rubbish, or silence from every plugin strips both ways: the network stays hidden and unforgeable.
    """


@hookspec
def consumers(router: RouterFacts) -> Sequence[Consumer]:
    """List what takes messages at addresses of the router, and makes decisions of them.

    Asked of every plugin after each ``configure``, with the same facts. No I/O. Each consumer has an address of its own
    and says who may send there; the router sees to that, to size and rate, and carries out what is decided. A raise, or
    anything but a list or tuple of consumers, leaves the plugin without any: nothing is taken there. So does silence.
    A consumer that raises, or answers rubbish, has rejected the message.
    """


@hookspec
def observe(record: Mapping[str, object]) -> None:
    """Hear of ``record``, one of those that docs/records.md describes: something that has happened already.

    Asked of every plugin for each record, or for those kinds only which the plugin's attribute ``observes`` names; in
    a thread, one record after another, so it may wait for a file. What comes too fast is dropped, counted and told. A
    raise, and any answer, is counted and ignored: the other plugins hear of the record. Silence is all that is wanted.
    """
