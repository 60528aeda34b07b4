"""Names that docs/glossary.md replaced do not come back."""

from __future__ import annotations

import re

import pytest

from .sources import PACKAGE, ROOT, named, names_in, tracked_files

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
#: Names of reports, log lines and answers that leave open which. `tell` is a method of files.
VAGUE = re.compile(r"(?!tell$)_*((un|all_|max_)?(told|tells?|telling|said|hear|hearing)|(UN)?TOLD)(_\w+)?")
#: Words that name no peer, user or operator.
NO_SUBJECT = re.compile(r"\b(nobody|somebody|whoever|of whom)\b", re.IGNORECASE)
SOURCES = [path for path in tracked_files() if path.suffix == ".py"]
PRODUCT = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in {"trouter", "plugins"}]
PAGES = [path for path in tracked_files() if path.suffix == ".md" and path.name != "CHANGELOG.md"]


def test_a_file_uses_the_names_of_the_glossary() -> None:
    found = {named(path): names_in(path, OLD_NAMES) for path in SOURCES}
    assert {name: {old: REPLACED[old] for old in names} for name, names in found.items() if names} == {}


@pytest.mark.parametrize(("rooms", "names", "keywords"), [(ROOMS, NAMES, set()), (OWN_ROOMS, OWN_NAMES, KEYWORDS)])
def test_a_room_calls_things_by_their_names(rooms: tuple[str, ...], names: re.Pattern[str], keywords: set[str]) -> None:
    sources = {path: path.relative_to(PACKAGE).parts[0] for path in PRODUCT if path.is_relative_to(PACKAGE)}
    assert {*rooms} <= {*sources.values()}
    found = {named(path): names_in(path, names) - keywords for path, room in sources.items() if room in rooms}
    assert {name: old for name, old in found.items() if old} == {}


def test_the_product_has_no_vague_names() -> None:
    found = {named(path): names_in(path, VAGUE) for path in PRODUCT}
    assert {name: vague for name, vague in found.items() if vague} == {}


def test_sentences_name_their_subjects() -> None:
    found = {named(path): NO_SUBJECT.findall(path.read_text(encoding="utf-8")) for path in [*PRODUCT, *PAGES]}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_pattern_of_names_finds_replaced_names() -> None:
    assert all(NAMES.fullmatch(name) for name in ("Record", "_tell_users", "ask", "most", "_MOST_ORIGINS"))
    assert all(OWN_NAMES.fullmatch(name) for name in ("Hold", "_tell_end", "tell", "MOST"))
    assert all(VAGUE.fullmatch(name) for name in ("told", "_untold", "tell_users", "all_told", "TOLD", "said"))
    assert not any(VAGUE.fullmatch(name) for name in ("heard", "hearth", "satellite", "reported"))
    assert not any(OWN_NAMES.fullmatch(name) for name in ("Holders", "told", "teller"))
    assert not any(NAMES.fullmatch(name) for name in ("Recorder", "asked", "almost", "teller"))
