"""Any bytes are annotations or raise InvalidAnnotation; parsed annotations that are composed again keep each value.

The sender's entries are the same whether or not the parser honours the routers' entries.

Allowed: InvalidAnnotation from parse_annotations, because most bytes are no annotations. Not allowed: EncodeError,
because parsed annotations can be encoded.
"""

from __future__ import annotations

from trouter.testing.fuzz import values as typed_values
from trouter.wire.annotations import InvalidAnnotation, RouterAnnotations, compose_annotations, parse_annotations

MUTATOR = typed_values
COVERS = ("trouter.wire.annotations",)


def values(found: RouterAnnotations) -> tuple[object, ...]:
    return (found.phase, found.stream, found.to, found.ingress, found.trace, found.user, found.user_count)


def compose(found: RouterAnnotations) -> bytes:
    return compose_annotations(
        found.user, found.user_count, found.phase, found.stream, found.to, found.ingress, found.trace
    )


def check_text(text: str) -> None:
    """Check the text that the router sends to the sender as the description of the rejection."""
    assert text.isprintable()
    assert len(text) < 200


def check(data: bytes) -> None:
    try:
        bare = parse_annotations(data, 0, len(data), False)
    except InvalidAnnotation as error:
        check_text(str(error))
        bare = None
    try:
        found = parse_annotations(data, 0, len(data), True)
    except InvalidAnnotation as error:
        check_text(str(error))
        return
    assert bare is not None
    assert values(bare) == (0, False, None, None, (), found.user, found.user_count)
    assert found.user in data or found.had_router_keys
    composed = compose(found)
    if composed:
        again = parse_annotations(composed, 0, len(composed), True)
        assert values(again) == values(found)
        assert compose(again) == composed
    kept = compose(bare)
    if kept:
        assert not parse_annotations(kept, 0, len(kept), True).had_router_keys
