"""The Qpid Dispatch routers that trouter meets: an interior one beside it, an edge one below it, an interior one above.

They learn the network as Qpid Dispatch does, and at the same times: it counts its hello ticks, requests links once,
in the tick in which it sends a hello, and drops a neighbour that is silent for the maximum age.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from tests.interop.recorded.forms import Form, plain, sections
from tests.interop.recorded.recording import Frame
from tests.interop.strict import reading
from tests.interop.strict.end import CAPACITY, TICK_S, Delivery, End, Link, Session
from tests.interop.strict.reading import Unread
from tests.interop.strict.writing import (
    ACCEPTED,
    NULL,
    RELEASED,
    integer,
    listed,
    long,
    mapped,
    message,
    source,
    symbol,
    target,
    text,
    way,
)

CONTROL, DATA, DOWNLINK = "qd.router", "qd.router-data", "qd.router-edge-downlink"
TRACKING, LOOKUP, HEARTBEAT = "_$qd.edge_addr_tracking", "_$qd.addr_lookup", "_$qd.edge_heartbeat"
#: The links to addresses with this prefix are answered by the test.
LATE = "late."
PRIORITIES, PRIORITY = 10, 4
MAX_AGE_S = 3.0
ADVERTISE_TICKS = 4
COST = "qd.inter-router-cost"
ALL = "amqp:/_topo/0/all/qdrouter"
BALANCED, LINKS = 3, 4


def link_name() -> str:
    """Return a name for a link of a router's own."""
    return f"qdlink.{secrets.token_hex(8)[:15]}"


def to_of(delivery: Delivery) -> str | None:
    """Return the address of a message: from its annotations, else from its properties."""
    to = reading.item(sections(delivery.octets).get(reading.PROPERTIES, ("list0", [])), 2)[1]
    found = delivery.way.to or to
    return None if found is None else str(found).removeprefix("amqp:/")


class Router(End):
    """The common part of the three: they accept messages for addresses, and links that they route."""

    def __init__(self, *args: Any, **options: Any) -> None:
        #: By address: the outcome of its messages, 0 for none; messages to other addresses are released.
        self.takes: dict[str, tuple[int, tuple[Form, ...]]] = {}
        #: Prefixes of addresses that are routed to a container.
        self.routes: set[str] = set()
        self.came: list[Delivery] = []
        super().__init__(*args, **options)

    def received(self, delivery: Delivery) -> None:
        """Settle the message with the outcome of its address."""
        self.came.append(delivery)
        if delivery.link.kind == "routed":
            self.settle(delivery, ACCEPTED)
            return
        to = delivery.link.address if delivery.link.kind == "address" else to_of(delivery)
        code, fields = self.takes.get(to or "", (RELEASED, ()))
        if code:
            self.settle(delivery, code, *fields)

    def got(self, address: str, count: int = 1) -> list[Delivery]:
        """Wait for ``count`` messages to an address; return them."""

        def here() -> list[Delivery]:
            return [each for each in self.came if address in (to_of(each), each.link.address)]

        self.wait(lambda: len(here()) >= count, f"message {count} to {address}")
        return here()

    def is_routed(self, address: str | None) -> bool:
        """Return whether the links of an address are routed to a container."""
        return address is not None and any(address == each or address.startswith(f"{each}.") for each in self.routes)

    def take_ordinary(self, link: Link) -> None:
        """Accept an attach without a capability: of a client's link, or a link between edge and interior."""
        if self.is_routed(link.address):
            self.accept(link, "routed")
            if not link.sends:
                self.grant(link, CAPACITY)
        else:
            self.accept(link, "address" if link.address else "anonymous", CAPACITY)

    def named(self, start: str) -> Link:
        """Wait for a link of the other router whose name begins so."""
        return self.one(lambda link: link.attach is not None and link.name.startswith(start), start)

    def at_route(self, address: str) -> Link:
        """Wait for a routed link to an address."""
        return self.one(lambda link: (link.kind, link.address) == ("routed", address), address)

    def one(self, right: Callable[[Link], bool], what: str) -> Link:
        """Wait for the first link that matches."""
        self.wait(lambda: any(map(right, self.links)), f"the link {what}")
        return next(filter(right, self.links))

    def wait_credit(self, link: Link) -> None:
        """Wait for credit."""
        self.wait(lambda: link.credit > 0, f"credit on {link.name}")

    def wait_flow(self, link: Link, flows: int) -> None:
        """Wait until the link has had more than ``flows`` flows."""
        self.wait(lambda: link.flows > flows, f"a flow on {link.name}")

    def wait_settled(self, delivery: Delivery) -> None:
        """Wait for the outcome of a message."""
        self.wait(lambda: delivery.outcome, "an outcome")


