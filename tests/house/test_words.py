"""Names that docs/glossary.md replaced do not come back."""

from __future__ import annotations

import re

import pytest

from .sources import named, names_in, tracked_files

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
OLD_NAMES = re.compile("|".join(REPLACED))
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


def test_a_file_uses_the_names_of_the_glossary() -> None:
    found = {named(path): names_in(path, OLD_NAMES) for path in SOURCES}
    assert {name: {old: REPLACED[old] for old in names} for name, names in found.items() if names} == {}


@pytest.mark.parametrize(("rooms", "names", "keywords"), [(ROOMS, NAMES, set()), (OWN_ROOMS, OWN_NAMES, KEYWORDS)])
def test_a_room_calls_things_by_their_names(rooms: tuple[str, ...], names: re.Pattern[str], keywords: set[str]) -> None:
    sources = [path for path in SOURCES if path.parts[-2] in rooms and path.parts[-3] == "trouter"]
    assert {path.parts[-2] for path in sources} == {*rooms}
    found = {named(path): names_in(path, names) - keywords for path in sources}
    assert {name: old for name, old in found.items() if old} == {}


def test_the_pattern_of_names_finds_replaced_names() -> None:
    assert all(NAMES.fullmatch(name) for name in ("Record", "_tell_users", "ask", "most", "_MOST_ORIGINS"))
    assert all(OWN_NAMES.fullmatch(name) for name in ("Hold", "_tell_end", "tell", "MOST"))
    assert not any(OWN_NAMES.fullmatch(name) for name in ("Holders", "told", "teller"))
    assert not any(NAMES.fullmatch(name) for name in ("Recorder", "asked", "almost", "teller"))
