"""Changes by a reload: unchanged entities are recognised, and only the others are touched."""

from __future__ import annotations

from trouter.config import AddressEntity, Changes, Configuration, compare, created, load, type_named

OLD = """
router { id: A, metadata: one }
listener { name: front, port: 5672 }
listener { port: 5673 }
address { prefix: a }
address { prefix: b }
autoLink { addr: x, dir: in }
connector { name: broker, host: one }
log { module: SERVER, enable: info+ }
"""


def changes(text: str, old: Configuration | None = None) -> Changes:
    return compare(old or load(text=OLD), load(text=text))


def test_the_same_file_changes_nothing() -> None:
    found = changes(OLD)
    assert (found.created, found.deleted, found.updated, found.restart) == ((), (), (), ())
    assert found.kept == len(load(text=OLD).entities)


def test_the_order_of_sections_and_addresses_changes_nothing() -> None:
    old = load(text=OLD)
    lines = OLD.strip().splitlines()
    found = changes("\n".join(reversed(lines)), old)
    assert (found.created, found.deleted, found.updated) == ((), (), ())
    assert {entity.prefix: entity.identity for entity in found.configuration.addresses} == {
        "a": "address/0",
        "b": "address/1",
    }


def test_places_are_those_of_the_new_file() -> None:
    assert changes("\n\n" + OLD).configuration.listeners[0].place.line == 5


def test_a_reload_finds_the_created_and_the_deleted_entities() -> None:
    text = OLD.replace("address { prefix: a }", "address { prefix: c }").replace("port: 5673", "port: 5674")
    found = changes(text)
    assert [entity.identity for entity in found.created] == ["address/2", "listener/:5674"]
    assert [entity.identity for entity in found.deleted] == ["address/0", "listener/:5673"]
    assert found.updated == ()


def test_a_changed_entity_keeps_its_identity_and_names_its_changed_attributes() -> None:
    text = OLD.replace("prefix: b", "prefix: b, distribution: closest").replace("port: 5672", "port: 5670")
    found = changes(text.replace("info+", "debug+"))
    assert [(each.new.identity, each.attributes) for each in found.updated] == [
        ("log/SERVER", ("enable",)),
        ("address/1", ("distribution",)),
        ("listener/:5670:front", ("port",)),
    ]
    assert found.updated[2].old.identity == "listener/:5672:front"
    assert isinstance(found.updated[1].new, AddressEntity)
    assert found.updated[1].new.name == "address/1"


def test_a_change_that_needs_a_restart_is_reported_and_not_applied() -> None:
    found = changes(
        OLD.replace("id: A", "id: B, mode: interior, defaultDistribution: closest").replace("one }", "two }", 1)
    )
    assert found.restart == (
        "router.id: 'A' stays until a restart, then 'B'",
        "router.mode: 'standalone' stays until a restart, then 'interior'",
        "router.defaultDistribution: 'balanced' stays until a restart, then 'closest'",
    )
    router = found.configuration.router
    assert (router.id, router.mode, router.metadata) == ("A", "standalone", "two")
    assert [each.attributes for each in found.updated] == [("metadata",)]


def test_an_id_that_was_made_up_is_kept() -> None:
    old = load(text="listener { port: 1 }")
    found = compare(old, load(text="listener { port: 1 }"))
    assert found.configuration.router.id == old.router.id
    assert (found.restart, found.updated) == ((), ())


def test_a_module_without_a_section_any_more_follows_default_again() -> None:
    found = changes(OLD.replace("log { module: SERVER, enable: info+ }", ""))
    assert [(each.new.identity, each.attributes) for each in found.updated] == [("log/SERVER", ("enable",))]


def test_the_file_is_the_truth() -> None:
    kind = type_named("listener")
    assert kind is not None
    configuration, entity = created(load(text=OLD), kind, "back", {"port": 1})
    found = changes(OLD, configuration)
    assert found.deleted == (entity,)
    assert found.configuration.by_name("back") is None


def test_a_second_reload_compares_with_the_result_of_the_first() -> None:
    first = changes(OLD.replace("id: A", "id: B")).configuration
    again = changes(OLD.replace("id: A", "id: B"), first)
    assert again.updated == ()
    assert again.restart == ("router.id: 'A' stays until a restart, then 'B'",)
    assert changes(OLD, again.configuration).restart == ()


def test_an_unchanged_entity_stays_the_same_object() -> None:
    text = "router { id: R }\naddress { prefix: a }\naddress { prefix: b, distribution: closest }\n"
    old = load(text=text)
    changes = compare(old, load(text=text.replace("closest", "multicast")))
    assert changes.configuration.addresses[0] is old.addresses[0]
    assert changes.configuration.addresses[1] is not old.addresses[1]