@dataclass
class Node:
    """An interior router's knowledge of another one."""

    instance: int = 0
    links: int = 0
    peers: dict[str, int] = field(default_factory=dict)
    mobile: int = 0
    addresses: set[str] = field(default_factory=set)
    wants_links: bool = True
    wants_addresses: bool = False
    asked_addresses: bool = False


class Interior(Router):
    """An interior router beside trouter: the neighbour that exchanges hellos with it."""

    role = "inter-router"

    def __init__(self, *args: Any, ticks: bool = True, cost: int = 1, **options: Any) -> None:
        """Start the router; with ``ticks`` it sends hellos by itself, else when a test calls it.

        ``cost`` is the cost of the connection on its side.
        """
        self.cost = cost
        self.nodes: dict[str, Node] = {}
        #: The neighbour once it is confirmed, and the time of the last confirmation.
        self.neighbour = ""
        self.confirmed_s = 0.0
        self.lost: list[str] = []
        #: The neighbour's messages on the control link: opcode, address and body.
        self.said: list[tuple[str, str, dict[str, Any]]] = []
        #: Opcodes of both directions, in order.
        self.talk: list[str] = []
        self.instance = int(time.time())
        self._ticking = ticks
        self._heard: dict[str, float] = {}
        self._links, self._mobile, self._links_changed = 0, 0, False
        self._added: dict[str, int] = {}
        self._deleted: set[str] = set()
        self._exist: dict[str, int] = {}
        self._ticks_to_advertise = 0
        properties = [*options.pop("properties", []), *([(symbol(COST), integer(cost))] if cost > 1 else [])]
        super().__init__(*args, properties=properties, **options)

    # --- links

    def begin_links(self) -> None:
        """Begin eleven sessions, each with a receiver and a sender: control first, then data by priority."""
        for place in range(1 + PRIORITIES):
            session, kind = self.begin(), DATA if place else CONTROL
            for sends in (False, True):
                ends = source(None, kind), target(None, kind)
                self.attach(session, link_name(), kind, *ends, sends=sends, credit=CAPACITY)

    def asked(self, link: Link, frame: Frame) -> None:
        """Accept links with a bare symbol as links of routers, and others only beside a control link."""
        kind = reading.capability(frame)
        if kind in (CONTROL, DATA):
            self.accept(link, kind, CAPACITY)
        elif self.control(sends=True) is None:
            self.fault(f"the attach of {link.name} names no capability of routers")
            self.refuse(link, "qd:connection-role", "Link attach forbidden on inter-router connection")
        else:
            self.take_ordinary(link)

    def answered(self, link: Link, frame: Frame) -> None:
        """Check that the answer has the capability of this end's attach."""
        if link.kind in (CONTROL, DATA) and reading.capability(frame) != link.kind:
            self.fault(f"the answer to a link of kind {link.kind} names none")

    def control(self, *, sends: bool) -> Link | None:
        """Return the control link of a direction, once it is attached."""
        return next((each for each in self.links if each.kind == CONTROL and each.sends == sends and each.attach), None)

    def data(self, priority: int = PRIORITY) -> Link:
        """Return the link for messages of a priority."""
        found = [each for each in self.links if each.kind == DATA and each.sends]
        return found[priority]

    # --- time

    def tick(self) -> None:
        """Do the work of a second."""
        super().tick()
        if self._ticking and self.control(sends=True) is not None:
            self.hello_tick()

    def hello_tick(self) -> None:
        """Send a hello; then, in this order, expire the neighbour, send requests and addresses, advertise changes."""
        with self.changed:
            now_s = time.monotonic()
            seen = [name for name, heard_s in self._heard.items() if now_s - heard_s <= MAX_AGE_S]
            entries = ("instance", integer(self.instance)), ("seen", listed(*map(text, seen)))
            self._say_control("HELLO", "amqp:/_local/qdhello", *entries)
            self._ticks_to_advertise -= 1
            advertise = self._ticks_to_advertise <= 0
            if self.neighbour and now_s - self.confirmed_s > MAX_AGE_S + TICK_S:
                self.fault(f"{self.neighbour} was silent for {now_s - self.confirmed_s:.1f} s")
                self.lost.append(self.neighbour)
                self.neighbour, self._links_changed = "", True
            if self._links_changed:
                self._links, self._links_changed, advertise = self._links + 1, False, True
            for name, node in self.nodes.items():
                self._ask(name, node)
            if self._added or self._deleted:
                self._tell_addresses()
                advertise = True
            if advertise:
                self._advertise()
            self.changed.notify_all()

    def _ask(self, name: str, node: Node) -> None:
        if not self.reaches(name):
            return
        if node.wants_links:
            node.wants_links = False
            self._say_control("LSR", f"amqp:/_topo/0/{name}/qdrouter")
        if node.wants_addresses:
            node.wants_addresses, node.asked_addresses = False, True
            self._say_control("MAR", f"amqp:/_topo/0/{name}/qdrouter.ma", ("have_seq", long(node.mobile)))

    def _tell_addresses(self) -> None:
        self._mobile += 1
        self._exist = {key: hint for key, hint in self._exist.items() if key not in self._deleted} | self._added
        entries = [
            ("mobile_seq", long(self._mobile)),
            ("hints", listed(*map(integer, self._added.values()))),
            ("add", listed(*map(text, self._added))),
            ("del", listed(*map(text, self._deleted))),
        ]
        self._added, self._deleted = {}, set()
        self._say_control("MAU", "_topo/0/all/qdrouter.ma", *entries)

    def _advertise(self) -> None:
        self._ticks_to_advertise = ADVERTISE_TICKS
        entries = ("instance", self.instance), ("ls_seq", self._links), ("mobile_seq", self._mobile)
        self._say_control("RA", ALL, *((key, integer(number)) for key, number in entries))

    def _say_control(self, opcode: str, to: str, *entries: tuple[str, Form]) -> None:
        mobile = opcode in ("MAR", "MAU")
        key, number = (symbol, long) if mobile else (text, integer)
        head = [("id", text(self.name)), ("pv", number(1)), ("area", text("0"))]
        body = mapped(*((key(name), value) for name, value in (*head, *entries)))
        octets = message(body, annotations=way(self.name), to=to, properties=mapped((key("opcode"), text(opcode))))
        link = self.control(sends=True)
        assert link is not None
        self.talk.append(f"> {opcode}")
        self.send(link, octets, settled=True)

    # --- input

    def received(self, delivery: Delivery) -> None:
        """Handle a message of routers on the control link, and settle any other message."""
        if delivery.link.kind != CONTROL:
            super().received(delivery)
            return
        opcode, to, body = reading.control(delivery.octets)
        to = to.removeprefix("amqp:/")
        self.said.append((opcode, to, body))
        self.talk.append(f"< {opcode}")
        if not delivery.settled:
            raise Unread(f"{opcode} is not settled")
        here = {"HELLO": ["_local/qdhello"], "MAU": [f"_topo/0/{each}/qdrouter.ma" for each in ("all", self.name)]}
        wanted = here.get(opcode, [f"_topo/0/{each}/qdrouter" for each in ("all", self.name)])
        if opcode == "MAR":
            wanted = [f"_topo/0/{self.name}/qdrouter.ma"]
        if to not in wanted:
            raise Unread(f"{opcode} goes to {to}")
        if body["pv"] <= 1 and body["id"] != self.name:
            getattr(self, f"_hear_{opcode.lower()}")(body["id"], body)

    def _hear_hello(self, name: str, body: dict[str, Any]) -> None:
        self._heard[name] = time.monotonic()
        if self.name not in body["seen"]:
            return
        node = self.nodes.setdefault(name, Node())
        self._note_start(name, node, body["instance"])
        self.confirmed_s = time.monotonic()
        if self.neighbour != name:
            self.neighbour, self._links_changed, node.wants_links = name, True, True

    def _note_start(self, name: str, node: Node, instance: int) -> None:
        if node.instance and node.instance != instance:
            self.nodes[name] = Node(instance)
        node.instance = instance

    def _hear_ra(self, name: str, body: dict[str, Any]) -> None:
        node = self.nodes.setdefault(name, Node())
        self._note_start(name, node, body["instance"])
        node.wants_links = node.wants_links or body["ls_seq"] > node.links
        node.wants_addresses = node.wants_addresses or body["mobile_seq"] > node.mobile
        if body["ls_seq"] > node.links and self.reaches(name):
            node.wants_links = False
            self._say_control("LSR", f"amqp:/_topo/0/{name}/qdrouter")

    def _hear_lsu(self, name: str, body: dict[str, Any]) -> None:
        node, state = self.nodes.setdefault(name, Node()), body["ls"]
        if state["ls_seq"] <= node.links:
            return
        node.links, node.peers = state["ls_seq"], state["peers"]
        for peer in node.peers:
            if peer != self.name:
                self.nodes.setdefault(peer, Node())

    def _hear_lsr(self, name: str, body: dict[str, Any]) -> None:
        """Answer a router that it reaches; a neighbour must say hello before it asks.

        A router beyond the neighbour may ask before it is reached: the neighbour has heard of both, and passes the
        request on while this router has yet to ask for its new links. Such a router asks again, and hears nothing now.
        """
        self.nodes.setdefault(name, Node())
        if not self.reaches(name):
            if self.opened is not None and name == self.opened.fields["container-id"]:
                self.fault(f"{name} asks for links before it has said hello")
            return
        peers = mapped((text(self.neighbour), integer(self._both_cost()))) if self.neighbour else mapped()
        state = mapped(
            (text("id"), text(self.name)), (text("area"), text("0")),
            (text("ls_seq"), integer(self._links)), (text("peers"), peers),
        )  # fmt: skip
        entries = ("instance", integer(self.instance)), ("ls_seq", integer(self._links)), ("ls", state)
        self._say_control("LSU", f"amqp:/_topo/0/{name}/qdrouter", *entries)

    def _both_cost(self) -> int:
        """Return the greater of the costs on both sides; a cost that is no int counts as 1."""
        assert self.opened is not None
        theirs = reading.properties(self.opened).get(COST, NULL)
        return max(self.cost, theirs[1] if theirs[0] in reading.INT else 1)

    def _hear_mar(self, name: str, body: dict[str, Any]) -> None:
        if name not in self.nodes or body["have_seq"] >= self._mobile:
            return
        exist, hints = listed(*map(text, self._exist)), listed(*map(integer, self._exist.values()))
        entries = ("mobile_seq", long(self._mobile)), ("exist", exist), ("hints", hints)
        self._say_control("MAU", f"amqp:/_topo/0/{name}/qdrouter.ma", *entries)

    def _hear_mau(self, name: str, body: dict[str, Any]) -> None:
        node = self.nodes.get(name)
        if node is None:
            return
        if "exist" in body:
            node.addresses = set(body["exist"])
        elif body["mobile_seq"] == node.mobile + 1 or node.asked_addresses:
            node.addresses = (node.addresses | set(body["add"])) - set(body["del"])
        else:
            node.wants_addresses = True
            self._ask(name, node)
            return
        node.mobile, node.asked_addresses = body["mobile_seq"], False

    def reaches(self, name: str) -> bool:
        """Return whether there is a path: to the neighbour, and to routers that link states reach from there."""
        found, left = {self.neighbour}, [self.neighbour]
        while left and left[0]:
            new = self.nodes[left.pop()].peers.keys() & self.nodes.keys() - found if left[-1] in self.nodes else set()
            found |= new
            left += new
        return bool(name) and name in found

    # --- called by a test

    def listen(self, *addresses: str, code: int = ACCEPTED, fields: tuple[Form, ...] = ()) -> None:
        """Accept messages to addresses; the next tick advertises them."""
        with self.changed:
            self.takes |= dict.fromkeys(addresses, (code, fields))
            self._added |= {f"M0{each}": BALANCED for each in addresses}

    def unlisten(self, address: str) -> None:
        """Lose the consumer of an address; the next tick withdraws it."""
        with self.changed:
            self._deleted.add(f"M0{address}")

    def route(self, prefix: str) -> None:
        """Connect a container for links of both directions."""
        with self.changed:
            self.routes.add(prefix)
            self._added |= {f"C{prefix}": LINKS, f"D{prefix}": LINKS}

    def wait_met(self, name: str) -> None:
        """Wait until the other router is a neighbour whose links are known."""
        self.wait(lambda: self.neighbour == name and self.name in self.nodes[name].peers, f"the neighbour {name}")

    def wait_listed(self, name: str, key: str, *, listed: bool = True) -> None:
        """Wait until a router has advertised an address, or withdrawn it."""
        self.wait(lambda: (key in self.nodes.get(name, Node()).addresses) == listed, f"{key} of {name}")

    def post(self, to: str, value: Form, **fields: Any) -> Delivery:
        """Send a message on a data link, as the router at which it enters the network."""
        return self.send(self.data(), message(value, annotations=way(self.name, to), to=to, **fields))

    def attach_routed(self, address: str, *, sends: bool, name: str = "") -> Link:
        """Attach a client's link that is routed through the other router."""
        ends = source(None if sends else address), target(address if sends else None)
        session = next((each for each in self.sessions if each.links and each.links[0].kind == "routed"), None)
        return self.attach(session or self.begin(), name or f"{link_name()}@client", "routed", *ends, sends=sends)


