"""Makes findings about an entity from the rows of the table of strictness."""

from __future__ import annotations

from trouter.config.entities import Entity
from trouter.config.problems import Problem
from trouter.config.strictness import POINTS


def finding_of(
    point: str, entity: Entity, attribute: str | None = None, *, suggestion: str = "", **values: object
) -> Problem:
    """Return the finding of a point of the table about an entity.

    ``values`` fill the gaps in its text. ``suggestion`` replaces the cure of the point.
    """
    row = POINTS[point]
    attribute = row.attribute if attribute is None else attribute
    return Problem(
        entity.place,
        row.warning.format(**values),
        entity.type.section,
        attribute,
        suggestion=suggestion or (row.cure.format(**values) if values else row.cure),
        severity=row.severity,
        point=point,
        entity=entity.identity,
    )
