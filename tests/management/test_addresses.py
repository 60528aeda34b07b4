"""The addresses of the management node (management.md 2), and the paths of its answers."""

from __future__ import annotations

import re

import pytest

from tests.management.node import NODE, node_of
from tests.routers import RunningRouter, any_worker

FORMS = [
    "$management",
    "_local/$management",
    "_topo/0/R/$management",
    "_edge/R/$management",
    "_local/$_management_internal",
    "_topo/0/R/$_management_internal",
]
SPELLINGS = ["{}", "amqp:/{}", "/{}", "amqp://127.0.0.1:5672/{}"]


@pytest.mark.parametrize("anonymous", [False, True], ids=["target", "to"])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("form", FORMS)
def test_the_node_answers_at_every_form_of_its_address(
    shared: RunningRouter, form: str, spelling: str, anonymous: bool
) -> None:
    with node_of(shared.port, spelling.format(form), anonymous=anonymous) as node:
        assert node.get("READ", **NODE)["identity"] == "self"


def test_a_router_of_any_area_is_this_one(shared: RunningRouter) -> None:
    with node_of(shared.port, "_topo/all/R/$management", anonymous=True) as node:
        assert node.get("READ", **NODE)["identity"] == "self"


@pytest.mark.parametrize("address", ["_topo/0/NOPE/$management", "_topo/7/R/$management", "$_management_internal"])
def test_where_no_node_is_no_credit_comes(shared: RunningRouter, address: str) -> None:
    with node_of(shared.port, address) as node:
        node.round_trip()
        assert node.sender.link.credit == 0


def test_a_sender_to_the_node_gets_the_usual_credit(shared: RunningRouter) -> None:
    with node_of(shared.port) as node:
        node.get("READ", **NODE)
        assert node.sender.link.credit in (249, 250)


def test_the_reply_address_names_the_router(shared: RunningRouter) -> None:
    with node_of(shared.port) as node:
        assert re.fullmatch(rf"amqp:/_topo/0/{any_worker('R')}/temp\.[A-Za-z0-9+_]{{22}}", node.reply_to)