class OutLinks:
    """What an edge router of Qpid Dispatch 1.19 keeps of its links to send on, by address.

    A link serves its address from the moment in which the interior router says that the address has receivers, until
    it says that there are none. When a link ends, the edge router forgets it only if it serves its address then: else
    it keeps the ended link for the address, and never attaches another one.
    """

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}
        self._serving: set[str] = set()
        #: The addresses whose senders will never get credit again.
        self.dead: set[str] = set()

    def add_link(self, address: str, link: Link) -> None:
        """Keep the link that was attached for an address."""
        self._links[address] = link

    def note_receivers(self, address: str, there_are: bool) -> None:
        """Take or no longer take the link for the messages to the address."""
        if address in self._links:
            (self._serving.add if there_are else self._serving.discard)(address)

    def note_end(self, link: Link) -> None:
        """Handle the end of a link that the interior router ended, or of its connection."""
        for address, kept in list(self._links.items()):
            if kept is not link:
                continue
            if address in self._serving:
                self._serving.discard(address)
                del self._links[address]
            else:
                self.dead.add(address)

    def note_connection_end(self) -> None:
        """Handle the end of the connection."""
        for link in list(self._links.values()):
            self.note_end(link)


class Below(Router):
    """An edge router below trouter, which it dials: its uplink is this connection."""

    role = "edge"

    def __init__(self, *args: Any, **options: Any) -> None:
        #: By key: whether the other side has receivers, as the tracking link reported it.
        self.takes_elsewhere: dict[str, bool] = {}
        self.out_links = OutLinks()
        #: Answers to requests and look-ups.
        self.responses: list[Delivery] = []
        #: The links of the uplink by their purpose.
        self.uplink: dict[str, Link] = {}
        super().__init__(*args, **options)

    def begin_links(self) -> None:
        """Attach the links of an uplink, in their order."""
        main, own = self.begin(), self.begin()
        rows: list[tuple[str, Session, bool, Form, Form, int]] = [
            ("up", main, True, source(), target(), 0),
            ("down", main, False, source(self.name, DOWNLINK), target(None, DOWNLINK), CAPACITY),
            ("tracking", own, False, source(TRACKING), target(), 32),
            ("management", own, True, NULL, target("$management"), 0),
            ("responses", own, False, source(dynamic=True), NULL, 100),
            ("lookup", own, True, NULL, target(LOOKUP), 0),
            ("replies", own, False, source(dynamic=True), NULL, CAPACITY),
            ("heartbeat", own, True, NULL, target(HEARTBEAT), 0),
        ]
        for kind, session, sends, here, there, credit in rows:
            self.uplink[kind] = self.attach(session, link_name(), kind, here, there, sends=sends, credit=credit)

    def answered(self, link: Link, frame: Frame) -> None:
        """Store the address of a dynamic source."""
        if link.kind in ("responses", "replies"):
            link.address = reading.address(reading.terminus(frame, mine=False))

    def asked(self, link: Link, frame: Frame) -> None:
        """Accept links for streams, which have no address, and routed links."""
        self.take_ordinary(link)

    def tick(self) -> None:
        """Send a heartbeat, if there is credit for it."""
        super().tick()
        link = self.uplink.get("heartbeat")
        if link is not None and link.credit > 0:
            self.send(link, message(integer(link.count), annotations=way(self.name)), settled=True)

    def received(self, delivery: Delivery) -> None:
        """Handle a message on a link of the uplink, or for an address of this router."""
        kind = delivery.link.kind
        if kind == "tracking":
            key, takes = self._pair(delivery)
            self.takes_elsewhere[key] = takes
            self.out_links.note_receivers(key.removeprefix("M0"), takes)
            self.settle(delivery, ACCEPTED)
        elif kind in ("responses", "replies"):
            self.responses.append(delivery)
            self.settle(delivery, ACCEPTED)
        else:
            super().received(delivery)

    def gone(self, link: Link) -> None:
        """Forget the link of an address, or keep it, as Qpid Dispatch does."""
        self.out_links.note_end(link)

    def _take_close(self, frame: Frame) -> None:
        super()._take_close(frame)
        self.out_links.note_connection_end()

    def _pair(self, delivery: Delivery) -> tuple[str, bool]:
        form = sections(delivery.octets)[reading.VALUE]
        kinds = [each[0] for each in form[1]]
        if form[0] not in reading.LIST or len(kinds) != 2 or kinds[0] not in reading.STRING:
            raise Unread(f"a tracking message of {form[0]} {kinds}")
        return form[1][0][1], bool(form[1][1][1])

    # --- called by a test

    def wait_up(self) -> None:
        """Wait for all links of the uplink."""
        self.wait(lambda: len([each for each in self.uplink.values() if each.attach]) == 8, "all links of the uplink")

    def listen(self, address: str, code: int = ACCEPTED, fields: tuple[Form, ...] = ()) -> Link:
        """Attach a receiver for an address."""
        self.takes[address] = code, fields
        ends = source(address), target()
        link = self.attach(self.sessions[0], link_name(), "address", *ends, sends=False, credit=CAPACITY)
        link.address = address
        return link

    def sender(self, address: str | None) -> Link:
        """Attach a sender to an address, or, as for a stream, to any address, in a session of its own."""
        session = self.sessions[0] if address else self.begin()
        with self.changed:
            link = self.attach(session, link_name(), "address", source(), target(address), sends=True)
            if address:
                link.address = address
                self.out_links.add_link(address, link)
            return link

    def asked_streams(self) -> list[Link]:
        """Return the links that the interior router attached for long messages."""
        return [each for each in self.links if each.kind == "anonymous"]

    def look_up(self, address: str, *, sends: bool) -> tuple[int, list[bool]]:
        """Look up whether the links of an address are routed; return the status and the answer."""
        asked = mapped((text("version"), ("smalluint", 1)), (text("opcode"), ("smalluint", 1)))
        body = listed(text(address), ("true", True) if sends else ("false", False))
        answer = self._ask("lookup", "replies", body, asked, settled=True)
        return answer[0]["status"], answer[1]

    def manage(self, properties: dict[str, str], body: Form) -> tuple[dict[str, Any], Any]:
        """Send a request to the interior router's management; return the properties and the body of the answer."""
        head = mapped(*((text(key), text(value)) for key, value in properties.items()))
        return self._ask("management", "responses", body, head, settled=False)

    def _ask(self, service: str, answers: str, body: Form, head: Form, *, settled: bool) -> tuple[dict[str, Any], Any]:
        reply_to, correlation = self.uplink[answers].address, link_name()
        octets = message(body, annotations=way(self.name), reply_to=reply_to, correlation=correlation, properties=head)
        self.send(self.uplink[service], octets, settled=settled)

        def find() -> dict[int, Form] | None:
            found = (sections(each.octets) for each in self.responses)
            return next((each for each in found if reading.item(each[reading.PROPERTIES], 5)[1] == correlation), None)

        parts = self.wait(find, "an answer")
        assert parts is not None
        return plain(parts[reading.APPLICATION_PROPERTIES]), plain(parts[reading.VALUE])


