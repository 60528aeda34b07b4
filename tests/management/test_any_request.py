"""Each request gets one answer with a status of the table, and none is an internal error."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.management.still import serve
from trouter.config.types import TYPES
from trouter.management.operations import ENTITY_OPERATIONS, NODE_OPERATIONS
from trouter.management.status import INTERNAL_ERROR, REASONS
from trouter.wire.types import Int, Symbol, UInt, ULong

OPERATIONS = sorted({*NODE_OPERATIONS, *ENTITY_OPERATIONS, "CREATE", "QUERY", "REGISTER"})
NAMES = ["self", "log/AGENT", "router/R1", "R1", "1", "2", "policy/None", "M0$management", "dummy/0", "nobody", ""]
ATTRIBUTES = sorted({row.name for kind in TYPES for row in kind.attributes} | {"attributeNames", "colour"})
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1).map(Int),
    st.integers(0, 10).map(UInt),
    st.integers(0, 2**64 - 1).map(ULong),
    st.text(max_size=20),
    st.sampled_from(["yes", "0", "-1", "normal", "in", "multicast", *NAMES]),
    st.binary(max_size=5),
    st.floats(),
    st.from_regex(r"[ -~]{0,10}", fullmatch=True).map(Symbol),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
BODIES = VALUES | st.dictionaries(st.sampled_from(ATTRIBUTES), VALUES, max_size=5)
TYPE_NAMES = st.sampled_from([*(kind.short for kind in TYPES), *(kind.full_name for kind in TYPES), "nonsense"])
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPE_NAMES | SCALARS,
        "entityType": TYPE_NAMES | SCALARS,
        "name": st.sampled_from(NAMES) | SCALARS,
        "identity": st.sampled_from(NAMES) | SCALARS,
        "offset": SCALARS,
        "count": SCALARS,
        "limit": SCALARS,
        "address": st.sampled_from(NAMES) | SCALARS,
        "module": SCALARS,
    },
)
REQUESTS = st.tuples(st.sampled_from(OPERATIONS) | st.text(max_size=10), PROPERTIES, BODIES)


@given(st.lists(REQUESTS, max_size=10))
def test_any_request_is_answered(requests: list[tuple[str, dict[str, Any], Any]]) -> None:
    async def ask_all() -> None:
        async with trio.open_nursery() as nursery:
            asker = await serve(nursery)
            for operation, properties, body in requests:
                status, text, _ = await asker.ask(operation, body, **properties)
                assert status in REASONS
                assert status != INTERNAL_ERROR, text
            assert (await asker.ask("GET-MGMT-NODES"))[0] == 200
            nursery.cancel_scope.cancel()

    trio.run(ask_all)
