"""The requests of an edge router about its link routes to the router above it, and its use of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from trouter.core.edge.announcing import MAX_REQUESTS, PATIENCE_BEATS, SCOPED, Announcer
from trouter.core.notes import Note


class Above:
    """The router above: the requests that it got, and the log."""

    def __init__(self, *, begun: bool = True) -> None:
        self.asked: list[Note] = []
        self.logged: list[str] = []
        self.announcer = Announcer("E1", self.asked.append, self.logged.append)
        if begun:
            self.announcer.start_requests("answers")

    def answer(self, status: object, body: Any = None, text: object = "", number: object = None) -> None:
        """Answer the last request, or request ``number``."""
        number = self.asked[-1].correlation_id if number is None else number
        reason = {"statusCode": status, "statusDescription": text}
        self.announcer.read_response(Note(body, correlation_id=number, properties=reason))

    def create(self, key: str = "Cbroker", identity: str = "7") -> None:
        self.announcer.announce_route(key)
        self.answer(201, {"identity": identity})

    def wait(self) -> None:
        """Wait until the edge router waits for no answer."""
        for _ in range(PATIENCE_BEATS + 1):
            self.announcer.give_up_overdue()

    def operations(self) -> list[object]:
        return [note.properties["operation"] for note in self.asked]


@pytest.mark.parametrize(
    ("key", "pattern", "direction"),
    [("Cb", "b/#", "in"), ("Db.c", "b.c/#", "out"), ("Ea.*.b.#", "a.*.b.#", "in"), ("F#", "#", "out")],
)
def test_a_route_is_requested_like_qpid_dispatch_requests_routes(key: str, pattern: str, direction: str) -> None:
    above = Above()
    above.announcer.announce_route(key)
    (note,) = above.asked
    name = f"E1/proxyLinkRoute/{key}"
    assert note.body == {"type": SCOPED, "pattern": pattern, "direction": direction, "name": name}
    assert note.properties == {"operation": "CREATE", "type": SCOPED, "name": name}
    assert note.reply_to == "answers"
    above.answer(201, {"identity": "above/7"})
    above.announcer.withdraw_route(key)
    note = above.asked[-1]
    assert (note.body, note.reply_to) == ({}, "answers")
    assert note.properties == {"operation": "DELETE", "type": SCOPED, "identity": "above/7", "name": name}
    above.answer(204)
    assert above.logged == []
    assert len({note.correlation_id for note in above.asked}) == 2


def test_no_request_is_sent_before_answers_can_arrive() -> None:
    above = Above(begun=False)
    above.announcer.announce_route("Ca")
    above.announcer.announce_route("Cb")
    above.announcer.withdraw_route("Cb")
    assert above.asked == []
    above.announcer.start_requests("answers")
    assert [note.properties["name"] for note in above.asked] == ["E1/proxyLinkRoute/Ca"]


def test_one_change_after_the_other() -> None:
    above = Above()
    above.announcer.announce_route("Ca")
    above.announcer.withdraw_route("Ca")
    above.announcer.announce_route("Ca")
    above.announcer.withdraw_route("Ca")
    assert above.operations() == ["CREATE"]
    above.answer(201, {"identity": "7"})
    assert above.operations() == ["CREATE", "DELETE"]
    above.announcer.announce_route("Ca")
    above.answer(204)
    assert above.operations() == ["CREATE", "DELETE", "CREATE"]


@pytest.mark.parametrize("status", [204, 404])
def test_a_link_route_removed_while_its_create_is_pending_is_deleted(status: int) -> None:
    above = Above()
    above.create()
    above.announcer.withdraw_route("Cbroker")
    above.answer(status)
    assert above.logged == []
    above.create()
    assert above.operations() == ["CREATE", "DELETE", "CREATE"]


@pytest.mark.attack
@pytest.mark.parametrize("status", [[204], {}])
def test_a_status_of_another_type_ends_no_uplink(status: object) -> None:
    above = Above()
    above.create()
    above.announcer.withdraw_route("Cbroker")
    above.answer(status, text="Gone")
    assert above.logged == [f"link route broker is not known to the interior router: {status} Gone"]


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (403, {}, "403 Forbidden"),
        (400, None, "400 Forbidden"),
        (201, {}, "201 Forbidden"),
        (201, {"identity": ""}, "201 Forbidden"),
        (201, {"identity": 7}, "201 Forbidden"),
        (201, "yes", "201 Forbidden"),
        (None, {"identity": "7"}, "None Forbidden"),
        ("201", {"identity": "7"}, "201 Forbidden"),
    ],
)
def test_a_refused_link_route_is_reported_once_and_not_requested_again(status: object, body: Any, reason: str) -> None:
    above = Above()
    above.announcer.announce_route("Cbroker")
    above.answer(status, body, "Forbidden")
    assert above.logged == [f"link route broker is not known to the interior router: {reason}"]
    above.wait()
    assert above.operations() == ["CREATE"]
    above.announcer.withdraw_route("Cbroker")  # it does not exist
    assert above.operations() == ["CREATE"]
    above.announcer.announce_route("Cbroker")  # for another container that connected
    assert above.operations() == ["CREATE", "CREATE"]


def test_the_error_text_of_the_interior_router_is_cut_short() -> None:
    above = Above()
    above.announcer.announce_route("Cbroker")
    above.answer("x" * 5000, None, "y" * 5000)
    (line,) = above.logged
    assert len(line) < 400


@pytest.mark.parametrize("number", ["99", 1, None, b"1", ["1"]])
def test_an_answer_to_an_unknown_request_is_ignored(number: object) -> None:
    above = Above()
    above.announcer.announce_route("Cbroker")
    above.announcer.read_response(Note({"identity": "7"}, correlation_id=number, properties={"statusCode": 201}))
    assert above.logged == []
    above.answer(201, {"identity": "7"})
    above.answer(403)  # a second answer
    assert above.logged == []


def test_a_lost_answer_is_not_waited_for() -> None:
    above = Above()
    above.announcer.announce_route("Cbroker")
    for _ in range(PATIENCE_BEATS):
        above.announcer.give_up_overdue()
    assert above.logged == []
    above.announcer.give_up_overdue()
    assert above.logged == ["link route broker is not known to the interior router: no answer"]
    above.announcer.withdraw_route("Cbroker")  # it may exist, by a name that the edge router knows
    assert above.operations() == ["CREATE", "DELETE"]
    assert "identity" not in above.asked[-1].properties
    above.wait()
    assert len(above.logged) == 2
    above.create()
    assert above.operations() == ["CREATE", "DELETE", "CREATE"]


def test_requests_under_way_are_bounded_and_lost_answers_hold_up_no_route() -> None:
    above = Above()
    for number in range(MAX_REQUESTS + 3):
        above.announcer.announce_route(f"Croute{number}")
    assert len(above.asked) == MAX_REQUESTS
    above.answer(201, {"identity": "7"}, number=above.asked[0].correlation_id)
    assert len(above.asked) == MAX_REQUESTS + 1
    above.wait()
    assert len(above.asked) == MAX_REQUESTS + 3
    assert len(above.logged) == MAX_REQUESTS