class Above(Router):
    """An interior router above trouter, which is an edge router and dials it."""

    role = "edge"

    def __init__(self, *args: Any, **options: Any) -> None:
        #: Addresses of look-ups, and requests to the management.
        self.looked_up: list[tuple[str, bool]] = []
        self.requests: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.beats = 0
        self._tracked: set[str] = set()
        super().__init__(*args, **options)

    def find(self, kind: str) -> Link | None:
        """Return the newest attached link of a kind."""
        return next((each for each in reversed(self.links) if each.kind == kind and each.detached is None), None)

    def at(self, address: str, *, sends: bool) -> Link:
        """Wait for the link of an address."""

        def right(link: Link) -> bool:
            return (link.kind, link.address, link.sends, link.detached) == ("address", address, sends, None)

        return self.one(right, f"of {address}")

    def asked(self, link: Link, frame: Frame) -> None:
        """Accept a link by its capability and address."""
        services = {TRACKING: ("tracking", 0), LOOKUP: ("lookup", 32), HEARTBEAT: ("heartbeat", 2)}
        services["$management"] = ("management", CAPACITY)
        dynamic = reading.item(reading.terminus(frame, mine=True), 4)
        if link.address is not None and link.address.startswith(LATE):
            link.kind = "late"
        elif reading.capability(frame) == DOWNLINK:
            self.accept(link, "down")
        elif link.address in services:
            self.accept(link, *services[link.address])
        elif link.sends and (dynamic[0] == "true" or dynamic == ("boolean", 1)):
            self.accept(link, "dynamic", made=f"amqp:/_topo/0/{self.name}/temp.{link_name()[7:]}")
        else:
            if link.sends and link.address == self._edge():
                self.fault("a downlink without its capability")
            self.take_ordinary(link)
            if not link.sends and link.address is not None:
                self._track(link.address)

    def _edge(self) -> str:
        return "" if self.opened is None else str(self.opened.fields["container-id"])

    def received(self, delivery: Delivery) -> None:
        """Handle look-ups, heartbeats and requests, and settle other messages."""
        kind = delivery.link.kind
        if kind == "lookup":
            self._answer_lookup(delivery)
        elif kind == "heartbeat":
            form = sections(delivery.octets)[reading.VALUE]
            if form[0] not in reading.INT:
                raise Unread(f"a heartbeat that is {form[0]}")
            self.beats += 1
        elif kind == "management":
            self._answer_request(delivery)
        else:
            if delivery.way.ingress or delivery.way.trace:
                self.fault("an edge router leaves no trace on what it passes on")
            super().received(delivery)

    def _answer_lookup(self, delivery: Delivery) -> None:
        parts = sections(delivery.octets)
        form, head = parts[reading.VALUE], plain(parts[reading.APPLICATION_PROPERTIES])
        if form[0] not in reading.LIST or form[1][0][0] not in reading.STRING or len(form[1]) != 2:
            raise Unread(f"a look-up of {form[0]}")
        if (head.get("version"), head.get("opcode")) != (1, 1):
            raise Unread(f"a look-up with {head}")
        self.looked_up.append((form[1][0][1], bool(form[1][1][1])))
        routed = self.is_routed(form[1][0][1])
        status = ("uint0", 0) if routed else ("smalluint", 3)
        answer = listed(*[("true", True) if routed else ("false", False)] * 2)
        numbers = mapped(*((text(key), ("smalluint", 1)) for key in ("version", "opcode")), (text("status"), status))
        self._reply(delivery, answer, numbers)

    def _answer_request(self, delivery: Delivery) -> None:
        parts = sections(delivery.octets)
        head, body = plain(parts[reading.APPLICATION_PROPERTIES]), plain(parts[reading.VALUE])
        self.requests.append((head, body))
        self.settle(delivery, ACCEPTED)
        made = head["operation"] == "CREATE"
        status = [(text("statusCode"), integer(201 if made else 204))]
        status.append((text("statusDescription"), text("Created" if made else "No Content")))
        entries = (
            {"name": body.get("name", ""), "identity": f"connection.linkRoute/{len(self.requests)}"} if made else {}
        )
        self._reply(delivery, mapped(*((text(key), text(value)) for key, value in entries.items())), mapped(*status))

    def _reply(self, delivery: Delivery, body: Form, properties: Form) -> None:
        fields = sections(delivery.octets)[reading.PROPERTIES]
        to, correlation = reading.item(fields, 4)[1], reading.item(fields, 5)[1]
        link = next(each for each in self.links if each.kind == "dynamic" and each.address == to)
        octets = message(body, annotations=way(self.name), to=to, correlation=correlation, properties=properties)
        self.send(link, octets, settled=True)

    def _track(self, address: str) -> None:
        link = self.find("tracking")
        if link is not None and address in self.takes:
            body = listed(text(f"M0{address}"), ("true", True))
            self.send(link, message(body, annotations=way(self.name)), settled=True)

    # --- called by a test

    def wait_up(self) -> None:
        """Wait for all links of the uplink."""
        kinds = {"down", "anonymous", "tracking", "management", "dynamic", "lookup", "heartbeat"}
        self.wait(lambda: kinds <= {each.kind for each in self.links}, "all links of the uplink")

    def listen(self, addresses: Collection[str], code: int = ACCEPTED, fields: tuple[Form, ...] = ()) -> None:
        """Accept messages to addresses, in the place of a router elsewhere."""
        with self.changed:
            self.takes |= dict.fromkeys(addresses, (code, fields))
            for link in self.links:
                if link.kind == "address" and not link.sends and link.address is not None:
                    self._track(link.address)

    def end_listening(self, address: str) -> None:
        """Say that an address has no receiver any more, as before the end of a router that tells of its own end."""
        with self.changed:
            link = self.find("tracking")
            assert link is not None
            body = listed(text(f"M0{address}"), ("false", False))
            self.send(link, message(body, annotations=way(self.name)), settled=True)

    def answer_late(self, count: int) -> None:
        """Wait for ``count`` links of late addresses, and accept them in their order."""

        def late() -> list[Link]:
            return [each for each in self.links if each.kind == "late"]

        self.wait(lambda: len(late()) == count, f"{count} late links")
        with self.changed:
            for link in late():
                self.accept(link, "address")

    def stream(self) -> Link:
        """Attach a link for a long message, in a session of its own."""
        return self.attach(self.begin(), link_name(), "stream", source(), target(), sends=True)
