"""The form of an answer (management.md 4)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from proton import int32, symbol, ulong

from tests.management.node import NODE, Node
from tests.routers import WORKERS


@pytest.mark.parametrize("value", ["text", ulong(7), uuid.UUID(int=1 << 100)], ids=["string", "ulong", "uuid"])
def test_the_correlation_id_comes_back_with_its_type(node: Node, value: object) -> None:
    came = node.ask("READ", message={"correlation_id": value}, **NODE).message.correlation_id
    assert came == value
    assert isinstance(came, str | uuid.UUID) == isinstance(value, str | uuid.UUID)


def test_without_a_correlation_id_the_message_id_takes_its_place(node: Node) -> None:
    node.send({"operation": "READ", **NODE}, correlation_id=None, id="the-message")
    assert node.receive().message.correlation_id == "the-message"


def test_without_either_the_answer_has_none(node: Node) -> None:
    node.send({"operation": "READ", **NODE}, correlation_id=None)
    assert not node.receive().message.correlation_id


def test_an_answer_names_its_reply_address_and_its_status_only(node: Node) -> None:
    message = node.ask("READ", **NODE).message
    assert message.address == node.reply_to
    properties: Any = message.properties
    of_workers = {"workers": WORKERS} if WORKERS > 1 else {}
    assert properties == {"statusCode": 200, "statusDescription": "OK", **of_workers}
    assert type(properties["statusCode"]) is int32
    assert (message.durable, message.reply_to, message.subject, message.id) == (False, None, None, None)


def test_an_answer_is_settled_already(node: Node) -> None:
    node.send({"operation": "READ", **NODE})
    assert node.receiver.receive(timeout=60).properties["statusCode"] == 200
    assert not node.receiver.fetcher.unsettled


def test_a_refusal_has_an_empty_map_for_a_body(node: Node) -> None:
    assert node.ask("READ", name="nobody").body == {}


def test_numbers_are_ints_when_they_fit(node: Node) -> None:
    row = node.get("READ", type="listener", name="l0")
    assert type(row["cost"]) is int32


def test_properties_may_be_symbols_and_the_operation_in_any_case(node: Node) -> None:
    answer = node.ask(symbol("get-mgmt_NODES"), type=symbol("org.amqp.management"), name=symbol("self"))
    assert (answer.status, answer.body) == (200, [])


def test_many_requests_under_way_are_answered_in_their_order(node: Node) -> None:
    asked = [node.send({"operation": "READ", **NODE}) for _ in range(50)]
    assert [node.receive().message.correlation_id for _ in asked] == asked
