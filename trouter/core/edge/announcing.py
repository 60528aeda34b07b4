"""Announce an edge router's link routes to its interior router (inter-router.md 6.9).

There they are routes of the connection, created and deleted by management requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final

from trouter.core.notes import Note

#: The type of the entities created there.
SCOPED: Final = "org.apache.qpid.dispatch.router.connection.linkRoute"
#: Requests that may wait for their answers, and for how many heartbeats: at least ten seconds.
MAX_REQUESTS: Final = 50
PATIENCE_BEATS: Final = 5
CREATED: Final = 201
DELETED: Final = (204, 404)
#: The direction of a route by the first letter of its key.
_DIRECTION: Final = {"C": "in", "E": "in", "D": "out", "F": "out"}
_PREFIXES: Final = "CD"


@dataclass(slots=True)
class _Route:
    """One route: whether it exists here, and its state on the other side."""

    wanted: bool = True
    #: It was created there, or may have been; and its identity there, "" until that is known.
    there: bool = False
    identity: str = ""
    #: It was refused there or not answered, and is not requested again.
    refused: bool = False
    requested: bool = False


class Announcer:
    """Announces routes, one change at a time for each, until the other side has the routes of this router."""

    def __init__(self, edge_id: str, send: Callable[[Note], None], notify: Callable[[str], None]) -> None:
        """Make an announcer; ``send`` sends a request, ``notify`` gets the text of each refusal."""
        self._edge_id = edge_id
        self._send = send
        self._notify = notify
        #: The address for answers; no request is sent while it is empty.
        self._reply_to = ""
        self._routes: dict[str, _Route] = {}
        #: By correlation id, in order: the key of the request, and the heartbeat when it was sent.
        self._requested: dict[str, tuple[str, int]] = {}
        self._numbers = count(1)
        self._beats = 0

    def start_requests(self, reply_to: str) -> None:
        """Start to send requests, with answers to the address ``reply_to``."""
        self._reply_to = reply_to
        self._send_due_requests()

    def announce_route(self, key: str) -> None:
        """Announce the route with this key, which a container here serves."""
        route = self._routes.setdefault(key, _Route())
        route.wanted, route.refused = True, False
        self._send_due_requests()

    def withdraw_route(self, key: str) -> None:
        """Withdraw the route with this key, which no container here serves any more."""
        if key in self._routes:
            self._routes[key].wanted = False
            self._send_due_requests()

    def _send_due_requests(self) -> None:
        if not self._reply_to:
            return
        for key, route in list(self._routes.items()):
            if len(self._requested) >= MAX_REQUESTS:
                return
            if route.requested:
                continue
            if route.wanted and not (route.there or route.refused):
                self._send_request(key, self._creation(key), {"operation": "CREATE", "type": SCOPED})
            elif not route.wanted and route.there:
                named = {"identity": route.identity} if route.identity else {}
                self._send_request(key, {}, {"operation": "DELETE", "type": SCOPED, **named})
            elif not route.wanted:
                del self._routes[key]

    def _creation(self, key: str) -> dict[str, str]:
        pattern = f"{key[1:]}/#" if key[0] in _PREFIXES else key[1:]
        return {"type": SCOPED, "pattern": pattern, "direction": _DIRECTION[key[0]], "name": self._name(key)}

    def _name(self, key: str) -> str:
        return f"{self._edge_id}/proxyLinkRoute/{key}"

    def _send_request(self, key: str, body: dict[str, str], properties: dict[str, str]) -> None:
        number = str(next(self._numbers))
        self._routes[key].requested = True
        self._requested[number] = (key, self._beats)
        properties["name"] = self._name(key)
        self._send(Note(body, reply_to=self._reply_to, correlation_id=number, properties=properties))

    def give_up_overdue(self) -> None:
        """Give up requests without an answer for too long; called every two seconds."""
        self._beats += 1
        late = [number for number, (_, beat) in self._requested.items() if self._beats - beat > PATIENCE_BEATS]
        for number in late:
            self._process_answer(number, None)

    def read_response(self, reply: Note) -> None:
        """Process an answer; ignore one that belongs to no request."""
        number = reply.correlation_id
        if isinstance(number, str) and number in self._requested:
            self._process_answer(number, reply)

    def _process_answer(self, number: str, reply: Note | None) -> None:
        """Process the answer to a request, None for no answer in time."""
        key, _ = self._requested.pop(number)
        route = self._routes[key]
        route.requested = False
        status = None if reply is None else reply.properties.get("statusCode")
        if route.there:
            route.there, route.identity = False, ""
            if status not in DELETED:
                self._log_refusal(key, reply)
        else:
            identity = reply.body.get("identity") if reply is not None and isinstance(reply.body, dict) else None
            if status == CREATED and isinstance(identity, str) and identity:
                route.there, route.identity = True, identity
            else:
                route.there, route.refused = reply is None, True
                self._log_refusal(key, reply)
        self._send_due_requests()

    def _log_refusal(self, key: str, reply: Note | None) -> None:
        why = "no answer"
        if reply is not None:
            status, text = reply.properties.get("statusCode"), reply.properties.get("statusDescription")
            why = f"{status!s:.10} {text!s:.200}"
        self._notify(f"link route {key[1:]} is not known to the interior router: {why}")
