"""Migration of any layout of a file: one line or many, either form, repeated attributes, comments between."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from trouter.config import Configuration, ConfigurationError, RouterEntity, load
from trouter.config.migrate import migrated

#: Attributes as (name, value): most by an old name, some without effect, some with a value that means another.
SECTIONS: dict[str, list[tuple[str, str]]] = {
    "router": [("id", "A"), ("worker-threads", "3"), ("helloInterval", "2"), ("debugDump", "/dump"), ("metadata", "b")],
    "listener": [("port", "70000"), ("maxFrameSize", "2"), ("failoverList", "amqp://there"), ("role", "normal")],
    "address": [("prefix", "a"), ("prefix", "b"), ("fallback", "yes"), ("priority", "3"), ("enable-fallback", "no")],
    "autoLink": [("addr", "q"), ("dir", "in"), ("externalAddr", "x"), ("operStatus", "up")],
}
Section = tuple[str, list[tuple[str, str]], bool]
sections = st.lists(
    st.sampled_from(sorted(SECTIONS)).flatmap(
        lambda name: st.tuples(st.just(name), st.lists(st.sampled_from(SECTIONS[name]), max_size=6), st.booleans())
    ),
    max_size=4,
)


def conf(sections: list[Section]) -> str:
    """Return the sections in the `.conf` form, each on one line or on many with comments."""
    text = "# A file.\n"
    for name, attributes, short in sections:
        pairs = [f"{key}: {value}" for key, value in attributes]
        lines = "".join(f"    # of {pair[:3]}\n  {pair}   # behind\n" for pair in pairs)
        text += f"{name} {{ {', '.join(pairs)} }}\n" if short else f"{name} {{  # this\n{lines}}}\n"
    return text


def as_json(sections: list[Section]) -> str:
    """Return the sections in the JSON form."""
    text = []
    for name, attributes, short in sections:
        pairs = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in attributes]
        between = ", " if short else ",\n    "
        text.append(f'  ["{name}", {{{between.join(pairs)}}}]')
    return "[\n" + ",\n".join(text) + "\n]\n"


def served(configuration: Configuration) -> list[object]:
    """Return the entities in service, without a generated router id and without attributes that have no effect."""
    router = configuration.router
    router_values: list[object] = [router.hello_interval_seconds, router.debug_dump_file, router.metadata]
    return [*router_values, *(entity for entity in configuration.entities if not isinstance(entity, RouterEntity))]


@given(sections)
def test_a_migrated_file_is_served_alike_and_a_second_migration_changes_nothing(sections: list[Section]) -> None:
    for name, old in (("a.conf", conf(sections)), ("a.json", as_json(sections))):
        path = Path(name)
        try:
            before = load(path, old)
        except ConfigurationError:
            continue  # one section too many, or both names of an attribute: Qpid Dispatch refuses it, too
        new = migrated(old, name).text
        assert served(load(path, new)) == served(before), new
        assert not migrated(new, name).changes, new
        if name == "a.json":
            json.loads(new)
