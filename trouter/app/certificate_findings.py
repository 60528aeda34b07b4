"""The findings about certificates of sslProfiles that have expired while the router runs, or will soon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from trouter.config import SslProfileEntity
from trouter.config.problems import Problem, Severity

#: Days before the end at which a certificate is worth a finding.
SOON_DAYS: Final = 7
_DAY_S: Final = 86_400.0
_CURE: Final = "renew the file in certFile; the router reads it within seconds"


def certificate_findings(
    profiles: Iterable[SslProfileEntity], left_s: Iterable[tuple[str, float]]
) -> Iterator[Problem]:
    """Yield a problem for each certificate that has expired, and a warning for one that does so within a week.

    ``left_s`` has the seconds until then, by profile.
    """
    entities = {entity.name: entity for entity in profiles}
    for name, left in left_s:
        entity = entities.get(name)
        if entity is None or left > SOON_DAYS * _DAY_S:
            continue
        message = (
            f"its certificate has expired {-left / _DAY_S:.1f} days ago: peers refuse it"
            if left <= 0
            else f"its certificate expires in {left / _DAY_S:.1f} days"
        )
        yield Problem(
            entity.place,
            message,
            entity.type.section,
            entity.name,
            suggestion=_CURE,
            severity=Severity.PROBLEM if left <= 0 else Severity.NOTE,
            entity=entity.identity,
        )
