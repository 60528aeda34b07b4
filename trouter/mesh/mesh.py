"""The part of one router in the network (inter-router.md 4): neighbours, link states, ways, and mobile addresses.

Time is an argument, in seconds of a monotonic clock. Messages and control links enter through the methods; the results
are in ``events`` until they are taken. ``tick`` is called once a second. What is stored, requested, answered and
computed in a second is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .events import Event
from .faults import MeshFault
from .hearing import Hearing
from .hellos import HALF_TICK_S, ControlLink
from .intake import TAKEN_AT, Intake
from .knowledge import Knowledge, Timers
from .names import shown
from .nodes import MeshNode
from .paths import Paths
from .relay import Relay

__all__ = ["ORPHAN_TICKS", "TAKEN_AT", "Mesh", "Timers"]

#: Ticks for which a router that no other router lists is kept.
ORPHAN_TICKS: Final = 3


class Mesh:
    """The router ``me``, started at ``instance`` (seconds since 1970), as a member of the network.

    An ``instance`` must be greater than those of former starts with the same id, because other routers compare them.
    """

    def __init__(self, me: str, instance: int, timers: Timers | None = None) -> None:
        self.me = me
        self.instance = instance
        #: The network as it is known, and what follows from changes of it.
        self._known = Knowledge(me, instance, timers)
        #: It takes messages that are parsed already.
        self.hearing = Hearing(self._known)
        self._intake = Intake(self._known, self.hearing)

    # --- the state of the network

    @property
    def events(self) -> list[Event]:
        """Events that the holder has not carried out yet; it clears the list."""
        return self._known.events

    @property
    def paths(self) -> Paths:
        """Ways through the network."""
        return self._known.paths

    @property
    def last_change_s(self) -> float:
        """When the network last changed."""
        return self._known.last_change_s

    @property
    def neighbours(self) -> Mapping[str, int]:
        """Connection that leads to each neighbour."""
        return self._known.neighbours

    @property
    def links(self) -> Mapping[int, ControlLink]:
        """Control links, by connection."""
        return self._known.links

    @property
    def routers(self) -> Mapping[str, MeshNode]:
        """Other routers that are known, reachable or not, by id."""
        return self._known.nodes

    @property
    def faults(self) -> Mapping[MeshFault, int]:
        """Counts of the faults of other routers."""
        return self._known.faults

    def addresses_of(self, router: str) -> Mapping[str, int]:
        """Return the address keys of another router, each with its hint; none for an unknown router."""
        node = self._known.nodes.get(router)
        return {} if node is None else node.addresses

    # --- local events

    def link_up(self, connection: int, cost: int, now_s: float) -> None:
        """Send hellos over the control link of ``connection`` from now on."""
        self._known.events.append(self._known.hellos.add_link(connection, cost, now_s))

    def link_down(self, connection: int, now_s: float) -> None:
        """Forget the control link, which has ended, and its neighbour, unless that is heard over another connection.

        This is advertised at once, not at the next tick: messages take another way as soon as all routers know.
        """
        link = self._known.hellos.remove_link(connection)
        if link is not None and self._known.neighbours.get(link.router) == connection:
            self._known.choose_way(link.router, now_s, "connection lost")
            self._known.advertise_at_once(now_s)

    def set_detour_cost(self, cost: int, now_s: float) -> None:
        """Advertise that each link of this router costs so much more than it does, so that messages between others take
        another way if there is one; 0 ends that.
        """
        self._known.set_detour_cost(cost, now_s)

    def add_address(self, key: str, hint: int) -> None:
        """Note that a local receiver listens on ``key``, to be advertised at the next tick or before."""
        self._known.own.add_address(key, hint)

    def delete_address(self, key: str) -> None:
        """Note that no local receiver listens on ``key`` any longer, to be advertised at the next tick or before."""
        self._known.own.delete_address(key)

    def advertise_addresses(self, now_s: float) -> None:
        """Advertise the changes of our addresses now, between two ticks; at the next tick if they change often.

        Until other routers know that the last receiver has left, they send here what can only be released.
        """
        if self._known.address_news_left > 0 and self._known.advertise_address_changes():
            self._known.address_news_left -= 1
            if self._known.links:
                self._known.advertise_sequences(now_s)

    # --- time

    def tick(self, now_s: float) -> None:
        """Do the work of each second: send hellos and advertisements, forget silent routers."""
        self._known.renew_bounds()
        self._known.requests.renew_allowance()
        self._known.own.renew_allowance()
        self._known.events += self._known.hellos.due_hellos(now_s)
        calm = self._known.is_calm(now_s)
        interval_s = self._known.timers.ra_interval_s if calm else self._known.timers.ra_interval_flux_s
        advertise = now_s - self._known.last_ra_s >= interval_s - HALF_TICK_S
        self._forget_silent_routers(now_s)
        for claim in self._known.strays.due_reports(now_s):
            self._known.report_claim(claim, now_s)
        self._known.compute_ways(now_s)
        if self._known.count_links():
            advertise = True
        self._known.note_updates_under_way(now_s)
        self._known.events += self._known.requests.due_repeats(self._known.paths.next_hop, now_s)
        self._known.events += self._known.requests.due_refreshes(self._known.paths.next_hop, now_s)
        if self._known.advertise_address_changes():
            advertise = True
        self._known.answer_addresses()
        if advertise and self._known.links:
            self._known.advertise_sequences(now_s)

    @property
    def silent_at_s(self) -> float:
        """Time when the first neighbour will have been silent for too long; inf without neighbours."""
        heard_s = [self._known.links[connection].confirmed_s for connection in self._known.neighbours.values()]
        return min(heard_s, default=float("inf")) + self._known.hellos.max_age_s

    def check_silence(self, now_s: float) -> None:
        """Drop neighbours silent for too long, between two ticks, at ``silent_at_s``; advertise that at once."""
        for router in list(self._known.neighbours):
            self._known.choose_way(router, now_s, "no hello")
        self._known.advertise_at_once(now_s)

    def _forget_silent_routers(self, now_s: float) -> None:
        for router in list(self._known.neighbours):
            self._known.choose_way(router, now_s, "no hello")
        listed = set(self._known.neighbours)
        for router, node in self._known.nodes.items():
            if node.peers and now_s - node.heard_s > self._known.timers.remote_ls_max_age_s:
                self._known.nodes.set_neighbours(node, {})
                node.link_sequence, node.answered = 0, False
                self._known.note_changed_links(now_s, f"{shown(router)} is silent", f"{router}:0")
            listed.update(node.peers)
        for router, node in list(self._known.nodes.items()):
            if node.peers or router in listed:
                node.orphan_ticks = 0
                continue
            node.orphan_ticks += 1
            if node.orphan_ticks >= ORPHAN_TICKS:
                self._known.forget_node(node)

    # --- messages

    def take_message(self, data: bytes, connection: int, now_s: float) -> Relay:
        """Process the message ``data`` from the control link of ``connection``; return where to send it on."""
        return self._intake.take_message(data, connection, now_s)

    @property
    def has_pieces(self) -> bool:
        """True if messages about addresses wait for ``do_piece``."""
        return self._intake.has_pieces

    def do_piece(self) -> None:
        """Do a piece of the work on messages about addresses."""
        self._intake.do_piece()
