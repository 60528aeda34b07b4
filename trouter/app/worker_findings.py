"""The findings about workers that serve with another configuration than the first one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trouter.config import RouterEntity
from trouter.config.problems import Problem, Severity


def behind_findings(router: RouterEntity, behind: Mapping[int, str]) -> Iterator[Problem]:
    """Yield a problem for each worker that is behind; ``behind`` says why, by number."""
    for number, why in sorted(behind.items()):
        yield Problem(
            router.place,
            f"worker {number} serves with an older configuration: {why}",
            router.type.section,
            suggestion="reload the router; if that does not help, kill the worker: the one that replaces it has it",
            severity=Severity.PROBLEM,
            entity=router.identity,
        )
