"""Why messages for an address flow or do not, in the words of each router on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trouter.tools import formats

from .model import Listing, Request, Row, Rows, View, attribute

VERDICT_FIELDS = (
    attribute("address", "address"),
    attribute("treatment", "treatment", needs=True),
    attribute("rule", "rule", needs=True),
    attribute("verdict", "verdict"),
)
END_FIELDS = (
    attribute("link", "link"),
    attribute("connection", "connection"),
    attribute("container", "container", needs=True),
    attribute("credit", "credit"),
    attribute("no credit for", "zeroCreditSeconds", formats.blocked, needs=True, alarm=True),
    attribute("undelivered", "undelivered", alarm=True),
    attribute("unsettled", "unsettled"),
    attribute("stuck", "stuck", needs=True, alarm=True),
)


def _ends(name: str) -> Callable[[Row], Rows]:
    """The links of one kind, out of an explanation."""

    def of(explanation: Row) -> Rows:
        found = explanation.get(name)
        return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list | tuple) else []

    return of


def _explanation(reply: object) -> Rows:
    return [reply] if isinstance(reply, Mapping) else []


def _listings(answers: Sequence[Rows]) -> list[Listing]:
    found = answers[0]
    listings = [Listing("Why", VERDICT_FIELDS, found, upright=True)]
    for title, name in (("\nConsumers", "consumers"), ("\nSenders", "senders")):
        ends = [row for explanation in found for row in _ends(name)(explanation)]
        listings.append(Listing(title, END_FIELDS, ends, empty="", key="link"))
    return listings


def why(address: str) -> View:
    """The view that explains one address."""
    request = Request(operation="EXPLAIN", properties={"address": address}, rows=_explanation)
    return View("why", ("--why",), "say why messages for an address do not flow", (request,), _listings)
