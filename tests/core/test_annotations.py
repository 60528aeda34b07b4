"""Cached annotations, parsed and composed, are valid as long as their input is the same."""

from __future__ import annotations

from trouter.core.message import AnnotationRewriter, CachedAnnotations
from trouter.wire.annotations import compose_annotations, parse_annotations
from trouter.wire.message import Message
from trouter.wire.sections import THROUGH_ANNOTATIONS, MessageScan

HERE = "0/B"
BODY = Message("x").encode()


def came(to: str = "there", user: bytes = b"", count: int = 0) -> bytes:
    return compose_annotations(user, count, 0, False, to, "0/A", ("0/A",))


def read(rewriter: AnnotationRewriter, section: bytes, before: bytes = b"", after: bytes = b"") -> CachedAnnotations:
    scan = MessageScan()
    data = before + section + BODY + after
    scan.scan_sections(data, len(before), len(data) - len(after), THROUGH_ANNOTATIONS, True)
    return rewriter.read_section(scan, data)


def test_the_same_bytes_are_read_once_wherever_they_stand() -> None:
    rewriter = AnnotationRewriter(HERE, True, True, 0, None)
    section = came()
    first = read(rewriter, section)
    assert read(rewriter, section, before=b"ab", after=b"cd") is first
    other = came("elsewhere")
    assert read(rewriter, other).parsed.to == "elsewhere"
    assert read(rewriter, section, after=b"\x00").parsed.to == "there"


def test_a_neighbour_s_annotations_are_known_again_after_others_and_only_so_many() -> None:
    rewriter = AnnotationRewriter(HERE, True, True, 0, None)
    rewriter.keeps = True
    first = read(rewriter, came())
    sections = [came(f"address-{number}") for number in range(1023)]
    for section in sections:
        read(rewriter, section)
    assert read(rewriter, came()) is first
    one_more = came("one-more")
    read(rewriter, one_more)
    assert read(rewriter, came()) is not first


def test_long_annotations_are_not_kept() -> None:
    rewriter = AnnotationRewriter(HERE, True, True, 0, None)
    rewriter.keeps = True
    section = came("x" * 600)
    assert read(rewriter, section) is not read(rewriter, section)


def test_next_routers_get_the_trace_and_receivers_get_the_annotations_of_the_sender() -> None:
    rewriter = AnnotationRewriter(HERE, True, True, 2, None)
    user = b"\xa3\x01k\xa1\x01v"
    section = came(user=user, count=1)
    passage = read(rewriter, section)
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
    onward = interior.onward_section(read(interior, section), None, 0)
    assert parse_annotations(onward, 0, len(onward), True).ingress == HERE


def test_the_router_ignores_router_annotations_written_by_a_client() -> None:
    rewriter = AnnotationRewriter(HERE, True, False, 0, None)
    section = came()
    passage = read(rewriter, section)
    assert passage.parsed.to is None
    assert passage.plain_section() == b""
