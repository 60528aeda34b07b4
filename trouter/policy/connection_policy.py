"""The policy of one connection: what its peer may begin, attach and send, and what it has counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from trouter.core.arrival import MessageTap
from trouter.core.check import MessageCheck
from trouter.core.ingress import Ingress
from trouter.core.links import Endpoint
from trouter.core.messagelog import MessageLog
from trouter.core.ports import Gate
from trouter.core.terms import ROUTER_ROLES
from trouter.engine.ports import Budget
from trouter.hooks import AttachRequest, Plugins
from trouter.telemetry.recorder import Recorder
from trouter.telemetry.sampling import Sampler, Sampling
from trouter.wire.performatives import Attach, Error, Source, Target

from .book import SESSION_BYTES, Book, QuotaAnswer, Share
from .compiled import Policy
from .judge import (
    BY_PLUGIN,
    Admission,
    Verdict,
    deny_address,
    judge_attach,
    judge_begin,
    judge_message,
    judge_size,
)
from .kinds import LINK_DENIED, MESSAGE_TOO_LARGE
from .record import PolicyRecord
from .requests import OpenRequest


@dataclass(slots=True)
class PolicyInForce:
    """The policy of a router as it is now, for all its connections; `RouterPolicy` owns it."""

    policy: Policy
    #: The samplings of messages, by vhost.
    samplings: Mapping[str, Sampling]
    book: Book
    record: PolicyRecord
    recorder: Recorder
    plugins: Plugins


class PeerLinks(Protocol):
    """The links that a peer has, as the policy of its connection asks for them."""

    def count_links(self, incoming: bool) -> int:
        """Return the number of links on which the peer sends, or, if not ``incoming``, receives."""

    def address_key(self, attach: Attach) -> str | None:
        """Return the key of the address of an attach: empty for a dynamic one, None for none."""


class ConnectionPolicy:
    """The policy of one admitted connection, until it ends. ``stamps``: messages without a user-id get the user's name.

    ``tenant`` is the connection's tenant, empty for none.
    """

    __slots__ = ("_counted", "_in_force", "_stamps", "admission", "request", "tenant")

    def __init__(
        self,
        in_force: PolicyInForce,
        request: OpenRequest,
        admission: Admission,
        counted: Share,
        *,
        tenant: str = "",
        stamps: bool = False,
    ) -> None:
        self.request = request
        #: Current terms.
        self.admission = admission
        self.tenant = tenant
        self._counted = counted
        self._in_force = in_force
        self._stamps = stamps

    @property
    def max_message_bytes(self) -> int:
        """Largest message accepted, in bytes; 0 for any."""
        return self.admission.settings.max_message_size or 0

    @property
    def oversize_error(self) -> Error | None:
        """Error of the close that a larger message causes; None if only its link ends."""
        return MESSAGE_TOO_LARGE if self._in_force.policy.entity.oversize_action == "connection" else None

    @property
    def counted(self) -> Share:
        """What the book counts for the connection."""
        return self._counted

    @property
    def gate(self) -> Gate | None:
        """What limits the credit of the peer's senders; None if no quota does."""
        return self._counted if self._counted.paces else None

    @property
    def budgets(self) -> list[Budget] | None:
        """The budgets, besides the router's, that count the bytes held of the peer's messages; None for none."""
        return self._counted.buffers or None

    @property
    def scopes(self) -> tuple[str, ...]:
        """Its vhost and its tenant, as far as it has them."""
        return scopes_of(self.admission, self.tenant)

    def make_tap(self, log: MessageLog | None) -> MessageTap | None:
        """Return the tap that samples the connection's messages and passes them to ``log``; None for none."""
        in_force, who = self._in_force, self.request
        sampling = in_force.samplings.get(self.admission.vhost)
        if sampling is None or who.role in ROUTER_ROLES:
            return None
        about = {
            "conn": who.connection_id,
            "vhost": self.admission.vhost,
            "user": who.user or None,
            "host": who.remote_host,
            "tenant": self.tenant or None,
        }
        return Sampler(sampling, about, in_force.recorder.emit, in_force.book.now, log)

    # --- messages

    def make_check(self, of_tenant: bool) -> MessageCheck | None:
        """Return the check of the connection's messages, None for none.

        Without a policy an authenticated client must not use another user's name; a broker forwards messages of others.
        A tenant's check records its attempts to use addresses that are not its own.
        """
        admission, request = self.admission, self.request
        proven = request.authenticated and request.role == "normal" and not request.outgoing
        name = request.user.encode()
        own = proven if admission.unrestricted else not admission.settings.allow_user_id_proxy
        stamp = name if self._stamps and request.authenticated else None
        if admission.unrestricted and not own and stamp is None and not of_tenant:
            return None
        may_send = None if admission.unrestricted else self._may_send
        return MessageCheck(name if own else None, stamp, may_send, self._deny_message)

    def _may_send(self, address: str) -> bool:
        return self.admission.may_send(address).allowed

    def _deny_message(self, what: str, text: str) -> None:
        self._record_verdict(judge_message(self.admission, what, text))

    def deny_large_message(self) -> None:
        """Count and record a message above the largest size."""
        self._record_verdict(judge_size(self.admission))

    # --- sessions

    def may_begin(self, others: int) -> Error | None:
        """Return the error that denies the peer another session beside its ``others``; None if it may begin one."""
        share = self._quotas if others else None
        quotas = None if share is None else share.quotas_on_bytes(SESSION_BYTES)
        verdict = judge_begin(self.admission, others, quotas)
        if quotas is not None and quotas.rule == verdict.rule:
            self._in_force.book.note_answer(quotas)
        if verdict.allowed:
            if share is not None:
                share.add_held_bytes(SESSION_BYTES)
            return None
        self._record_verdict(verdict)
        return verdict.error

    def count_sessions(self, count: int, open_bytes: int) -> None:
        """Set the number of the peer's sessions and the bytes kept of its open.

        The memory of the open and of all sessions but the first counts in the peer's quotas.
        """
        share = self._quotas
        if share is not None:
            share.add_held_bytes(open_bytes + SESSION_BYTES * max(0, count - 1) - share.kept)

    # --- links

    def admit_link(self, attach: Attach, kept_bytes: int, links: PeerLinks, full: str = "") -> Error | None:
        """Return the error that denies the peer a new link beside ``links``; None if it may have it.

        ``kept_bytes`` of the attach are counted already in the budgets. ``full`` is the rule by which the connection
        has as many links as it may, empty if it has not.
        """
        share, quotas = self._quotas, None
        if share is not None:
            quotas = share.quotas_at_attach(links.address_key(attach), kept_bytes)
            self._in_force.book.note_answer(quotas)
        return self._answer_attach(attach, links.count_links, full, quotas)

    def keeps_link(self, attach: Attach, others: Callable[[bool], int]) -> Error | None:
        """Return the error that ends a link under a changed policy; None if the peer keeps it.

        ``others`` returns the number of links that it keeps already in one direction: True for those on which it sends.
        """
        return self._answer_attach(attach, others)

    def count_link(self, link: Endpoint, attach: Attach, links: PeerLinks) -> None:
        """Count a link that the peer has in its quotas, if there are any and they do not count it yet."""
        share = self._quotas
        if share is not None and link not in share.links:
            named = links.address_key(attach) or (None if link.entry is None else link.entry.key)
            share.count_link(link, named)

    def uncount_link(self, link: Endpoint) -> None:
        """Give back what the quotas count for a link that has ended."""
        share = self._quotas
        if share is None:
            return
        if isinstance(link, Ingress):
            share.end_sending(link.account)
        share.uncount_link(link)

    @property
    def _quotas(self) -> Share | None:
        """What the book counts for the connection, if quotas limit it; None if none do."""
        return self._counted if self._counted.rules else None

    def _answer_attach(
        self, attach: Attach, others: Callable[[bool], int], full: str = "", quotas: QuotaAnswer | None = None
    ) -> Error | None:
        verdict = judge_attach(self.admission, attach, partial(others, not attach.role), full, quotas)
        if verdict.allowed and not self._in_force.plugins.may_attach(self._describe_attach(attach)):
            verdict = verdict.denied_by(BY_PLUGIN, LINK_DENIED)
        self._record_verdict(verdict)
        return verdict.error

    def deny_address(self, attach: Attach, rule: str) -> None:
        """Count and record that an address is not open to the peer, by a ``rule`` other than the policy's."""
        self._record_verdict(deny_address(self.admission, attach, rule))

    def _describe_attach(self, attach: Attach) -> AttachRequest:
        request, admission = self.request, self.admission
        terminus = attach.source if attach.role else attach.target
        named = terminus if isinstance(terminus, Source | Target) else None
        address = getattr(terminus, "address", None)
        return AttachRequest(
            connection_id=request.connection_id,
            user=request.user,
            authenticated=request.authenticated,
            remote_host=request.remote_host,
            role=request.role,
            vhost=admission.vhost,
            group=admission.group,
            link_name=attach.name,
            sends=not attach.role,
            address=address if isinstance(address, str) else None,
            dynamic=named is not None and named.dynamic,
            capabilities=() if named is None else tuple(map(str, named.capabilities)),
        )

    def _record_verdict(self, verdict: Verdict) -> None:
        self._in_force.record.record_verdict(verdict, self.request)


def scopes_of(admission: Admission, tenant: str) -> tuple[str, ...]:
    """Return the vhost and the tenant of a connection, as far as it has them."""
    return tuple(dict.fromkeys(filter(None, (admission.vhost, tenant))))
