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

#: The rule that denies an invalid address: too long, or no UTF-8. The rest of it may look like a valid one.
UNFIT: Final = "unfit-address"


class ConnectionPolicy:
    """The policy of one connection. ``stamps``: messages without a user-id get the user's name."""

    __slots__ = ("_held", "_plugins", "_policing", "_stamps")

    def __init__(self, policing: Policing, plugins: Plugins, held: AdmittedConnection, *, stamps: bool) -> None:
        self._policing = policing
        self._plugins = plugins
        self._held = held
        self._stamps = stamps

    @property
    def admission(self) -> Admission:
        """Current terms."""
        return self._held.admission

    @property
    def max_message_bytes(self) -> int:
        """Largest message accepted, in bytes; 0 for any."""
        return self.admission.settings.max_message_size or 0

    @property
    def oversize_error(self) -> Error | None:
        """Error of the close that a larger message causes; None if only its link ends."""
        return MESSAGE_TOO_LARGE if self._policing.policy.entity.oversize_action == "connection" else None

    @property
    def share(self) -> Share | None:
        """Current quotas, None for none."""
        return self._held.share

    def tap(self, log: MessageLog | None) -> MessageTap | None:
        """Return the tap that receives messages and logs them to ``log``, or None."""
        return self._policing.sampler(self._held, log)

    def check(self, of_tenant: bool) -> MessageCheck | None:
        """Return the check of the connection's messages, None for none.

        Without a policy an authenticated client must not use another user's name; a broker forwards messages of others.
        A tenant's check records its attempts to use addresses that are not its own.
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
        """Count and record a denied message."""
        if what == TARGET:
            verdict = self.admission.may_send(text)
            rule = UNFIT if verdict else verdict.rule
            self._policing.deny(Denied.TARGET, self._held, rule, address=text, direction="in")
        elif what == RESERVED:
            self._policing.deny(Denied.TARGET, self._held, what, address=text, direction="in")
        else:
            self._policing.deny(_OF_MESSAGES[what], self._held, what, text=text, direction="in")

    def may_begin(self, others: int) -> Error | None:
        """Return the error that denies the peer another session beside its ``others``; None if it may begin one."""
        limit, share = self.admission.settings.max_sessions, self._held.share
        if limit is not None and others >= limit:
            rule = self._rule("maxSessions")
        else:
            rule = share.may_keep(SESSION_BYTES) if others and share is not None else ""
        if not rule:
            return None
        self._policing.deny(Denied.BEGIN, self._held, rule)
        return SESSION_DENIED

    def count_sessions(self, count: int, open_bytes: int) -> None:
        """Set the number of the peer's sessions and the bytes kept of its open.

        The memory of the open and of all sessions but the first counts in the peer's quotas.
        """
        share = self._held.share
        if share is not None:
            share.keep(open_bytes + SESSION_BYTES * max(0, count - 1) - share.kept)

    def may_add_link(self, attach: Attach, address_key: str | None, kept_bytes: int) -> Error | None:
        """Return the error if quotas deny the peer another link, to the address of this key; None if they do not.

        ``kept_bytes`` of the attach are counted already.
        """
        share = self._held.share
        if share is None:
            return None
        over = share.may_keep(0) if kept_bytes else ""
        rule = over or share.may_attach(address_key)
        if not rule:
            return None
        self._deny_link(attach, rule)
        return TOO_MANY_LINKS

    def too_many(self, attach: Attach, rule: str) -> Error:
        """Record that a peer has as many links as ``rule`` allows; return the error."""
        self._deny_link(attach, rule)
        return TOO_MANY_LINKS

    def may_attach(self, attach: Attach, others: Callable[[], int]) -> Error | None:
        """Return the error that denies the peer a link; None if it may have it. ``others`` counts its direction."""
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
        """Count and record that an address is not open to the peer, by a ``rule`` other than the policy's."""
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
        """Count and record a message above the largest size."""
        self._policing.deny(Denied.TOO_LARGE, self._held, self._rule("maxMessageSize"), direction="in")

    def leave(self, resources: tuple[int, int, int]) -> None:
        """Release the ended connection; ``resources`` are the sessions, senders and receivers that it had."""
        self._policing.leave(self._held.request.number, resources)

    def _rule(self, attribute: str) -> str:
        admission = self.admission
        return ":".join(part for part in (admission.vhost, admission.group, attribute) if part)
