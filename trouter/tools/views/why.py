"""The view `--why`: why messages for an address flow or do not, as each router sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trouter.tools import formats

from .model import Listing, Row, Rows, View, ViewField, ViewRequest, attribute


def _or_none(name: str) -> ViewField:
    """Return a line that is shown only if it has a value."""
    return ViewField(name, lambda row: row.get(name) or None, needs=name)


ADDRESS_FIELDS = (
    attribute("verdict", "verdict"),
    attribute("address", "address"),
    _or_none("key"),
    _or_none("rule"),
    _or_none("treatment"),
    _or_none("fallback"),
    attribute("consumers", "consumerCount", formats.commas, needs=True),
    attribute("inside the router", "inProcess", formats.commas, needs=True),
    attribute("senders", "senderCount", formats.commas, needs=True),
)
LINK_FIELDS = (
    attribute("id", "link"),
    attribute("conn id", "connection"),
    attribute("container", "container"),
    attribute("name", "name", detail=True),
    attribute("cred", "credit"),
    attribute("blkd", "zeroCreditSeconds", formats.blocked, alarm=True),
    attribute("undel", "undelivered"),
    attribute("unsett", "unsettled"),
    attribute("stuck", "stuck", alarm=True),
    attribute("rate", "settleRate"),
    attribute("waits for", "waitsFor", alarm=True),
    attribute("worker", "worker", needs=True),
)


def _explanation(reply: object) -> Rows:
    """Return the reply to EXPLAIN."""
    return [reply] if isinstance(reply, Mapping) else []


def _ends(explanation: Row, name: str) -> list[Row]:
    """Return the links of one direction, the busiest if they are many."""
    found = explanation.get(name)
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list | tuple) else []


def _listings(answers: Sequence[Rows]) -> list[Listing]:
    found = answers[0]
    listings = [Listing("Why", ADDRESS_FIELDS, found, upright=True, table="explanation")]
    for title, name in (("\nConsumers", "consumers"), ("\nSenders", "senders")):
        links = [row for explanation in found for row in _ends(explanation, name)]
        listings.append(Listing(title, LINK_FIELDS, links, empty="", key="link"))
    return listings


def why(address: str) -> View:
    """Return the view that explains one address."""
    request = ViewRequest(operation="EXPLAIN", properties={"address": address}, rows=_explanation)
    return View("why", ("--why",), "say why messages for an address do not flow", (request,), _listings)
