"""Cached annotations, parsed and composed, are valid as long as their input is the same."""

from __future__ import annotations

from trouter.core.message import AnnotationRewriter
from trouter.wire.annotations import compose_annotations, parse_annotations

HERE = "0/B"


def came(to: str = "there", user: bytes = b"", count: int = 0) -> bytes:
    return compose_annotations(user, count, 0, False, to, "0/A", ("0/A",))


def test_the_same_bytes_are_read_once_wherever_they_stand() -> None:
    rewriter = AnnotationRewriter(HERE, True, True, 0, None)
    section = came()
    first = rewriter.read_section(section, 0, len(section))
    assert rewriter.read_section(b"ab" + section + b"cd", 2, 2 + len(section)) is first
    other = came("elsewhere")
    assert rewriter.read_section(other, 0, len(other)).parsed.to == "elsewhere"
    longer = section + b"\x00"
    assert rewriter.read_section(longer, 0, len(section)).parsed.to == "there"


def test_a_neighbour_s_annotations_are_known_again_after_others_and_only_so_many() -> None:
    rewriter = AnnotationRewriter(HERE, True, True, 0, None)
    rewriter.keeps = True
    first = rewriter.read_section(came(), 0, len(came()))
    sections = [came(f"address-{number}") for number in range(1023)]
    for section in sections:
        rewriter.read_section(section, 0, len(section))
    assert rewriter.read_section(came(), 0, len(came())) is first
    one_more = came("one-more")
    rewriter.read_section(one_more, 0, len(one_more))
    assert rewriter.read_section(came(), 0, len(came())) is not first


def test_long_annotations_are_not_kept() -> None:
    rewriter = AnnotationRewriter(HERE, True, True, 0, None)
    rewriter.keeps = True
    section = came("x" * 600)
    assert rewriter.read_section(section, 0, len(section)) is not rewriter.read_section(section, 0, len(section))


def test_next_routers_get_the_trace_and_receivers_get_the_annotations_of_the_sender() -> None:
    rewriter = AnnotationRewriter(HERE, True, True, 2, None)
    user = b"\xa3\x01k\xa1\x01v"
    section = came(user=user, count=1)
    passage = rewriter.read_section(section, 0, len(section))
    plain = passage.plain_section()
    assert parse_annotations(plain, 0, len(plain), True).user == user
    assert not parse_annotations(plain, 0, len(plain), True).had_router_keys
    for _ in range(2):
        onward = rewriter.onward_section(passage, None, 0)
        parsed = parse_annotations(onward, 0, len(onward), True)
        assert (parsed.to, parsed.ingress, parsed.trace, parsed.phase) == ("there", "0/A", ("0/A", HERE), 2)
        rewritten = rewriter.onward_section(passage, "moved", 5)
        parsed = parse_annotations(rewritten, 0, len(rewritten), True)
        assert (parsed.to, parsed.phase, parsed.user) == ("moved", 5, user)


def test_a_message_without_annotations_begins_its_way_here() -> None:
    rewriter = AnnotationRewriter(HERE, True, True, 0, "override")
    for to, expected in ((None, "override"), ("own", "own"), (None, "override")):
        section = rewriter.onward_section(None, to, 0)
        parsed = parse_annotations(section, 0, len(section), True)
        assert (parsed.to, parsed.ingress, parsed.trace) == (expected, HERE, (HERE,))


def test_an_edge_router_writes_no_ingress_and_its_interior_router_writes_its_own() -> None:
    edge = AnnotationRewriter("0/E", False, True, 0, None)
    assert edge.onward_section(None, None, 0) == b""
    interior = AnnotationRewriter(HERE, True, True, 0, None)
    interior.via_edge = True
    section = came()
    onward = interior.onward_section(interior.read_section(section, 0, len(section)), None, 0)
    assert parse_annotations(onward, 0, len(onward), True).ingress == HERE


def test_the_router_ignores_router_annotations_written_by_a_client() -> None:
    rewriter = AnnotationRewriter(HERE, True, False, 0, None)
    section = came()
    passage = rewriter.read_section(section, 0, len(section))
    assert passage.parsed.to is None
    assert passage.plain_section() == b""
