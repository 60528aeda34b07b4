"""Whole routers in one process: routing cores, engines, meshes and clients, joined by lines with a delay.

Only sockets and tasks are missing. A ``Site`` is a router with its clients; sites are joined by ``Line``s, over which
their engines speak AMQP as they do over TCP. Time is a number.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from tests.sim.timeline import Timeline
from trouter.backbone.backbone import Backbone
from trouter.backbone.uplinks import Uplinks
from trouter.core.containers import Container
from trouter.core.edge.peers import EdgePeer
from trouter.core.network import PRIORITIES, Trunk
from trouter.core.table import AddressRule
from trouter.core.terms import PeerTerms
from trouter.core.trunking import begin_links
from trouter.engine.connection import Connection
from trouter.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Event,
    LinkAttached,
    LinkDetached,
    SessionBegun,
    SessionEnded,
)
from trouter.engine.limits import EngineLimits
from trouter.engine.session import Session
from trouter.mesh.mesh import Mesh, Timers
from trouter.net.hub import Hub
from trouter.net.view import ConnectionView
from trouter.testing.memory import (
    LIMITS,
    MemoryClient,
    MemoryReceiver,
    MemoryRouter,
    MemorySender,
    ReceivedMessage,
    SentMessage,
    compose,
)
from trouter.wire.performatives import Accepted, Error, Open, Rejected, Released

#: Seconds after which the ends drop a line that carries nothing.
IDLE_S = 16.0
CAPACITY = 50
TREATMENTS = ("closest", "balanced", "multicast")
RULES = [AddressRule(name, is_prefix=True, distribution=name) for name in TREATMENTS]
TIMERS = Timers(ra_interval_s=10.0, remote_ls_max_age_s=20.0)


@dataclass(eq=False)
class End:
    """One end of a line: an engine, and its connection in the site's routing core."""

    site: Site
    number: int
    connection: Connection
    cost: int
    dials: bool
    #: Whether the line joins an edge router and an interior one.
    to_edge: bool
    trunk: Trunk | None = None
    gone: bool = False
    #: The line, once both ends are there.
    line: Line | None = None

    def hear(self, data: bytes) -> None:
        """Receive bytes from the other end."""
        if self.gone:
            return
        self.connection.receive_data(data)
        while self.connection.events:
            self._serve(self.connection.events.pop(0))

    def take(self) -> bytes:
        """Return the bytes for the other end."""
        self.connection.flush()
        taken = bytes(self.connection.out)
        self.connection.out.clear()
        if self.connection.paused:
            self.connection.resume_output()
        return taken

    def lose(self) -> None:
        """Notify the routing core that the connection is lost."""
        if self.gone:
            return
        self.gone = True
        core = self.site.memory.core
        if self.site.uplinks is not None:
            self.site.uplinks.remove_uplink(cast("ConnectionView", self))
        core.container_gone(self.number)
        for session in self.connection.sessions():
            core.lose_session(session)
        if self.trunk is not None and self.site.backbone is not None:
            self.site.backbone.remove_trunk(self.trunk)
        if self.site.uplinks is not None:
            self.site.uplinks.activate_next()
        core.edges.peers.pop(self.number, None)
        self.connection.drop_references()

    def _serve(self, event: Event) -> None:
        """Handle an event as ``trouter.connections`` does, without tasks."""
        core = self.site.memory.core
        if isinstance(event, ConnectionOpened):
            self._join()
        elif isinstance(event, SessionBegun):
            if not core.session_begun(event.session):
                event.session.begin()
        elif isinstance(event, LinkAttached):
            if not core.handle_own_attach(event.link) and event.link.sink not in core.links.values():
                core.answer_attach(event.link, self.terms)
        elif isinstance(event, LinkDetached):
            core.detach_link(event.link, event.closed, remote_error=event.error)
        elif isinstance(event, SessionEnded):
            core.lose_session(event.session)
            event.session.end()
            self.connection.drop_session(event.session)
        elif isinstance(event, ConnectionClosed):
            raise AssertionError(f"{self.site.name} closes a line: {event}")

    def _join(self) -> None:
        self.connection.open()
        if self.to_edge:
            self._join_edge()
        else:
            self._join_trunk()

    def _join_trunk(self) -> None:
        remote = self.connection.remote_open
        assert remote is not None
        assert self.site.backbone is not None
        self.trunk = Trunk(self.number, self.connection, CAPACITY, self.cost, remote.container_id)
        self.terms = PeerTerms(
            CAPACITY, strip_in=False, strip_out=False, connection_number=self.number, trunk=self.trunk
        )
        self.site.backbone.add_trunk(self.trunk)
        if self.dials:
            begin_links(self.site.memory.core, self.trunk, self.begin_own_sessions(1 + PRIORITIES), CAPACITY)

    def _join_edge(self) -> None:
        peer = None if self.dials else EdgePeer(self.number)
        self.terms = PeerTerms(CAPACITY, strip_in=False, strip_out=False, connection_number=self.number, role="edge")
        if peer is not None:
            self.site.memory.core.edges.peers[self.number] = peer
        if self.site.uplinks is not None:
            self.site.uplinks.add_uplink(cast("ConnectionView", self))

    # --- the methods that ``trouter.backbone.uplinks`` calls on the owner of a connection

    def begin_own_sessions(self, count: int) -> list[Session]:
        """Begin ``count`` sessions; return them."""
        sessions = [self.connection.add_session() for _ in range(count)]
        for session in sessions:
            session.begin()
        return sessions

    def as_container(self) -> Container:
        """Return the connection as a container of the routing core."""
        remote = self.connection.remote_open
        assert remote is not None
        return Container(self.connection, self.terms, remote.container_id, "", "edge")

    @property
    def link_capacity(self) -> int:
        """Return the credit of a link."""
        return CAPACITY

    def note_in_use(self) -> None:
        """Do nothing: no connector waits for it."""

    def turn_out(self, error: Error) -> None:
        """Fail: no scenario gives a router a reason to close a line."""
        raise AssertionError(f"{self.site.name} closes a line: {error}")


