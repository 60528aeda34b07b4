"""The listener's ``stripAnnotations``: router annotations leave the messages on the way in, out, both or neither."""

from __future__ import annotations

from trouter.hooks import AnnotationFilter, ListenerFacts, hookimpl


@hookimpl
def annotation_filter(endpoint: ListenerFacts) -> AnnotationFilter:
    choice = endpoint.strip_annotations
    return AnnotationFilter(strip_in=choice in {"in", "both"}, strip_out=choice in {"out", "both"})
