"""routing.md 1.1, row by row: from the address in an attach or message to the key of its lookup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.core.addresses import (
    FALLBACK_PHASE,
    PHASES,
    UPLINK_KEY,
    Address,
    parse_address,
    strip_location,
    temporary_source,
    temporary_target,
    temporary_token,
)


def parse(text: str, *, mode: str = "interior", phase: str = "0", tenant: str = "") -> Address:
    return parse_address(text, router_id="QDR.A", mode=mode, phase=phase, tenant=tenant)


# Step A: scheme and host.


def test_a_relative_address_is_unchanged() -> None:
    assert strip_location("foo/bar") == "foo/bar"


def test_one_leading_slash_is_dropped() -> None:
    assert strip_location("/foo") == "foo"


def test_two_leading_slashes_skip_the_host() -> None:
    assert strip_location("//host/foo") == "foo"


@pytest.mark.parametrize("text", ["amqp:/foo", "foo:/foo", "a b:/foo"])
def test_any_scheme_with_one_slash_is_dropped(text: str) -> None:
    assert strip_location(text) == "foo"


@pytest.mark.parametrize("text", ["amqp://host:5672/foo", "amqps://user@host/foo", "x:///foo"])
def test_scheme_and_host_are_dropped(text: str) -> None:
    assert strip_location(text) == "foo"


def test_a_scheme_without_slash_is_not_stripped() -> None:
    assert parse("amqp:foo").key == "M0amqp:foo"


def test_an_address_loses_a_prefix_that_looks_like_a_scheme() -> None:
    assert strip_location("a:/b") == "b"


def test_the_first_colon_before_a_slash_ends_the_scheme() -> None:
    assert strip_location("a:b/c:/d:/e") == "d:/e"


def test_only_one_scheme_is_stripped() -> None:
    assert strip_location("/amqp:/foo") == "amqp:/foo"


@pytest.mark.parametrize("text", ["//host", "amqp://host:5672"])
def test_a_host_without_path_is_not_stripped(text: str) -> None:
    assert strip_location(text) == text


@pytest.mark.parametrize("text", ["", "/", "amqp:/", "//host/", "amqp://host/"])
def test_an_address_may_be_empty(text: str) -> None:
    assert parse(text) == Address("M", "M0", "", "")


# Step B: the trailing separator; exactness.


@pytest.mark.parametrize("text", ["ta", "ta/", "ta."])
def test_one_trailing_separator_is_dropped(text: str) -> None:
    assert parse(text).key == "M0ta"


@pytest.mark.parametrize(("text", "key"), [("ta//", "M0ta/"), ("ta..", "M0ta."), ("ta./", "M0ta.")])
def test_only_one_trailing_separator_is_dropped(text: str, key: str) -> None:
    assert parse(text).key == key


@pytest.mark.parametrize("text", ["Ta", " ta", "ta ", "t\u0430"])
def test_comparison_is_exact(text: str) -> None:
    assert parse(text).key == f"M0{text}" != parse("ta").key


# Step C: classes.


def test_local() -> None:
    assert parse("_local/x/y") == Address("L", "Lx/y", "_local/x/y", "x/y")


def test_topo_all_all() -> None:
    assert parse("_topo/all/all/x/y") == Address("T", "Tx/y", "_topo/all/all/x/y", "x/y")


def test_topo_my_area_all() -> None:
    assert parse("_topo/0/all/qdrouter") == Address("T", "Tqdrouter", "_topo/0/all/qdrouter", "qdrouter")


@pytest.mark.parametrize("mode", ["standalone", "interior", "edge"])
def test_topo_my_area_my_id_is_local(mode: str) -> None:
    assert parse("amqp:/_topo/0/QDR.A/$management", mode=mode) == Address(
        "L", "L$management", "_topo/0/QDR.A/$management", "$management"
    )


@pytest.mark.parametrize("path", ["_topo/0/A/B/x/y", "_topo/all/A/B/x/y", "_edge/A/B/x/y"])
def test_an_id_with_a_slash_is_recognised(path: str) -> None:
    assert parse_address(path, router_id="A/B").key == "Lx/y"
    assert parse_address(path, router_id="A/BC").key in ("RA", "HA")


def test_topo_all_areas_is_my_area_too() -> None:
    assert parse("_topo/all/QDR.A/x").key == "Lx"
    assert parse("_topo/all/QDR.B/x").key == "RQDR.B"


@pytest.mark.parametrize("mode", ["standalone", "interior"])
def test_topo_my_area_other_router(mode: str) -> None:
    assert parse("_topo/0/QDR.B/x/y", mode=mode) == Address("R", "RQDR.B", "_topo/0/QDR.B/x/y", "x/y")


def test_topo_my_area_other_router_on_an_edge_goes_to_the_uplink() -> None:
    assert parse("_topo/0/QDR.B/x", mode="edge") == Address("L", UPLINK_KEY, "_topo/0/QDR.B/x", "x")


def test_topo_other_area() -> None:
    assert parse("_topo/7/QDR.A/x") == Address("A", "A7", "_topo/7/QDR.A/x", "QDR.A/x")


def test_topo_other_area_on_an_edge_goes_to_the_uplink() -> None:
    assert parse("_topo/7/QDR.A/x", mode="edge") == Address("L", UPLINK_KEY, "_topo/7/QDR.A/x", "QDR.A/x")


@pytest.mark.parametrize("mode", ["standalone", "interior", "edge"])
def test_edge_my_id_is_local(mode: str) -> None:
    assert parse("_edge/QDR.A/temp.x", mode=mode) == Address("L", "Ltemp.x", "_edge/QDR.A/temp.x", "temp.x")


def test_edge_other_router() -> None:
    assert parse("_edge/E1/x/y") == Address("H", "HE1", "_edge/E1/x/y", "x/y")


def test_edge_other_router_on_an_edge_goes_to_the_uplink() -> None:
    assert parse("_edge/E1/x", mode="edge") == Address("L", UPLINK_KEY, "_edge/E1/x", "x")


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "x/_local/y",
        "_x/y",
        "_locals/x",
        "_LOCAL/x",
        "_local",
        "_topo",
        "_topo/0",
        "_topo/0/QDR.B",
        "_edge/E1",
        "_",
    ],
)
def test_an_address_without_a_reserved_prefix_is_mobile(text: str) -> None:
    assert parse(text) == Address("M", f"M0{text}", text, text)


def test_an_id_that_begins_with_the_id_of_this_router_is_another_router() -> None:
    assert parse("_topo/0/QDR.AB/x").key == "RQDR.AB"


def test_a_mobile_address_takes_phase_and_tenant() -> None:
    assert parse("/x/y", phase="3", tenant="t1") == Address("M", "M3t1/x/y", "t1/x/y", "x/y")


def test_an_unknown_reserved_word_is_mobile_and_takes_the_tenant() -> None:
    assert parse("_unknown/x", tenant="t1").key == "M0t1/_unknown/x"


@pytest.mark.parametrize(
    "text", ["_local/x", "_topo/0/QDR.A/x", "_topo/0/all/x", "_topo/0/B/x", "_topo/7/x", "_edge/E/x"]
)
def test_reserved_classes_take_neither_phase_nor_tenant(text: str) -> None:
    address = parse(text)
    assert parse(text, phase="F", tenant="t1") == address
    assert address.key_in_phase("3") == address.key


def test_a_mobile_address_has_siblings_in_other_phases() -> None:
    address = parse("x", tenant="t1")
    assert address.key_in_phase(FALLBACK_PHASE) == "MFt1/x"
    assert {address.key_in_phase(phase) for phase in PHASES} == {parse("x", phase=p, tenant="t1").key for p in PHASES}


@pytest.mark.parametrize("phase", ["", "f", "10", "00", "-"])
def test_an_unknown_phase_is_refused(phase: str) -> None:
    with pytest.raises(ValueError, match="no such phase"):
        parse("x", phase=phase)


@given(
    st.text(alphabet="_/.:atopl0edg\x00\U0001f600", max_size=60), st.sampled_from(["standalone", "interior", "edge"])
)
def test_any_text_is_some_address(text: str, mode: str) -> None:
    address = parse_address(text, router_id="0", mode=mode)
    assert address.key[0] == address.letter in "LTRAHM"
    assert strip_location(text).startswith(address.text)
    assert address.text.endswith(address.rest)


@given(
    st.text(alphabet="_/.:topledga0 ", max_size=40), st.sampled_from(["/", "//host/", "amqp:/", "amqp://host:5672/"])
)
def test_a_location_in_front_changes_nothing_else(text: str, location: str) -> None:
    if not text.startswith("/"):
        assert strip_location(location + text) == text


# Generated addresses (1.3a).


def test_a_temporary_source_is_local_to_its_router_and_remote_to_others() -> None:
    address = temporary_source("QDR.A", "abcdefghijklmno")
    assert address == "amqp:/_topo/0/QDR.A/temp.abcdefghijklmno"
    assert parse(address).key == "Ltemp.abcdefghijklmno"
    assert parse_address(address, router_id="QDR.B", mode="interior").key == "RQDR.A"


def test_a_temporary_source_of_an_edge_router_is_reached_through_its_interior() -> None:
    address = temporary_source("E1", "abcdefghijklmno", mode="edge")
    assert address == "amqp:/_edge/E1/temp.abcdefghijklmno"
    assert parse_address(address, router_id="E1", mode="edge").key == "Ltemp.abcdefghijklmno"
    assert parse(address).key == "HE1"


def test_a_temporary_target_is_mobile() -> None:
    assert temporary_target("abcdefghijklmno") == "amqp:/_$temp.abcdefghijklmno"
    assert parse(temporary_target("abcdefghijklmno")).key == "M0_$temp.abcdefghijklmno"


def test_temporary_tokens_hold_132_random_bits_and_never_repeat() -> None:
    tokens = [temporary_token() for _ in range(2000)]
    assert len(set(tokens)) == len(tokens)
    assert all(re.fullmatch(r"[a-zA-Z0-9+_]{22}", token) for token in tokens)
    assert len(set("".join(tokens))) == 64
