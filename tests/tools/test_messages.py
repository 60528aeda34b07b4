"""Messages as JSON: what the standard of JSON does not have is text, and nothing else is taken for a number."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

import pytest

from trouter.cli.receive import json_line
from trouter.client import Message
from trouter.tools.messages import scalar, with_json
from trouter.tools.values import as_json, json_or_text

NO_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def strict(text: str | bytes) -> Any:
    """Return JSON as a reader of the standard takes it."""

    def refuse(name: str) -> NoReturn:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize(("text", "value"), NO_NUMBERS.items(), ids=NO_NUMBERS)
def test_what_is_no_number_is_written_as_text(text: str, value: float) -> None:
    message = Message(body={"n": [value]}, application_properties={"v": value})
    found = strict(json_line(message))
    assert found["body"] == {"n": [text]}
    assert found["application-properties"] == {"v": text}
    assert strict(as_json({"v": value})) == {"v": text}


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_such_a_line_is_read_as_it_is_written(text: str) -> None:
    line = json_line(Message(body=NO_NUMBERS[text]))
    assert json_line(with_json(Message(), line)) == line


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_such_a_word_without_quotes_is_no_json(text: str) -> None:
    with pytest.raises(ValueError, match=f'this is not JSON: {text} is no number of JSON; write "{text}"'):
        with_json(Message(), f'{{"body": {text}}}')
    assert scalar(text) == text
    assert json_or_text(text) == text
