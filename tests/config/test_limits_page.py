"""The page on limits is written from the table, and the numbers of the table are those of the code."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from manual.ladder import LADDER
from manual.limits import LIMITS, Limit
from manual.limits_page import attributes_of, conditions_of, page
from trouter.admission import memory
from trouter.config.types import TYPES

ROOT = Path(__file__).resolve().parents[2]
#: By name of a limit: its constants in the code, as ``room.module:NAME``.
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
    "output waiting for a peer that does not read the answers of the router": (
        "engine.limits:EngineLimits.output_limit_bytes",
    ),
    "attaches of a user, ends of its links, and requests of it that are allowed, each with a record of its own": (
        "telemetry.allowances:AT_ONCE",
        "telemetry.allowances:A_SECOND",
    ),
    "work for a peer that has gone, such as after a reset, while what it sent before is read": (
        "connections.stream:LAST_WORK",
        "connections.stream:EVENT_WORK",
    ),
    "frame before the open is answered": ("engine.limits:EngineLimits.max_open_frame_bytes",),
    "SASL frame": ("engine.limits:EngineLimits.max_sasl_frame_bytes",),
    "container-id": ("engine.limits:EngineLimits.max_name_bytes",),
    "name of a link": ("engine.limits:EngineLimits.max_link_name_bytes",),
    "connections that have not sent their open yet": (
        "admission.handshakes:HandshakeRules.max_handshakes",
        "admission.handshakes:HandshakeRules.max_by_place",
    ),
    "bytes a second before the open, after 2 s, once a peer has begun": (
        "admission.handshakes:HandshakeRules.least_rate",
    ),
    "new connections from one host": (
        "admission.handshakes:HandshakeRules.arrivals_per_second",
        "admission.handshakes:HandshakeRules.arrivals_at_once",
    ),
    "SASL exchange": ("engine.limits:EngineLimits.max_sasl_rounds",),
    "iterations that a SCRAM server may ask for, on connectors and in the client": ("client.sasl:MAX_ITERATIONS",),
    "an update of addresses between routers": (
        "mesh.messages:MAX_MESSAGE_BYTES",
        "mesh.messages:MAX_VALUES",
        "mesh.pieces:PIECE",
    ),
    "any other message between routers": ("mesh.pieces:MAX_OTHER_BYTES",),
    "updates of addresses that wait": ("mesh.pieces:MAX_WAITING_BYTES",),
    "other routers that the router remembers; their links; their addresses": (
        "mesh.nodes:MAX_ROUTERS",
        "mesh.nodes:MAX_LINKS",
        "mesh.nodes:MAX_ADDRESS_BYTES",
    ),
    "silence": ("engine.limits:EngineLimits.idle_timeout_s",),
    "a management request": ("management.requests:MAX_REQUEST_BYTES",),
    "management requests waiting": ("management.waiting:MAX_WAITING", "management.waiting:MAX_WAITING_BYTES"),
    "one management answer, and unread answers of one receiver": ("management.agent:MAX_UNREAD_BYTES",),
}
#: The tests that reach each rung of the ladder at its number and one above, as ``file:function``, in its order.
RUNGS: tuple[tuple[str, ...], ...] = (
    ("e2e/test_caps.py:test_a_connection_that_keeps_half_of_its_limit_gets_an_eighth_of_the_window",),
    ("e2e/test_caps.py:test_a_connection_beyond_its_buffer_limit_loses_its_session_and_other_connections_go_on",),
    ("e2e/test_quotas.py:test_a_vhost_that_keeps_half_of_its_quota_gets_an_eighth_of_the_window",),
    (
        "e2e/test_quotas.py:test_kept_messages_have_a_quota",
        "e2e/test_quotas.py:test_a_vhost_that_keeps_too_much_refuses_links_and_at_a_quarter_more_connections",
        "e2e/test_quotas.py:test_sessions_count_against_the_quota",
    ),
    ("e2e/test_quotas.py:test_a_vhost_that_keeps_too_much_refuses_links_and_at_a_quarter_more_connections",),
    ("e2e/test_memory.py:test_all_connections_together_keep_no_more_than_a_quarter_of_the_memory",),
    ("e2e/test_memory.py:test_all_connections_together_keep_no_more_than_a_quarter_of_the_memory",),
    (
        "admission/test_alarms.py:test_memory_is_reported_at_each_mark_and_when_it_falls_below",
        "e2e/test_memory.py:test_only_the_user_with_the_most_memory_gets_no_credit_above_the_first_mark",
    ),
    (
        "admission/test_alarms.py:test_memory_is_reported_at_each_mark_and_when_it_falls_below",
        "e2e/test_memory.py:test_no_client_gets_a_third_link_above_the_mark_before_and_requests_are_answered",
        "e2e/test_kept_memory.py:test_the_client_whose_attaches_fill_the_memory_is_cut_off_and_others_may_log_in_again",
    ),
    (
        "admission/test_alarms.py:test_memory_is_reported_at_each_mark_and_when_it_falls_below",
        "e2e/test_memory.py:test_few_clients_may_connect_above_the_second_mark_and_connected_clients_go_on",
        "e2e/test_kept_memory.py:test_an_operator_may_log_in_while_no_other_client_may",
        "e2e/test_memory.py:test_a_client_that_begins_sessions_until_memory_runs_out_loses_its_connection",
    ),
    (
        "admission/test_played_limits.py:test_a_host_has_few_handshakes_at_a_time_and_open_connections_do_not_count",
        "e2e/test_guard.py:test_so_many_handshakes_in_all",
    ),
    ("admission/test_played_limits.py:test_a_peer_that_drips_is_aborted_and_a_silent_one_has_its_time",),
    ("admission/test_played_limits.py:test_a_host_that_connects_too_often_is_turned_away_until_time_has_passed",),
    (
        "e2e/test_listeners.py:test_no_more_connections_than_allowed",
        "e2e/test_shortages.py:test_a_flood_of_refusals_is_few_lines_in_the_log",
    ),
    (
        "e2e/test_shortages.py:test_without_a_descriptor_left_the_next_client_waits_until_there_is_one",
        "e2e/test_shortages.py:test_clients_leave_descriptors_for_probes_and_operators_and_for_files",
    ),
    (
        "admission/test_guard.py:test_refused_connections_are_counted_and_reported_once_a_second",
        "e2e/test_shortages.py:test_a_flood_of_refusals_is_few_lines_in_the_log",
    ),
    ("e2e/test_records.py:test_attaches_that_are_denied_over_and_over_are_reported_together",),
    ("connections/test_denials_of_a_user.py:test_refused_attaches_of_a_client_are_told_within_its_allowance",),
    ("logs/test_outputs.py:test_a_pipe_that_is_read_no_more_holds_nothing_up",),
)
UNITS = {"KiB": 1024, "MiB": 1 << 20}
SHOWN = {attribute.name for kind in TYPES for attribute in kind.attributes}
KNOWN_CONDITIONS = re.compile(r"amqp:(connection:|session:|link:)?[a-z-]+")


def constant(name: str) -> float:
    """Return the value of a constant, or of a field's default."""
    module, _, path = name.partition(":")
    found = import_module(f"trouter.{module}")
    owner, _, field = path.rpartition(".")
    value = getattr(found, path) if not owner else getattr(found, owner).__dataclass_fields__[field].default
    assert isinstance(value, int | float)
    return value


