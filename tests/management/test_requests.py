"""Requests as bytes: the parts that are read, and none that does harm."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.management.operations import LOGGED
from trouter.management.requests import MAX_REPLY_TO_BYTES, MAX_REQUEST_BYTES, read_request
from trouter.management.status import Refusal
from trouter.wire.codec import encode
from trouter.wire.types import Described, Int, Symbol, UByte, ULong


def section(code: int, content: object) -> bytes:
    return encode(Described(ULong(code), content))


def message(properties: dict[str, object] | None = None, body: object = None, **fields: object) -> bytes:
    row = [fields.get("message_id"), None, None, None, fields.get("reply_to"), fields.get("correlation_id")]
    return section(0x73, row) + section(0x74, properties or {}) + section(0x77, body)


def test_a_request_is_read() -> None:
    request = read_request(message({"operation": "READ", "name": Symbol("x")}, {"a": 1}, reply_to="here"))
    assert request.malformed is None
    assert request.reply_to == "here"
    assert request.text("operation") == "READ"
    assert request.text("name") == "x"
    assert request.text("type") == ""
    assert request.map_body() == {"a": 1}


@pytest.mark.parametrize("value", ["text", b"octets", uuid.UUID(int=7), ULong(9)])
def test_the_answer_is_known_by_the_correlation_id_or_else_by_the_message_id(value: object) -> None:
    both = read_request(message(reply_to="r", correlation_id=value, message_id="m"))
    assert (type(both.correlation_id), both.correlation_id) == (type(value), value)
    assert read_request(message(reply_to="r", message_id=value)).correlation_id == value


@pytest.mark.parametrize("value", [5, Int(5), UByte(5), ULong(5), "5", Symbol("5")])
def test_a_number_may_have_any_integer_type_or_be_decimal_text(value: object) -> None:
    assert read_request(message({"count": value})).number("count") == 5


@pytest.mark.parametrize("value", [True, "five", "", 5.0, b"5", "9" * 100, []])
def test_a_value_that_is_no_number_is_refused_with_the_name_of_the_property(value: object) -> None:
    with pytest.raises(Refusal, match="'count' must be an integer") as refused:
        read_request(message({"count": value})).number("count")
    assert refused.value.status == 400


def test_a_property_that_must_be_text_is_refused_by_name_otherwise() -> None:
    with pytest.raises(Refusal, match="'type' must be a string, not binary"):
        read_request(message({"type": b"listener"})).text("type")


@pytest.mark.parametrize("body", [3, "x", [1], True])
def test_a_body_that_is_no_map_is_refused(body: object) -> None:
    with pytest.raises(Refusal, match=r"^Body of request must be a map$"):
        read_request(message({}, body)).map_body()


@pytest.mark.parametrize("data", [section(0x75, b"{}"), section(0x76, [1])])
def test_a_body_in_another_section_is_refused(data: bytes) -> None:
    with pytest.raises(Refusal, match=r"^Body of request must be a map$"):
        read_request(section(0x74, {}) + data).map_body()


def test_a_body_that_is_absent_or_null_is_an_empty_map() -> None:
    assert read_request(message({})).map_body() == {}
    assert read_request(section(0x74, {"operation": "READ"})).map_body() == {}


def test_the_keys_of_a_body_are_text() -> None:
    with pytest.raises(Refusal, match="keys of the body must be strings, not long"):
        read_request(message({}, {1: 2})).map_body()


def test_a_malformed_request_keeps_its_reply_address_for_the_refusal() -> None:
    request = read_request(message({}, {}, reply_to="here", correlation_id="7")[:-1] + b"\xff\xff")
    assert request.reply_to == "here"
    assert request.correlation_id == "7"
    assert request.malformed is not None
    assert request.malformed.status == 400


def test_a_request_that_is_too_large_is_refused_unread() -> None:
    fits = message({}, "", reply_to="here")
    padding = MAX_REQUEST_BYTES - len(fits) - 3
    assert read_request(message({}, "x" * padding, reply_to="here")).malformed is None
    request = read_request(message({"operation": "READ"}, "x" * (padding + 1), reply_to="here"))
    assert request.malformed is not None
    assert f"at most {MAX_REQUEST_BYTES} bytes" in request.malformed.description
    assert request.reply_to == "here"
    assert not request.properties


def test_a_reply_to_that_no_address_can_be_is_none() -> None:
    assert read_request(message(reply_to="x" * MAX_REPLY_TO_BYTES)).reply_to
    assert read_request(message(reply_to="x" * (MAX_REPLY_TO_BYTES + 1))).reply_to == ""
    assert read_request(message(reply_to=b"octets")).reply_to == ""


def test_the_log_line_reveals_no_values_of_attributes() -> None:
    request = read_request(message({"operation": "CREATE", "type": "connector"}, {"saslPassword": "hush"}))
    assert request.summary(LOGGED) == "CREATE type=connector body={saslPassword}"


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_exception(data: bytes) -> None:
    read_request(data).summary(LOGGED)


@given(st.data())
def test_a_request_cut_or_changed_anywhere_is_read_without_an_exception(data: st.DataObject) -> None:
    whole = bytearray(message({"operation": "QUERY", "count": 5}, {"attributeNames": ["a"]}, reply_to="r"))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    request = read_request(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    assert request.summary(LOGGED)
