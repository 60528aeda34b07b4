"""The findings about a running router: about its configuration, and about what is down of it."""

from __future__ import annotations

from trouter.backbone.uplinks import Uplinks
from trouter.columns.router import UplinkFacts
from trouter.config import Configuration, Problem
from trouter.config.findings import OVERTAKEN, evaluate, judged, ordered
from trouter.config.problems import Severity
from trouter.net.reach import Reach
from trouter.telemetry.clocks import now_us

from .bug_findings import bug_findings
from .certificate_findings import certificate_findings
from .draining import Drain
from .link_findings import auto_link_findings, closed_findings, connector_findings, refusal_findings, waiting_findings
from .parts import ConfiguredParts
from .service import Service
from .uplink_findings import uplink_fault, uplink_findings
from .worker_findings import behind_findings


class RouterFindings:
    """The findings about one router, evaluated when they are asked for."""

    def __init__(self, parts: ConfiguredParts, drain: Drain, reach: Reach, uplinks: Uplinks | None = None) -> None:
        """``uplinks`` are those of an edge router."""
        self._parts = parts
        self._drain = drain
        self._reach = reach
        self._uplinks = uplinks
        #: The entities in service that the last findings about a configuration are of, and these findings.
        self._judged: Service | None = None
        self._of_configuration: tuple[Problem, ...] = ()

    def list_findings(self, configuration: Configuration, service: Service) -> tuple[Problem, ...]:
        """Return the findings about a configuration and what is down of it, the most severe first.

        ``service`` has the entities of it that are served; another configuration has another one.
        """
        if self._judged is not service:
            self._judged, self._of_configuration = service, self._judge(configuration, service)
        router, parts = configuration.router, self._parts
        connectors = parts.connectors.running
        down = [*self._drain.findings(router), *connector_findings(connectors)]
        down += certificate_findings(configuration.ssl_profiles, parts.secure.left())
        down += auto_link_findings(parts.routes.auto_links.values())
        down += closed_findings(parts.listeners.closed.values())
        down += refusal_findings((each.entity for each in parts.listeners.running), parts.guard.refusals)
        if self._uplinks is not None:
            down += uplink_findings(router, self._uplinks, connectors)
        down += behind_findings(router, self._reach.behind)
        down += bug_findings(router)
        down += waiting_findings(router, parts.guard)
        return ordered([*self._of_configuration, *down]) if down else self._of_configuration

    def _judge(self, configuration: Configuration, service: Service) -> tuple[Problem, ...]:
        """Return the findings about the configuration itself."""
        unserved = {problem.entity for problem in service.withheld}
        rest = [
            one
            for one in evaluate(configuration, self._parts.plugins)
            if not (one.severity is Severity.PROBLEM and (one.entity in unserved or one.point in OVERTAKEN))
        ]
        return judged(configuration, [*service.withheld, *rest])

    def uplink(self) -> UplinkFacts | None:
        """Return whether an edge router has an uplink that it can use; None on other routers."""
        if self._uplinks is None:
            return None
        fault = uplink_fault(self._uplinks, self._parts.connectors.running)
        return UplinkFacts(fault, (self._uplinks.down_since_us or now_us()) if fault else 0)