@dataclass(eq=False)
class Line:
    """A connection between two sites; the bytes that one end sends may be lost or delayed."""

    number: int
    ends: tuple[End, End]
    delay_s: float
    dead: set[End] = field(default_factory=set)
    #: The bytes that wait on a stalled line, by the end that they go to; None if the line is not stalled.
    waiting: dict[End, list[bytes]] | None = None

    @property
    def names(self) -> tuple[str, str]:
        return self.ends[0].site.name, self.ends[1].site.name

    def other(self, end: End) -> End:
        return self.ends[1] if end is self.ends[0] else self.ends[0]


class Site:
    """A router with its clients."""

    def __init__(
        self, name: str, boot: int, now: Callable[[], float], spread_news: Callable[[Site, float], None]
    ) -> None:
        """Start a router; a name that begins with E makes it an edge router."""
        self.name = name
        self.is_edge = name.startswith("E")
        self.memory = MemoryRouter(RULES, router_id=name, mode="edge" if self.is_edge else "interior")
        core = self.memory.core
        self.backbone = None if self.is_edge else Backbone(core, boot, TIMERS, now, partial(spread_news, self))
        self.uplinks = Uplinks(Hub(core)) if self.is_edge else None
        self.ends: list[End] = []
        self.receivers: list[Receiver] = []
        self.senders: dict[str, MemorySender] = {}
        self.client: MemoryClient = self._connect()
        self._numbers = itertools.count(100)

    def _connect(self) -> MemoryClient:
        return self.memory.connect(PeerTerms(link_capacity=CAPACITY, strip_out=False))

    def reconnect(self) -> None:
        """Drop the client's connection, and connect a new client."""
        self.receivers.clear()
        self.senders.clear()
        self.client.drop()
        self.client = self._connect()

    def add_end(self, cost: int, dials: bool, to_edge: bool) -> End:
        limits = EngineLimits(first_outgoing_id=LIMITS.first_outgoing_id, idle_timeout_s=0.0)
        opened = Open(container_id=self.name, max_frame_size=16384, channel_max=32767)
        connection = Connection(limits, opened, self.memory._outbox, None, server=not dials)
        end = End(self, next(self._numbers), connection, cost, dials, to_edge)
        self.ends.append(end)
        if dials:
            connection.open()
        return end

    @property
    def listening(self) -> set[str]:
        """Return the keys of the addresses that have receivers here."""
        return {f"M0{receiver.address}" for receiver in self.receivers if not receiver.address.startswith("amqp:")}


class Receiver:
    """A client's receiving link, and how many of its messages were looked at."""

    def __init__(self, site: Site, address: str, link: MemoryReceiver) -> None:
        self.site = site
        self.address = address
        self.link = link
        self.looked = 0

    def news(self) -> list[ReceivedMessage]:
        """Return the complete messages that arrived since the last call."""
        whole = [message for message in self.link.received[self.looked :] if message.complete]
        self.looked = len(self.link.received)
        return whole


@dataclass
class Posted:
    """A message that a client sent, and the site that it was sent at."""

    site: Site
    address: str
    sent: SentMessage
    settled: bool

    @property
    def heard(self) -> bool:
        """Whether its sender is still attached, so that an outcome can arrive."""
        return self.sent.sender in self.site.senders.values()


