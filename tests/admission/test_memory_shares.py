"""The memory of connections, grouped by user and host (trouter.admission.memory_shares)."""

from __future__ import annotations

from typing import cast

from tests.admission.test_memory import Connected
from trouter.admission.memory_shares import CONNECTION_BYTES, MAX_ROWS, shares
from trouter.net.view import ConnectionView
from trouter.policy.book import SESSION_BYTES


class Remote(Connected):
    """A connection with a host."""

    def describe_connection(self) -> dict[str, object]:
        return {**super().describe_connection(), "host": f"10.0.0.{self.number}"}


def rows_of(by: str, *connections: Remote) -> list[dict[str, object]]:
    return shares(by, cast("list[ConnectionView]", connections))


def test_a_user_takes_the_sum_of_its_connections() -> None:
    small, large, own = Remote(1, "a", 1), Remote(2, "a", 3), Remote(3, "b\x1b", 2)
    first, second = rows_of("user", small, large, own)
    assert first == {
        "user": "a", "vhost": "v", "connections": 2, "sessions": 4, "links": 0, "messages": 0, "kept": 0, "output": 0,
        "bytes": 2 * CONNECTION_BYTES + 4 * SESSION_BYTES,
    }  # fmt: skip
    assert second["user"] == "b\\x1b"
    assert [row["connection"] for row in rows_of("connection", small, large, own)] == ["2", "3", "1"]
    assert [row["connections"] for row in rows_of("vhost", small, large, own)] == [3]


def test_the_largest_have_rows_of_their_own_and_the_others_have_one() -> None:
    connections = [Remote(number, "a", number) for number in range(1, MAX_ROWS + 4)]
    assert "others" not in rows_of("connection", *connections[3:])[-1]
    *rows, others = rows_of("connection", *connections)
    assert [row["connection"] for row in rows] == [str(number) for number in range(MAX_ROWS + 3, 3, -1)]
    assert (others["others"], others["connections"], others["sessions"]) == (3, 3, 1 + 2 + 3)
