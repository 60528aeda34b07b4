"""Writes records as lines of JSON to the log, module AUDIT: ``pluginSettings: {"audit_log": {"kinds": "audit"}}``."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping

from trouter.hooks import ConfigurationRefused, RouterFacts, hookimpl

log = logging.getLogger("trouter.AUDIT")

#: What measures and is no evidence.
_TELEMETRY = frozenset({"delivery.interval", "latency.sketch", "message.sampled"})


class Plugin:
    """The writer of one router; it writes nothing unless it is configured."""

    def __init__(self) -> None:
        #: The kinds to write, None for all.
        self.observes: frozenset[str] | None = frozenset()
        self._all_but: frozenset[str] = frozenset()

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        """Take the setting ``kinds``: a list of kinds, or ``audit`` for all that is evidence, or ``all``."""
        settings = router.settings
        unknown = sorted(set(settings) - {"kinds"})
        kinds = settings.get("kinds", "")
        if unknown or not isinstance(kinds, str):
            what = f"there is no setting {unknown[0]}" if unknown else "kinds must be a text"
            raise ConfigurationRefused(f'{what}; write {{"audit_log": {{"kinds": "audit"}}}}')
        words = frozenset(re.findall(r"[^\s,;]+", kinds))
        self._all_but = _TELEMETRY if "audit" in words and "all" not in words else frozenset()
        self._all_but -= words
        self.observes = None if words & {"audit", "all"} else words

    @hookimpl
    def observe(self, record: Mapping[str, object]) -> None:
        if record["k"] not in self._all_but:
            log.info("%s", json.dumps(record if isinstance(record, dict) else dict(record), ensure_ascii=False))