class Network(Timeline):
    """Sites, the lines between them, the bytes under way, and a ledger of every message."""

    def __init__(self, seed_of_order: int = 0) -> None:
        super().__init__(seed_of_order)
        self.sites: dict[str, Site] = {}
        self.lines: dict[int, Line] = {}
        #: By body: the message sent; the count of receivers that accepted it; the receivers that got it.
        self.posted: dict[bytes, Posted] = {}
        self.accepted: dict[bytes, int] = {}
        self.arrivals: dict[bytes, list[Receiver]] = {}
        #: Returns the outcome that a receiver settles a message with, and the delay in seconds.
        self.judge: Callable[[], tuple[object, float]] = lambda: (Accepted(), 0.0)
        self._under_way = 0
        self._boots = itertools.count(1)
        self._line_numbers = itertools.count(1)
        self._bodies = itertools.count(1)

    # --- sites and lines

    def start(self, *names: str) -> None:
        for place, name in enumerate(names):
            site = self.sites[name] = Site(name, next(self._boots), lambda: self.now_s, self._spread_news)
            self._later(0.1 + place * 0.07, partial(self._tick, site))

    def stop(self, name: str) -> None:
        """Kill the router's process."""
        for number, line in list(self.lines.items()):
            if name in line.names:
                self.cut(number, killed=name)
        del self.sites[name]

    def connect(self, one: str, other: str, cost: int = 1, delay_s: float = 0.001) -> int:
        number = next(self._line_numbers)
        to_edge = self.sites[one].is_edge
        ends = self.sites[one].add_end(cost, True, to_edge), self.sites[other].add_end(cost, False, to_edge)
        line = self.lines[number] = Line(number, ends, delay_s)
        for end in ends:
            end.line = line
        for end in ends:
            self._settle(end.site)
        return number

    def cut(self, number: int, killed: str = "") -> None:
        """Cut the line; both ends see it, except the site ``killed``."""
        line = self.lines.pop(number)
        for end in line.ends:
            end.site.ends.remove(end)
            if end.site.name == killed:
                end.gone = True
            else:
                end.lose()
                self._settle(end.site)

    def die(self, number: int, end: int) -> None:
        """Lose everything that one end sends from now on; both ends drop the line after ``IDLE_S``."""
        line = self.lines[number]
        line.dead.add(line.ends[end])
        self._later(IDLE_S, lambda: self.cut(number) if number in self.lines else None)

    def stall(self, number: int, seconds: float) -> None:
        """Hold back all bytes on the line for this time, then deliver them."""
        line = self.lines[number]
        if line.waiting is None:
            line.waiting = {end: [] for end in line.ends}
            self._later(seconds, lambda: self._go_on(line))

    def _go_on(self, line: Line) -> None:
        waiting, line.waiting = line.waiting or {}, None
        for end, octets in waiting.items():
            for data in octets:
                self._under_way += 1
                self._arrive(line, end, data)

    # --- clients

    def listen(self, name: str, address: str, credit: int = 1000) -> Receiver:
        site = self.sites[name]
        receiver = Receiver(site, address, site.client.receiver(address, credit=credit, pump=False))
        site.receivers.append(receiver)
        self._settle(site)
        return receiver

    def listen_for_replies(self, name: str) -> Receiver:
        """Attach a receiver with an address that the router generates; return it."""
        site = self.sites[name]
        link = site.client.receiver(dynamic=True, credit=1000)
        receiver = Receiver(site, link.address, link)
        site.receivers.append(receiver)
        self._settle(site)
        return receiver

    def hang_up(self, name: str) -> None:
        """Break the connection of the client at a site."""
        self.sites[name].reconnect()
        self._settle(self.sites[name])

    def leave(self, receiver: Receiver) -> None:
        receiver.site.receivers.remove(receiver)
        receiver.link.link.detach(True)
        self._settle(receiver.site)

    def sender(self, name: str, target: str) -> MemorySender:
        """Return the link of the client at a site to an address, "" for the anonymous one; attach it on first use."""
        site = self.sites[name]
        if target not in site.senders:
            site.senders[target] = site.client.sender(target or None, pump=False)
            self._settle(site)
        return site.senders[target]

    def post(
        self,
        name: str,
        address: str,
        settled: bool = False,
        size: int = 10,
        anonymous: bool = False,
        halting_s: float = 0.0,
        abort: bool = False,
    ) -> bytes:
        """Send a message from a client at a site; return its body, which identifies it.

        With ``halting_s`` the sender pauses in the middle of the message for so long; with ``abort`` it aborts it then.
        """
        site = self.sites[name]
        sender = self.sender(name, "" if anonymous else address)
        body = f"{next(self._bodies)}-{name}-{address}-".encode().ljust(size, b".")
        message = compose(body, to=address)
        if halting_s:
            sent = sender.begin(message[: len(message) // 2], settled=settled)
            self._later(halting_s, partial(self._finish, site, sent, b"" if abort else message[len(message) // 2 :]))
        else:
            sent = sender.send(message, settled=settled, frames=1 + size // 5000)
        self.posted[body] = Posted(site, address, sent, settled)
        self._settle(site)
        return body

    def _finish(self, site: Site, sent: SentMessage, rest: bytes) -> None:
        if rest:
            sent.finish(rest)
        else:
            sent.abort()
        self._settle(site)

    def _judge(self, site: Site) -> bool:
        """Settle the messages that arrived at the receivers; return whether there were any."""
        found = False
        for receiver in site.receivers:
            for message in receiver.news():
                found = True
                self.arrivals.setdefault(message.body, []).append(receiver)
                trace = (message.annotations or {}).get("x-opt-qd.trace", [])
                assert len(set(trace)) == len(trace), f"it went in a circle: {trace}"  # type: ignore[arg-type,call-overload]
                outcome, after_s = self.judge()
                if message.settled:
                    continue
                if after_s:
                    self._later(after_s, partial(self._say, receiver, message, outcome))
                else:
                    self._say(receiver, message, outcome)
        return found

    def _say(self, receiver: Receiver, message: ReceivedMessage, outcome: object) -> None:
        site = receiver.site
        if self.sites.get(site.name) is site and receiver in site.receivers:
            if isinstance(outcome, Accepted):
                self.accepted[message.body] = self.accepted.get(message.body, 0) + 1
            message.settle(outcome)
            self._later(0.0, lambda: self._settle(site))

    # --- time

    def rest(self) -> None:
        """Run until no bytes are under way."""
        begun_s = self.now_s
        while self._under_way:
            assert self.now_s - begun_s < 10.0, "there is always something under way"
            self.run(0.01)

    def _tick(self, site: Site) -> None:
        if self.sites.get(site.name) is site:
            site.memory.now_s = self.now_s
            if site.backbone is not None:
                site.backbone.tick()
            self._settle(site)
            self._later(1.0, partial(self._tick, site))

    def _spread_news(self, site: Site, when_s: float) -> None:
        """Let the router advertise the changes of its addresses at that time, unless it ticks before."""

        def spread() -> None:
            backbone = site.backbone
            if self.sites.get(site.name) is site and backbone is not None and backbone.news_at_s <= self.now_s:
                backbone.advertise_news()
                self._settle(site)

        self._later(when_s - self.now_s, spread)

    # --- bytes under way

    def _settle(self, site: Site) -> None:
        """Run the site's router and clients, and carry their output, until there is none left."""
        if self.sites.get(site.name) is not site:
            return
        site.memory.now_s = self.now_s
        while True:
            site.memory.pump()
            moved = self._judge(site)
            for end in list(site.ends):
                if end.line is not None and (data := end.take()):
                    moved = True
                    self._carry(end.line, end, data)
            if not moved:
                return

    def _carry(self, line: Line, end: End, data: bytes) -> None:
        if end not in line.dead:
            self._under_way += 1
            self._later(line.delay_s, partial(self._arrive, line, line.other(end), data))

    def _arrive(self, line: Line, end: End, data: bytes) -> None:
        self._under_way -= 1
        if self.lines.get(line.number) is not line:
            return
        if line.waiting is not None:
            line.waiting[end].append(data)
            return
        end.site.memory.now_s = self.now_s
        end.hear(data)
        self._settle(end.site)

    # --- expected state

    @property
    def routers(self) -> dict[str, Mesh]:
        return {name: site.backbone.mesh for name, site in self.sites.items() if site.backbone is not None}

    def interior_of(self, edge: Site) -> Site | None:
        """Return the site that the active uplink of an edge router leads to, or None."""
        for line in self.lines.values():
            end = line.ends[0]
            if end.site is edge and edge.uplinks is not None and edge.uplinks.is_active(end.number):
                return line.ends[1].site
        return None

    @property
    def listening(self) -> dict[str, set[str]]:
        """Return the keys that each interior router must advertise to the others."""
        found = {name: set(site.listening) for name, site in self.sites.items() if not site.is_edge}
        for site in self.sites.values():
            interior = self.interior_of(site)
            if interior is not None:
                found[interior.name] |= site.listening | {f"H{site.name}"}
        return found

    def live_links(self) -> dict[tuple[str, str], int]:
        """Return the lowest cost between each two interior sites that a line with two live directions connects."""
        links: dict[tuple[str, str], int] = {}
        for line in self.lines.values():
            if not (line.dead or line.ends[0].to_edge):
                for names in (line.names, line.names[::-1]):
                    links[names] = min(links.get(names, line.ends[0].cost), line.ends[0].cost)
        return links


__all__ = ["IDLE_S", "TREATMENTS", "Network", "Rejected", "Released"]
