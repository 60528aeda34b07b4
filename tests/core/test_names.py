"""The names of routed links at a container, and above an edge router (routing.md 1.7)."""

from __future__ import annotations

from hashlib import sha256

import pytest

from trouter.core.names import LinkNames, with_id


def test_a_name_goes_up_as_it_is_while_no_other_client_has_it() -> None:
    names = LinkNames()
    assert names.take(True, "n", "C", "n", "C") == "n"
    assert names.take(False, "n", "D", "n", "D") == "n", "the other direction has names of its own"
    assert names.take(True, "n", "D", "n", "D") == "n@D"
    names.give_back(True, "n", "C")
    assert names.take(True, "n", "E", "n", "E") == "n"


def test_a_client_that_returns_before_its_loss_is_known_has_its_name_again() -> None:
    names = LinkNames()
    assert [names.take(True, "n", "C", "n", "C") for _ in range(2)] == ["n", "n"]
    names.give_back(True, "n", "C")
    assert names.take(True, "n", "D", "n", "D") == "n@D"
    names.give_back(True, "n", "C")
    names.give_back(True, "n@D", "D")
    assert names.take(True, "n", "D", "n", "D") == "n"


def test_clients_without_an_id_are_told_apart_by_numbers() -> None:
    names = LinkNames()
    assert [names.take(True, "n", number, "n", "") for number in range(4)] == ["n", "n@", "n@@2", "n@@3"]


@pytest.mark.parametrize(("length", "kept"), [(8190, True), (8191, False)])
def test_a_longer_name_becomes_its_digest(length: int, kept: bool) -> None:
    whole = f"{'n' * length}@C"
    assert with_id("n" * length, "C") == (whole if kept else sha256(whole.encode()).hexdigest())
