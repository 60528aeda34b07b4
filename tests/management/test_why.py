"""Workers decide by the reason of each other's refusals, never by their texts."""

from __future__ import annotations

import re

import pytest

from tests.house.sources import PACKAGE
from trouter.config.changes import Why
from trouter.management.responses import OperationResult, refusal
from trouter.management.rights import NOT_ALLOWED, Forbidden
from trouter.management.sibling import decode_result, encode_result
from trouter.management.status import FORBIDDEN, bad_request, not_found
from trouter.management.whole import _is_absent

#: A decision by a text: of a description, how it begins or ends, what is in it, or what it equals.
BY_TEXT = re.compile(r"description(\.(startswith|endswith|find|removeprefix)\b| [=!]= )|\bin \w+\.description\b")


def sent(result: OperationResult) -> OperationResult:
    """Return an answer as another worker gets it."""
    return decode_result(encode_result(result))


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (Forbidden(), Why.RIGHTS),
        (Forbidden("It needs more."), Why.RIGHTS),
        (not_found("Not Found"), Why.ABSENT),
        (bad_request("No entity with identity=1", Why.ABSENT), Why.ABSENT),
        (bad_request("No entity with a colour"), Why.OTHER),
    ],
)
def test_the_reason_of_a_refusal_reaches_the_worker_that_asked(refused: Forbidden, why: Why) -> None:
    result = refusal(refused.status, refused.description, refused.why)
    assert sent(result) == result
    assert sent(result).why is why
    assert _is_absent(sent(result)) is _is_absent(refused) is (why is Why.ABSENT)


def test_a_sentence_alone_is_no_reason() -> None:
    assert sent(OperationResult(FORBIDDEN, b"", f"{NOT_ALLOWED} It is Sunday.")).why is Why.OTHER
    assert not _is_absent(sent(refusal(404, "No entity with identity=1")))


def test_no_decision_of_management_reads_a_description() -> None:
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted((PACKAGE / "management").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if BY_TEXT.search(line)
    ]
    assert found == []
