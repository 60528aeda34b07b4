"""The look-ups of an edge router at its interior router before it answers a client's attach (inter-router.md 6.6)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from itertools import count
from typing import Final

from trouter.engine.link_base import Link
from trouter.wire.errors import DecodeError
from trouter.wire.performatives import Source
from trouter.wire.types import UInt

from .addresses import MOBILE
from .edge.protocol import LOOKUP_OPCODE, LOOKUP_VERSION, OK, SERVICES
from .egress import Egress
from .ingress import Ingress
from .notes import Note, read, write
from .routerport import RouterPort
from .routes import IN, OUT, routed_address
from .terms import PeerTerms

#: Seconds to wait for the answer to a look-up.
LOOKUP_S: Final = 3.0


class LookupResult(Enum):
    """The answer for a client's address: its messages are routed, or its links, or its links have no destination."""

    MESSAGES = "messages"
    LINKS = "links"
    NOWHERE = "nowhere"


class Query:
    """A look-up under way; ``answer`` is set when ``done`` is called."""

    def __init__(self, text: str, is_sender: bool, done: Callable[[], None]) -> None:
        self.text = text
        self.is_sender = is_sender
        self.answer = LookupResult.MESSAGES
        self.done = done


class Lookups:
    """The look-ups of an uplink: queries are sent on ``query_link``, answers come on ``reply_link``."""

    def __init__(self, router: RouterPort) -> None:
        self._router = router
        #: Links to the interior router. None before they are attached, ``query_link`` also once it has failed.
        self.query_link: Egress | None = None
        self.reply_link: Ingress | None = None
        self._queries: dict[str, Query] = {}
        self._unsent: list[str] = []
        self._numbers = count(1)

    def send_query(self, text: str, is_sender: bool, done: Callable[[], None]) -> Query | None:
        """Send a query whether links to an address are routed; None without a link for it. ``done`` is called once."""
        if self.query_link is None:
            return None
        query = Query(text, is_sender, done)
        number = str(next(self._numbers))
        self._queries[number] = query
        self._send_one(number)
        return query

    def forget_query(self, query: Query) -> None:
        """Forget a query whose answer is no longer needed."""
        for number, each in list(self._queries.items()):
            if each is query:
                del self._queries[number]

    def handle_answer(self, link: Link) -> None:
        """Send the queries that waited, if ``link`` is the one for answers and its address is known now."""
        if self.reply_link is not None and link is self.reply_link.link:
            unsent, self._unsent = self._unsent, []
            for number in unsent:
                self._send_one(number)

    def answer_all(self) -> None:
        """Answer all queries with MESSAGES, because one of the two links has ended."""
        self.query_link = None
        for number in list(self._queries):
            self._answer_query(number, LookupResult.MESSAGES)

    def end_queries(self) -> None:
        """Call ``done`` of all queries without an answer."""
        queries, self._queries = self._queries, {}
        for query in queries.values():
            query.done()

    def _send_one(self, number: str) -> None:
        query = self._queries.get(number)
        if query is None or self.query_link is None or self.reply_link is None:
            return
        address = made_up(self.reply_link.link)
        if not address:
            self._unsent.append(number)
            return
        request = Note(
            [query.text, query.is_sender],
            reply_to=address,
            correlation_id=number,
            properties={"version": UInt(LOOKUP_VERSION), "opcode": UInt(LOOKUP_OPCODE)},
        )
        self._router.inside.send_on(self.query_link, write(request))

    def read_reply(self, message: bytes) -> None:
        """Process the interior router's answer to a query."""
        try:
            reply = read(message)
        except DecodeError:
            return
        if not isinstance(reply.correlation_id, str):
            return
        found = LookupResult.MESSAGES
        if reply.properties.get("status") == OK and isinstance(reply.body, list) and len(reply.body) == 2:
            is_route, has_destination = reply.body
            if is_route is True:
                found = LookupResult.LINKS if has_destination is True else LookupResult.NOWHERE
        self._answer_query(reply.correlation_id, found)

    def _answer_query(self, number: str, found: LookupResult) -> None:
        query = self._queries.pop(number, None)
        if query is not None:
            query.answer = found
            query.done()


def question(router: RouterPort, link: Link, terms: PeerTerms) -> tuple[str, bool] | None:
    """Return the look-up that a client's attach needs, as its address and whether the client sends; None for none.

    A link route of this router answers without a look-up while it has a container.
    """
    wanted = link.remote_attach
    if router.uplink is None or terms.via_edge or wanted is None:
        return None
    text = routed_address(wanted.source if wanted.role else wanted.target)
    if text is None:
        return None
    address = router.table.parse(text, tenant=terms.tenant)
    if address.letter != MOBILE or address.text in SERVICES or router.table.is_served(address):
        return None
    space = "" if terms.tenant is None else terms.tenant.space
    pattern = router.routes.find(address.text, IN if link.incoming else OUT, space)
    has_container = pattern is not None and len(pattern.hops) > 0
    return None if has_container else (address.text, link.incoming)


def made_up(link: Link) -> str:
    """Return the address that the peer made for a link of ours with a dynamic source; "" before it has."""
    source = None if link.remote_attach is None else link.remote_attach.source
    address = source.address if isinstance(source, Source) else None
    return address if isinstance(address, str) else ""