def numbers_in(text: str) -> list[float]:
    """Return the numbers in a text, in bytes."""
    found = re.findall(r"(\d[\d,]*)(?: (KiB|MiB))?", text)
    return [int(number.replace(",", "")) * UNITS.get(unit, 1) for number, unit in found]


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "limits.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(("name", "constants"), CONSTANTS.items(), ids=CONSTANTS)
def test_a_number_of_the_table_is_that_of_the_code(name: str, constants: tuple[str, ...]) -> None:
    (limit,) = (each for each in LIMITS if each.name == name)
    assert {constant(each) for each in constants} <= set(numbers_in(limit.value))


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_the_attributes_conditions_and_metrics_named_by_a_limit_exist(limit: Limit) -> None:
    if "`" in limit.set_by:
        assert attributes_of(limit)
    for condition in conditions_of(limit):
        assert KNOWN_CONDITIONS.fullmatch(condition)
    manual = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for metric in re.findall(r"`(\w+)`", limit.metric):
        assert metric in (manual if metric.startswith("trouter_") else SHOWN)


@pytest.mark.parametrize(
    "number", range(len(LADDER)), ids=lambda number: f"{LADDER[number].budget}, {LADDER[number].at}"
)
def test_a_rung_of_the_ladder_has_tests(number: int) -> None:
    assert len(RUNGS) == len(LADDER)
    for each in RUNGS[number]:
        file, name = each.split(":")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_the_marks_of_memory_are_those_of_the_code() -> None:
    marks = [
        (f"{mark} %", f"below {mark - memory.LATITUDE} %")
        for mark in (memory.STARVE_AT, memory.REFUSE_LINKS_AT, memory.REFUSE_AT)
    ]
    assert [(rung.at, rung.ends) for rung in LADDER if rung.budget.startswith("memory of the process")] == marks


def test_the_worst_ratio_of_the_page_is_that_of_the_fuzz_target() -> None:
    target = (ROOT / "fuzz" / "kept.py").read_text(encoding="utf-8")
    worst = re.search(r"^WORST_RATIO: Final = (\d+)$", target, re.MULTILINE)
    assert worst is not None
    assert f"more than {worst[1]} bytes of memory for each byte" in page()


def test_no_limit_stands_there_twice() -> None:
    assert len({limit.name for limit in LIMITS}) == len(LIMITS)
