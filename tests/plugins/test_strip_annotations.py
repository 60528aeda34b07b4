"""strip_annotations: called directly, then through a real manager."""

from __future__ import annotations

import pytest

from trouter.hooks import AnnotationFilter, ListenerFacts, Plugins
from trouter_plugins import strip_annotations


@pytest.mark.parametrize(
    ("choice", "strip_in", "strip_out"),
    [("both", True, True), ("in", True, False), ("out", False, True), ("no", False, False)],
)
def test_each_choice_of_the_listener(choice: str, strip_in: bool, strip_out: bool) -> None:
    listener = ListenerFacts("here", "", "amqp", strip_annotations=choice)
    expected = AnnotationFilter(strip_in=strip_in, strip_out=strip_out)
    assert strip_annotations.annotation_filter(listener) == expected
    plugins = Plugins([strip_annotations])
    assert plugins.annotation_filter(listener) == expected
    assert not plugins.faults
