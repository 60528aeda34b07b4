"""The links of a session by name and by handle (AMQP 1.0 part 2, 2.6.2).

Each side has its own handles, for its own frames. A handle is free again once both sides have detached its link, a name
once the peer has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trouter.wire.transfers import FlowReader, TransferReader

from .faults import Fault, Misuse, PeerFault
from .limits import EngineLimits
from .ports import ConnectionPort, LinkPort, LinkSink, SessionPort

if TYPE_CHECKING:
    from cython import Py_ssize_t

_MASK32 = 0xFFFFFFFF
#: The free handles of every session before its first: replaced, and never changed.
_NO_HANDLES: list[int] = []


class SessionLinks:
    """The links of one session that are not detached on both sides.

    ``last_link`` is the link of the last transfer, at the peer's ``last_handle``, as a cache: None whenever a handle
    loses its link.
    """

    __slots__ = (
        "_connection",
        "_spare_handles",
        "by_name",
        "by_handle",
        "by_remote_handle",
        "handle_max",
        "remote_handle_max",
        "refused_count",
        "last_link",
        "last_handle",
    )

    def __init__(self, connection: ConnectionPort, limits: EngineLimits) -> None:
        self._connection = connection
        self.handle_max: Py_ssize_t = limits.handle_max
        self.remote_handle_max: Py_ssize_t = _MASK32
        self.by_name: dict[tuple[bool, str], Any] = {}
        self.by_handle: dict[int, Any] = {}
        self.by_remote_handle: dict[int, Any] = {}
        self._spare_handles: list[int] = _NO_HANDLES
        #: Links that were refused and that the peer has not detached yet.
        self.refused_count: Py_ssize_t = 0
        self.last_link: LinkPort | None = None
        self.last_handle: Py_ssize_t = 0

    def list_links(self) -> list[Any]:
        """Return every link that is not detached on both sides."""
        return list(self.by_handle.values())

    def find_link(self, remote_handle: Py_ssize_t, performative: str) -> LinkPort:
        """Return the link that the peer's frame ``performative`` is for; PeerFault."""
        link: LinkPort | None = self.by_remote_handle.get(remote_handle)
        if link is None:
            raise PeerFault(Fault.UNATTACHED_HANDLE, performative=performative, handle=remote_handle)
        return link

    def has_partial_delivery(self, remote_handle: int) -> bool:
        """Return whether the peer has begun a delivery on the link, and not ended it."""
        link = self.by_remote_handle.get(remote_handle)
        return link is not None and link.incoming and link.partial is not None

    def add_link(self, link: Any, handle: int) -> None:
        """Add a new link under a free handle of ours."""
        link.handle = handle
        self._connection.link_count += 1
        self.by_handle[handle] = link
        self.by_name[link.incoming, link.name] = link

    def free_handle(self) -> int:
        """Return a handle of ours without a link; Misuse if the peer's handle-max leaves none."""
        used = len(self.by_handle) + self.refused_count
        handle = self._spare_handles.pop() if self._spare_handles else used
        if handle > self.remote_handle_max:
            raise Misuse(f"the peer allows no handle above {self.remote_handle_max}")
        return handle

    def release_handle(self, handle: int) -> None:
        """Free this handle of ours for another link."""
        if not self._spare_handles:
            self._spare_handles = []
        self._spare_handles.append(handle)

    def release_remote_handle(self, handle: int) -> None:
        """Free this handle of the peer for another link."""
        self.by_remote_handle.pop(handle, None)
        self.last_link = None

    def release_name(self, link: LinkPort, named: tuple[bool, str]) -> None:
        """Free the name of a link that the peer has detached."""
        if self.by_name.get(named) is link:
            del self.by_name[named]

    def forget_link(self, handle: int) -> None:
        """Forget a link that both sides have detached."""
        if self.by_handle.pop(handle, None) is not None:
            self._connection.link_count -= 1
            self.release_handle(handle)

    def replace_by_refused(self, link: LinkPort, handle: int, remote_handle: int, named: tuple[bool, str]) -> None:
        """Keep of a refused link only its two handles, until the peer detaches it; its name is free at once."""
        if self.by_handle.pop(handle, None) is None:
            return
        self.release_name(link, named)
        self.release_remote_handle(remote_handle)
        self.by_remote_handle[remote_handle] = RefusedLink(link.session, self, handle)
        self._connection.link_count -= 1
        self.count_refused(1)

    def count_refused(self, count: Py_ssize_t) -> None:
        """Count ``count`` more links that were refused and that the peer has not detached."""
        self.refused_count += count
        self._connection.refused_count += count

    def drop_all_links(self) -> None:
        """Forget every link, whose owner is done with it and is notified no more."""
        self.count_refused(-self.refused_count)
        for link in self.by_handle.values():
            link.sink = _NO_OWNER
        for links in (self.by_name, self.by_handle, self.by_remote_handle):
            links.clear()
        self.last_link = None


class RefusedLink(LinkPort):
    """What is left of a refused link until the peer detaches it: its two handles, and nothing of its attach.

    A peer may leave a refusal unanswered for as long as it likes, so the link itself must not wait for that (2.6.3).
    Frames that crossed our detach are ignored.
    """

    __slots__ = ("incoming", "_links", "_handle")

    def __init__(self, session: SessionPort, links: SessionLinks, handle: Py_ssize_t) -> None:
        super().__init__(session)
        self._links = links
        self._handle = handle
        self.incoming = False

    def receive_transfer(self, transfer: TransferReader, data: bytes, end: Py_ssize_t) -> None:
        """Ignore it."""

    def receive_flow(self, flow: FlowReader) -> None:
        """Ignore it."""

    def receive_detach(self, remote_handle: int) -> None:
        """Free both handles."""
        self._links.release_remote_handle(remote_handle)
        self._links.count_refused(-1)
        self._links.release_handle(self._handle)


#: The sink of links without an owner; it ignores every event.
_NO_OWNER = LinkSink()
