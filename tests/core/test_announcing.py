"""What an edge router asks of the router above it about its link routes, and what it makes of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from trouter.core.edge.announcing import MAX_REQUESTS, PATIENCE_BEATS, SCOPED, Announcer
from trouter.core.notes import Note


class Above:
    """The other side: what it was asked, and what was told of it."""

    def __init__(self, *, begun: bool = True) -> None:
        self.asked: list[Note] = []
        self.told: list[str] = []
        self.announcer = Announcer("E1", self.asked.append, self.told.append)
        if begun:
            self.announcer.begin("answers")

    def answer(self, status: object, body: Any = None, text: object = "", number: object = None) -> None:
        """To the request that was asked last, or to ``number``."""
        number = self.asked[-1].correlation_id if number is None else number
        said = {"statusCode": status, "statusDescription": text}
        self.announcer.take(Note(body, correlation_id=number, properties=said))

    def create(self, key: str = "Cbroker", identity: str = "7") -> None:
        self.announcer.add(key)
        self.answer(201, {"identity": identity})

    def wait(self) -> None:
        """Until no router waits for an answer any more."""
        for _ in range(PATIENCE_BEATS + 1):
            self.announcer.beat()

    def operations(self) -> list[object]:
        return [note.properties["operation"] for note in self.asked]


@pytest.mark.parametrize(
    ("key", "pattern", "direction"),
    [("Cb", "b/#", "in"), ("Db.c", "b.c/#", "out"), ("Ea.*.b.#", "a.*.b.#", "in"), ("F#", "#", "out")],
)
def test_a_route_is_requested_like_the_older_router_requests_routes(key: str, pattern: str, direction: str) -> None:
    above = Above()
    above.announcer.add(key)
    (note,) = above.asked
    name = f"E1/proxyLinkRoute/{key}"
    assert note.body == {"type": SCOPED, "pattern": pattern, "direction": direction, "name": name}
    assert note.properties == {"operation": "CREATE", "type": SCOPED, "name": name}
    assert note.reply_to == "answers"
    above.answer(201, {"identity": "above/7"})
    above.announcer.remove(key)
    note = above.asked[-1]
    assert (note.body, note.reply_to) == ({}, "answers")
    assert note.properties == {"operation": "DELETE", "type": SCOPED, "identity": "above/7", "name": name}
    above.answer(204)
    assert above.told == []
    assert len({note.correlation_id for note in above.asked}) == 2


def test_no_request_is_sent_before_answers_can_arrive() -> None:
    above = Above(begun=False)
    above.announcer.add("Ca")
    above.announcer.add("Cb")
    above.announcer.remove("Cb")
    assert above.asked == []
    above.announcer.begin("answers")
    assert [note.properties["name"] for note in above.asked] == ["E1/proxyLinkRoute/Ca"]


def test_one_change_after_the_other() -> None:
    above = Above()
    above.announcer.add("Ca")
    above.announcer.remove("Ca")
    above.announcer.add("Ca")
    above.announcer.remove("Ca")
    assert above.operations() == ["CREATE"]
    above.answer(201, {"identity": "7"})
    assert above.operations() == ["CREATE", "DELETE"]
    above.announcer.add("Ca")
    above.answer(204)
    assert above.operations() == ["CREATE", "DELETE", "CREATE"]


@pytest.mark.parametrize("status", [204, 404])
def test_a_link_route_removed_while_its_create_is_pending_is_deleted(status: int) -> None:
    above = Above()
    above.create()
    above.announcer.remove("Cbroker")
    above.answer(status)
    assert above.told == []
    above.create()
    assert above.operations() == ["CREATE", "DELETE", "CREATE"]


@pytest.mark.parametrize(
    ("status", "body", "said"),
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
def test_a_refused_link_route_is_reported_once_and_not_requested_again(status: object, body: Any, said: str) -> None:
    above = Above()
    above.announcer.add("Cbroker")
    above.answer(status, body, "Forbidden")
    assert above.told == [f"link route broker is not known to the interior router: {said}"]
    above.wait()
    assert above.operations() == ["CREATE"]
    above.announcer.remove("Cbroker")  # it is not there
    assert above.operations() == ["CREATE"]
    above.announcer.add("Cbroker")  # for another container that came
    assert above.operations() == ["CREATE", "CREATE"]


def test_the_error_text_of_the_interior_router_is_cut_short() -> None:
    above = Above()
    above.announcer.add("Cbroker")
    above.answer("x" * 5000, None, "y" * 5000)
    (line,) = above.told
    assert len(line) < 400


@pytest.mark.parametrize("number", ["99", 1, None, b"1", ["1"]])
def test_an_answer_to_an_unknown_request_is_ignored(number: object) -> None:
    above = Above()
    above.announcer.add("Cbroker")
    above.announcer.take(Note({"identity": "7"}, correlation_id=number, properties={"statusCode": 201}))
    assert above.told == []
    above.answer(201, {"identity": "7"})
    above.answer(403)  # a second answer
    assert above.told == []


def test_a_lost_answer_is_not_waited_for() -> None:
    above = Above()
    above.announcer.add("Cbroker")
    for _ in range(PATIENCE_BEATS):
        above.announcer.beat()
    assert above.told == []
    above.announcer.beat()
    assert above.told == ["link route broker is not known to the interior router: no answer"]
    above.announcer.remove("Cbroker")  # it may be there, by a name that we know
    assert above.operations() == ["CREATE", "DELETE"]
    assert "identity" not in above.asked[-1].properties
    above.wait()
    assert len(above.told) == 2
    above.create()
    assert above.operations() == ["CREATE", "DELETE", "CREATE"]


def test_requests_under_way_are_bounded_and_lost_answers_hold_up_no_route() -> None:
    above = Above()
    for number in range(MAX_REQUESTS + 3):
        above.announcer.add(f"Croute{number}")
    assert len(above.asked) == MAX_REQUESTS
    above.answer(201, {"identity": "7"}, number=above.asked[0].correlation_id)
    assert len(above.asked) == MAX_REQUESTS + 1
    above.wait()
    assert len(above.asked) == MAX_REQUESTS + 3
    assert len(above.told) == MAX_REQUESTS
