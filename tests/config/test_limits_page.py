"""The page on limits is written from the table, and the numbers of the table are those of the code."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from trouter.config.limits import LIMITS, Limit
from trouter.config.limits_page import attributes_of, conditions_of, page
from trouter.config.types import TYPES

ROOT = Path(__file__).resolve().parents[2]
#: Where the numbers of a limit are in the code, as ``room.module:NAME``, by the limit's name.
CONSTANTS: dict[str, tuple[str, ...]] = {
    "frame size": ("engine.limits:EngineLimits.max_frame_bytes",),
    "handle of a link": ("engine.limits:EngineLimits.handle_max",),
    "frames of one delivery": ("engine.limits:EngineLimits.max_delivery_frames",),
    "header, annotations or properties of a message": ("wire.sections:MAX_SECTION_BYTES",),
    "trace entries of a message": ("wire.annotations:MAX_TRACE_ENTRIES",),
    "output waiting for a peer": (
        "engine.limits:EngineLimits.high_water_bytes",
        "engine.limits:EngineLimits.low_water_bytes",
    ),
    "output waiting for a peer that does not read our answers": ("engine.limits:EngineLimits.output_limit_bytes",),
    "frame before the open is through": ("engine.limits:EngineLimits.max_open_frame_bytes",),
    "SASL frame": ("engine.limits:EngineLimits.max_sasl_frame_bytes",),
    "container-id": ("engine.limits:EngineLimits.max_name_bytes",),
    "name of a link": ("engine.limits:EngineLimits.max_link_name_bytes",),
    "connections that have not come as far as their open": (
        "admission.handshakes:HandshakeRules.max_handshakes",
        "admission.handshakes:HandshakeRules.max_by_place",
    ),
    "octets a second before the open, after 2 s, once a peer has begun": (
        "admission.handshakes:HandshakeRules.least_rate",
    ),
    "new connections from one place": (
        "admission.handshakes:HandshakeRules.arrivals_per_second",
        "admission.handshakes:HandshakeRules.arrivals_at_once",
    ),
    "SASL exchange": ("engine.limits:EngineLimits.max_sasl_rounds",),
    "turns that a server may ask of SCRAM, on connectors and in the client": ("client.sasl:MAX_ITERATIONS",),
    "a message between routers": ("mesh.messages:MAX_MESSAGE_BYTES", "mesh.messages:MAX_VALUES"),
    "other routers that are remembered; links of all of them; their addresses": (
        "mesh.nodes:MAX_ROUTERS",
        "mesh.nodes:MAX_LINKS",
        "mesh.nodes:MAX_ADDRESS_BYTES",
    ),
    "silence": ("engine.limits:EngineLimits.idle_timeout_s",),
    "a management request": ("management.requests:MAX_REQUEST_BYTES",),
    "management requests waiting": ("management.agent:MAX_WAITING", "management.agent:MAX_WAITING_BYTES"),
    "one management answer, and unread answers of one receiver": ("management.agent:MAX_UNREAD_BYTES",),
}
UNITS = {"KiB": 1024, "MiB": 1 << 20}
SHOWN = {attribute.name for kind in TYPES for attribute in kind.attributes}
KNOWN_CONDITIONS = re.compile(r"amqp:(connection:|session:|link:)?[a-z-]+")


def constant(name: str) -> float:
    """The value of a constant, or of a field's default."""
    module, _, path = name.partition(":")
    found = import_module(f"trouter.{module}")
    owner, _, field = path.rpartition(".")
    value = getattr(found, path) if not owner else getattr(found, owner).__dataclass_fields__[field].default
    assert isinstance(value, int | float)
    return value


def numbers_in(text: str) -> list[float]:
    """The numbers of a text, each in its unit of bytes."""
    found = re.findall(r"(\d[\d,]*)(?: (KiB|MiB))?", text)
    return [int(number.replace(",", "")) * UNITS.get(unit, 1) for number, unit in found]


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "limits.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(("name", "constants"), CONSTANTS.items(), ids=CONSTANTS)
def test_a_number_of_the_table_is_that_of_the_code(name: str, constants: tuple[str, ...]) -> None:
    (limit,) = (each for each in LIMITS if each.name == name)
    assert {constant(each) for each in constants} <= set(numbers_in(limit.value))


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_what_a_limit_names_exists(limit: Limit) -> None:
    if "`" in limit.set_by:
        assert attributes_of(limit)
    for condition in conditions_of(limit):
        assert KNOWN_CONDITIONS.fullmatch(condition)
    manual = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for metric in re.findall(r"`(\w+)`", limit.metric):
        assert metric in (manual if metric.startswith("trouter_") else SHOWN)


def test_no_limit_stands_there_twice() -> None:
    assert len({limit.name for limit in LIMITS}) == len(LIMITS)
