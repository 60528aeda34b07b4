"""Applies a listener's ``stripAnnotations``: removes router annotations from messages that come in, go out, or both."""

from __future__ import annotations

from trouter.hooks import AnnotationFilter, ListenerFacts, hookimpl


@hookimpl
def annotation_filter(endpoint: ListenerFacts) -> AnnotationFilter:
    choice = endpoint.strip_annotations
    return AnnotationFilter(strip_in=choice in {"in", "both"}, strip_out=choice in {"out", "both"})
