"""The types are those of Qpid Dispatch, attribute by attribute; intended differences are in a list."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trouter.config import TYPES, Attribute, Configuration, EntityType, type_named
from trouter.config.configuration import HOLDS, entities_of
from trouter.config.entities import LOG_MODULES, Entity, LogEntity, RouterEntity
from trouter.config.schema import IDENTITY, NAME, TYPE
from trouter.config.types import CONFIGURED
from trouter.management.kinds import CORE_COLUMNS

FACTS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "types.json").read_text(encoding="utf-8"))
BY_TYPE = {fact["type"]: fact for fact in FACTS}
ATTRIBUTES = [(fact["type"], attribute) for fact in FACTS[1:] for attribute in fact["attributes"]]

#: Intended differences: (type, attribute, field) -> (older, trouter). The schema omits defaults of 0, no or "".
DIFFERENCES: dict[tuple[str, str, str], tuple[object, object]] = {
    # A plugin writes records as lines of this log module.
    ("log", "module", "type"): (
        [module for module in LOG_MODULES if module != "AUDIT"],
        list(LOG_MODULES),
    ),
    # Its rows have this value, too.
    ("router.link", "linkType", "type"): (
        ["endpoint", "router-control", "inter-router"],
        ["endpoint", "router-control", "inter-router", "edge-downlink"],
    ),
    # A group without users or hosts is valid, and admits no connection.
    ("vhostUserGroupSettings", "users", "required"): (True, False),
    ("vhostUserGroupSettings", "remoteHosts", "required"): (True, False),
}


def ours(short: str, name: str) -> Attribute:
    kind = type_named(short)
    assert kind is not None
    attribute = kind.attribute(name)
    assert attribute is not None, f"{short} has no {name}"
    return attribute


def kind_of(short: str) -> EntityType:
    kind = type_named(short)
    assert kind is not None
    return kind


def test_the_types_stand_in_the_order_of_qpid_dispatch() -> None:
    assert [kind.short for kind in TYPES if not kind.extra] == [fact["type"] for fact in FACTS]
    assert len(FACTS) == 29


def test_new_types_follow_the_types_of_qpid_dispatch() -> None:
    assert [kind.extra for kind in TYPES] == sorted(kind.extra for kind in TYPES)


@pytest.mark.parametrize("fact", FACTS, ids=BY_TYPE)
def test_a_type_equals_the_type_of_qpid_dispatch(fact: dict[str, Any]) -> None:
    kind = kind_of(fact["type"])
    flags = [name for name in ("singleton", "deprecated", "referenced") if getattr(kind, name)]
    assert (kind.key, list(kind.bases), flags) == (fact["key"], fact["bases"], fact["flags"])
    assert list(kind.operations) == fact["operations"]
    assert [*kind.operations, *kind.inherited] == fact["effective"]
    assert kind.sections == (("dummy",) if kind.short == "dummy" else tuple(fact["sections"]))
    assert kind.core is fact["core"]


@pytest.mark.parametrize("fact", FACTS[1:], ids=list(BY_TYPE)[1:])
def test_attributes_have_the_order_of_qpid_dispatch_and_new_ones_follow(fact: dict[str, Any]) -> None:
    kind = kind_of(fact["type"])
    theirs = [attribute["name"] for attribute in fact["attributes"]]
    assert [attribute.name for attribute in kind.own if not attribute.extra] == theirs
    assert [attribute.name for attribute in kind.own][: len(theirs)] == theirs
    assert kind.attributes[-3:] == (NAME, IDENTITY, TYPE)


@pytest.mark.parametrize(
    ("short", "fact"), ATTRIBUTES, ids=lambda value: value if isinstance(value, str) else value["name"]
)
def test_an_attribute_equals_the_attribute_of_qpid_dispatch(short: str, fact: dict[str, Any]) -> None:
    attribute = ours(short, fact["name"])
    name, flags = fact["name"], ("required", "unique", "graph", "deprecated")
    found = {"type": attribute.type_name, "default": attribute.schema_default or None}
    found |= {flag: getattr(attribute, flag) for flag in flags}
    theirs = {"type": fact["type"], "default": fact.get("default") or None}
    theirs |= {flag: flag in fact.get("flags", ()) for flag in flags}
    differences = {what: (theirs[what], found[what]) for what in found if theirs[what] != found[what]}
    assert {(short, name, what): pair for what, pair in differences.items()} == {
        key: pair for key, pair in DIFFERENCES.items() if key[:2] == (short, name)
    }
    assert "old" not in fact or fact["old"] in attribute.old_names


@pytest.mark.parametrize(
    ("short", "fact"), ATTRIBUTES, ids=lambda value: value if isinstance(value, str) else value["name"]
)
def test_an_attribute_that_qpid_dispatch_sets_can_be_set_here(short: str, fact: dict[str, Any]) -> None:
    attribute, flags = ours(short, fact["name"]), fact.get("flags", ())
    assert attribute.create or "create" not in flags or kind_of(short).entity is None
    assert attribute.update or "update" not in flags


def test_a_type_is_found_by_either_name() -> None:
    for kind in TYPES:
        assert type_named(kind.short) is type_named(kind.full_name) is kind
    assert type_named("address") is None
    assert type_named("org.apache.qpid.dispatch.nonsense") is None


def test_the_doc_of_each_type_and_attribute_ends_with_a_full_stop() -> None:
    for kind in TYPES:
        assert kind.doc.endswith(".")
        for attribute in kind.attributes:
            assert attribute.doc.endswith("."), f"{kind.short}.{attribute.name}"


def test_an_attribute_is_found_by_its_old_name_and_by_its_twin() -> None:
    assert ours("listener", "logMessage").name == "messageLoggingComponents"
    assert ours("router.config.autoLink", "addr").name == "address"
    assert ours("router.config.address", "fallback").name == "enableFallback"
    assert kind_of("listener").attribute("nonsense") is None


def test_more_can_be_done_than_with_qpid_dispatch() -> None:
    assert "UPDATE" not in kind_of("listener").operations
    assert kind_of("listener").all_operations == ("CREATE", "DELETE", "READ", "UPDATE")
    assert kind_of("router.link").all_operations == ("UPDATE", "READ")


def test_the_settable_attributes_are_reported() -> None:
    names = [attribute.name for attribute in kind_of("connector").settable]
    assert "saslPassword" in names
    assert "name" in names
    assert {"connectionStatus", "failoverUrls", "identity", "type"}.isdisjoint(names)


def test_a_configuration_holds_the_entities_of_every_type_with_sections() -> None:
    assert {kind.entity for kind in CONFIGURED} == set(HOLDS.values())
    assert {field.name for field in dataclasses.fields(Configuration)} == {*HOLDS, "source", "warnings", "acceptances"}


def test_a_field_of_a_configuration_is_all_that_its_entities_need() -> None:
    @dataclasses.dataclass(kw_only=True)
    class Wider:
        logs: tuple[LogEntity, ...] = ()
        router: RouterEntity
        source: str = ""

    assert list(entities_of(Wider)) == [("logs", LogEntity, False), ("router", RouterEntity, True)]


def declared(base: type[Entity] = Entity) -> Iterator[type[Entity]]:
    """Yield every class that is the entity of a type."""
    for each in base.__subclasses__():
        if "type" in vars(each):
            yield each
        yield from declared(each)


def test_every_entity_that_is_declared_is_held() -> None:
    assert set(declared()) == set(HOLDS.values())


def test_the_columns_of_rows_are_in_the_schema() -> None:
    for short, columns in CORE_COLUMNS.items():
        names = {name for attribute in kind_of(short).attributes for name in (attribute.name, attribute.twin)}
        assert set(columns) - names <= {"linksBlocked"}, short  # Qpid Dispatch's schema has blockedLinkCount
