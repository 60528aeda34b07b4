"""The policy of one connection: what its peer may begin, attach and send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trouter.core.check import NO_TO, RESERVED, TARGET, USER_ID, MessageCheck
from trouter.core.intake import MessageTap
from trouter.core.messagelog import MessageLog
from trouter.hooks import AttachRequest, Plugins
from trouter.security.links import judge_link
from trouter.security.policy import Admission
from trouter.security.quotas import Share
from trouter.wire.performatives import Attach, Error, Source, Target

from .admitted import AdmittedConnection
from .denials import LINK_DENIED, MESSAGE_TOO_LARGE, SESSION_DENIED, TOO_MANY_LINKS, Denied
from .memory import SESSION_BYTES
from .policing import Policing

_OF_MESSAGES: Final = {USER_ID: Denied.USER_ID, NO_TO: Denied.NO_TO}

#: The rule by which an address is denied that is none: too long, or no UTF-8. What is left of it may look like another.
UNFIT: Final = "unfit-address"


class ConnectionPolicy:
    """One connection's. ``stamps``: messages without a user-id are given the user's name."""

    __slots__ = ("_held", "_plugins", "_policing", "_stamps")

    def __init__(self, policing: Policing, plugins: Plugins, held: AdmittedConnection, *, stamps: bool) -> None:
        self._policing = policing
        self._plugins = plugins
        self._held = held
        self._stamps = stamps

    @property
    def admission(self) -> Admission:
        """Return the terms as they are now."""
        return self._held.admission

    @property
    def max_message_bytes(self) -> int:
        """Return the largest message taken in; 0 for any."""
        return self.admission.settings.max_message_size or 0

    @property
    def oversize_error(self) -> Error | None:
        """Return what a larger one ends the connection with, None if it ends its link only."""
        return MESSAGE_TOO_LARGE if self._policing.policy.entity.oversize_action == "connection" else None

    @property
    def share(self) -> Share | None:
        """Return the quotas as they are now, None for none."""
        return self._held.share

    def tap(self, log: MessageLog | None) -> MessageTap | None:
        """Return the tap that gets messages as they come and logs them to ``log``, or None."""
        return self._policing.sampler(self._held, log)

    def check(self, of_tenant: bool) -> MessageCheck | None:
        """Return what messages are held to, None for nothing.

        Without a policy a client that has proven its name must not use another's; a broker passes on what others sent.
        A tenant has no way to the addresses of others, and has to be told of when it tries.
        """
        admission, request = self.admission, self._held.request
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
        """A message was denied."""
        if what == TARGET:
            verdict = self.admission.may_send(text)
            rule = UNFIT if verdict else verdict.rule
            self._policing.deny(Denied.TARGET, self._held, rule, address=text, direction="in")
        elif what == RESERVED:
            self._policing.deny(Denied.TARGET, self._held, what, address=text, direction="in")
        else:
            self._policing.deny(_OF_MESSAGES[what], self._held, what, text=text, direction="in")

    def may_begin(self, others: int) -> Error | None:
        """Return whether the peer may begin one more session beside its ``others``, which is counted then; why not."""
        limit, share = self.admission.settings.max_sessions, self._held.share
        if limit is not None and others >= limit:
            rule = self._rule("maxSessions")
        else:
            rule = share.may_keep(SESSION_BYTES) if others and share is not None else ""
        if not rule:
            return None
        self._policing.deny(Denied.BEGIN, self._held, rule)
        return SESSION_DENIED

    def count_sessions(self, count: int) -> None:
        """Count that the peer has so many sessions: what they take, but for the first, is part of its quotas."""
        share = self._held.share
        if share is not None:
            share.keep(SESSION_BYTES * max(0, count - 1) - share.kept)

    def may_add_link(self, attach: Attach, address_key: str | None) -> Error | None:
        """Return whether quotas let the peer attach one more link, about the address of this key; why not."""
        share = self._held.share
        rule = "" if share is None else share.may_attach(address_key)
        if not rule:
            return None
        self._deny_link(attach, rule)
        return TOO_MANY_LINKS

    def too_many(self, attach: Attach, rule: str) -> Error:
        """Refuse a link of a peer that has as many as it may have by ``rule``; return the error."""
        self._deny_link(attach, rule)
        return TOO_MANY_LINKS

    def may_attach(self, attach: Attach, others: Callable[[], int]) -> Error | None:
        """Return whether the peer may attach, or keep, a link; why not. ``others`` counts those of its direction."""
        verdict = judge_link(self.admission, attach, others)
        sends = not attach.role
        terminus = attach.target if sends else attach.source
        address = getattr(terminus, "address", None)
        address = address if isinstance(address, str) else None
        direction = "in" if sends else "out"
        rule = verdict.rule
        if verdict.allowed:
            if self._plugins.may_attach(self._request(attach, address, terminus)):
                self._policing.allow("attach", self._held, rule, address=address, direction=direction)
                return None
            rule = "plugin:judge_attach"
        what = Denied.SENDER if sends else Denied.RECEIVER
        self._policing.deny(what, self._held, rule, address=address, direction=direction)
        return TOO_MANY_LINKS if verdict.too_many else LINK_DENIED

    def deny_closed(self, attach: Attach, rule: str) -> None:
        """Count and record that an address was not the peer's to use, by a ``rule`` beside the policy."""
        self._deny_link(attach, rule)

    def _deny_link(self, attach: Attach, rule: str) -> None:
        terminus = attach.source if attach.role else attach.target
        address = getattr(terminus, "address", None)
        what, direction = (Denied.RECEIVER, "out") if attach.role else (Denied.SENDER, "in")
        shown = address if isinstance(address, str) else None
        self._policing.deny(what, self._held, rule, address=shown, direction=direction)

    def _request(self, attach: Attach, address: str | None, terminus: object) -> AttachRequest:
        request = self._held.request
        named = terminus if isinstance(terminus, Source | Target) else None
        return AttachRequest(
            connection_id=request.number,
            user=request.user,
            authenticated=request.authenticated,
            remote_host=request.host,
            role=request.role,
            vhost=self.admission.vhost,
            group=self.admission.group,
            link_name=attach.name,
            sends=not attach.role,
            address=address,
            dynamic=named is not None and named.dynamic,
            capabilities=() if named is None else tuple(map(str, named.capabilities)),
        )

    def too_large(self) -> None:
        """Count and record a message that was larger than those taken in."""
        self._policing.deny(Denied.TOO_LARGE, self._held, self._rule("maxMessageSize"), direction="in")

    def leave(self, resources: tuple[int, int, int]) -> None:
        """Release the connection, which is over; ``resources`` are the sessions, senders and receivers that it had."""
        self._policing.leave(self._held.request.number, resources)

    def _rule(self, attribute: str) -> str:
        admission = self.admission
        return ":".join(part for part in (admission.vhost, admission.group, attribute) if part)
