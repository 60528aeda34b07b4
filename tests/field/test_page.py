"""The page of clients: it comes from a whole run, and the manual's has every client and thing."""

from __future__ import annotations

from itertools import product

import pytest

from tests.field.page import COLUMNS, FAILED, PAGE, PASSED, NotWholeError, cell, page
from tests.field.programs import CLIENTS
from tests.field.scene import WAYS
from tests.field.things import RECONNECT

WHOLE = dict.fromkeys(product(CLIENTS, COLUMNS, WAYS), PASSED)
HEAD = f"| client | version | {' | '.join(COLUMNS)} |"


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of the table of clients, by client."""
    lines = text.splitlines()
    found: dict[str, list[str]] = {}
    for line in lines[lines.index(HEAD) + 2 :]:
        if not line:
            break
        name, *cells = line.strip("| ").split(" | ")
        found[name] = cells
    return found


def test_the_manuals_page_has_every_client_and_thing() -> None:
    found = rows(PAGE.read_text(encoding="utf-8"))
    assert list(found) == list(CLIENTS)
    for name, cells in found.items():
        assert len(cells) == len(COLUMNS) + 1
        assert all(each in {"yes", "-"} or each.startswith("no: ") for each in cells[1:])
        for thing, shown in zip(COLUMNS, cells[1:], strict=True):
            assert (shown == "-") == bool(CLIENTS[name].lacks.get(thing))


def test_a_cell_names_the_ways_that_failed() -> None:
    rhea = CLIENTS["rhea"]
    assert cell(rhea, "browse", WHOLE) == "yes"
    failed = {("rhea", "browse", "one router"): FAILED, ("rhea", "browse", "an edge"): FAILED}
    assert cell(rhea, "browse", {**WHOLE, **failed}) == "no: one router, an edge"
    assert cell(CLIENTS["@azure/service-bus"], "request", {}) == "-"


@pytest.mark.parametrize("missing", [("rhea", "browse", "an edge"), ("amqp10", RECONNECT, "one router")])
def test_a_run_that_is_not_whole_makes_no_page(missing: tuple[str, str, str]) -> None:
    for results in ({**WHOLE, missing: "skipped"}, {key: WHOLE[key] for key in WHOLE if key != missing}):
        with pytest.raises(NotWholeError, match=f"{missing[0]}, {missing[1]}"):
            page(results, "today", "here")


def test_a_whole_run_makes_a_page_of_it() -> None:
    found = rows(page(WHOLE, "today", "here"))
    assert list(found) == list(CLIENTS)
    assert found["rhea"][1:] == ["yes"] * len(COLUMNS)
