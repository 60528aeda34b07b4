"""Names that docs/glossary.md replaced do not come back."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

import pytest

from .sources import ROOT, tracked_files

#: The name that was, and the one that is.
REPLACED = {
    "Applicant": "OpenRequest",
    "Ground": "SecurityLayer",
    "Marker": "AnnotationRewriter",
    "Orders": "Sanctions",
    "Parting": "DetachReason",
    "Passage": "CachedAnnotations",
    "Place": "Endpoint, SourcePosition, SegmentPosition, RowPosition",
    "Places": "FailoverList",
    "Witness": "RouterObserver",
    "most_credit": "max_credit",
    "most_links": "max_links",
    "tell_sender": "notify_sender",
    "told_window": "advertised_window",
}
#: The rooms below the router's own, in which these are refused too: an address is no record, and calls have the field's
#: names.
ROOMS = ("core", "engine", "hooks", "mesh")
#: The router's own rooms, in which a call that writes a line or a record says so, and a bound is a maximum.
OWN_ROOMS = ("admission", "app", "auth", "backbone", "connections", "net", "telemetry", "tls")
OWN_NAMES = re.compile(r"Ear|Entrance|Held|Hold|Holder|OutgoingPeer|_*(tell|most)(_\w+)?|_*MOST(_\w+)?")
#: A keyword of the room of records.
KEYWORDS = {"most"}
NAMES = re.compile(r"Record|Ear|_*(tell|hear|ask|most)(_\w+)?|_*MOST(_\w+)?")
SOURCES = [path for path in tracked_files() if path.suffix == ".py"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_uses_the_names_of_the_glossary(path: Path) -> None:
    with tokenize.open(path) as source:
        names = {token.string for token in tokenize.generate_tokens(source.readline) if token.type == tokenize.NAME}
    assert {old: new for old, new in REPLACED.items() if old in names} == {}


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if path.parts[-2] in ROOMS and path.parts[-3] == "trouter"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_room_below_the_router_calls_things_by_their_names(path: Path) -> None:
    with tokenize.open(path) as source:
        names = {token.string for token in tokenize.generate_tokens(source.readline) if token.type == tokenize.NAME}
    assert {name for name in names if NAMES.fullmatch(name)} == set()


@pytest.mark.parametrize(
    "path",
    [path for path in SOURCES if path.parts[-2] in OWN_ROOMS and path.parts[-3] == "trouter"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_room_of_the_router_calls_things_by_their_names(path: Path) -> None:
    with tokenize.open(path) as source:
        names = {token.string for token in tokenize.generate_tokens(source.readline) if token.type == tokenize.NAME}
    assert {name for name in names if OWN_NAMES.fullmatch(name)} - KEYWORDS == set()


def test_the_pattern_of_names_finds_the_old_ones() -> None:
    assert all(NAMES.fullmatch(name) for name in ("Record", "_tell_users", "ask", "most", "_MOST_ORIGINS"))
    assert all(OWN_NAMES.fullmatch(name) for name in ("Hold", "_tell_end", "tell", "MOST"))
    assert not any(OWN_NAMES.fullmatch(name) for name in ("Holders", "told", "teller"))
    assert not any(NAMES.fullmatch(name) for name in ("Recorder", "asked", "almost", "teller"))
