"""The manual has every operation, every status and every limit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from manual import operations
from tests.routers import RunningRouter
from trouter.management import agent, arguments, cursor, entities, own, query, requests, responses, waiting
from trouter.management.operations import ENTITY_OPERATIONS, NODE_OPERATIONS
from trouter.management.status import REASONS

PAGE = (Path(__file__).parents[2] / "docs" / "management.md").read_text(encoding="utf-8")
MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize("operation", sorted({*ENTITY_OPERATIONS, *NODE_OPERATIONS, "CREATE", "QUERY"}))
def test_every_operation_has_its_line(operation: str) -> None:
    assert re.search(rf"^\| ([A-Z-]+, )*{operation}(, [A-Z-]+)* \|", PAGE, re.MULTILINE)


def test_the_table_of_operations_is_that_of_the_declarations() -> None:
    assert operations.page() == PAGE


@pytest.mark.parametrize("status", REASONS)
def test_every_status_has_its_line(status: int) -> None:
    assert f"| {status} {REASONS[status]} |" in PAGE


def test_the_page_has_every_bound() -> None:
    assert f"| {requests.MAX_REQUEST_BYTES:,} (" in PAGE
    assert f"| {waiting.MAX_WAITING} and {waiting.MAX_WAITING_BYTES // MEBIBYTE} MiB;" in PAGE
    assert f"| {agent.MAX_UNREAD_BYTES // MEBIBYTE} MiB; the router drops further" in PAGE
    assert f"at most {query.MAX_ANSWER_BYTES // MEBIBYTE} MiB" in PAGE
    assert f"| {arguments.MAX_NAMES} |" in PAGE
    assert f"CREATE or UPDATE | {entities.MAX_ATTRIBUTES} |" in PAGE
    assert f"its entity's name | {own.MAX_EMPTY} |" in PAGE
    assert f"| {responses.MAX_DESCRIPTION} characters |" in PAGE
    assert f"positions of {cursor.MAX_CURSORS} requesters" in PAGE


def test_the_example_works(shared: RunningRouter, capsys: pytest.CaptureFixture[str]) -> None:
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    scope: dict[str, Any] = {}
    exec(example[1].replace("127.0.0.1:5672", f"127.0.0.1:{shared.port}"), scope)
    scope["connection"].close()
    assert re.search(r"200\)? \[\[", capsys.readouterr().out)
