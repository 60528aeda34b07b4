"""The finding about bugs of the router itself."""

from __future__ import annotations

import time
from collections.abc import Iterator

from trouter._bugs import BUGS
from trouter.config import RouterEntity
from trouter.config.problems import Problem, Severity


def bug_findings(router: RouterEntity) -> Iterator[Problem]:
    """Yield a finding if this process has met a bug since its start."""
    if BUGS.total:
        at = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(BUGS.last_at_s))
        bugs = "a bug" if BUGS.total == 1 else f"{BUGS.total} bugs"
        yield Problem(
            router.place,
            f"has met {bugs} of its own since its start, the last at {at}: {BUGS.last_text}",
            router.type.section,
            suggestion="the log has the traceback in its module ERROR; please report it",
            severity=Severity.NOTE,
            entity=router.identity,
        )
