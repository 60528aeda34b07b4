"""audit_log: called directly, and in a router that writes records of a real client to a log of their own."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import MappingProxyType

import pytest
from proton.utils import BlockingConnection

from tests.routers import DEADLINE_S, running
from trouter.hooks import ConfigurationRefused, Plugins, RouterFacts
from trouter_plugins import audit_log


def configured(kinds: str) -> Plugins:
    plugins = Plugins()
    plugins.add(audit_log, "audit_log")
    plugins.configure(RouterFacts("R"), {"audit_log": {"kinds": kinds}})
    return plugins


@pytest.mark.parametrize(
    ("kinds", "written"),
    [
        ("", []),
        ("alarm", ["alarm"]),
        ("audit", ["alarm", "sasl.outcome"]),
        ("audit, latency.sketch", ["alarm", "sasl.outcome", "latency.sketch"]),
        ("all", ["alarm", "sasl.outcome", "latency.sketch"]),
    ],
)
def test_the_kinds_that_are_configured_are_written(
    kinds: str, written: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    plugins = configured(kinds)
    caplog.set_level(logging.INFO, "trouter.AUDIT")
    for kind in ("alarm", "sasl.outcome", "latency.sketch"):
        plugins.observe(MappingProxyType({"k": kind, "n": 1}))
    assert [json.loads(record.getMessage())["k"] for record in caplog.records] == written
    assert not plugins.faults


@pytest.mark.parametrize("settings", [{"kind": "all"}, {"kinds": 1}])
def test_a_wrong_setting_is_refused(settings: dict[str, object]) -> None:
    plugins = Plugins()
    plugins.add(audit_log, "audit_log")
    with pytest.raises(ConfigurationRefused, match="audit_log"):
        plugins.configure(RouterFacts("R"), {"audit_log": settings})


def test_records_of_a_client_are_lines_of_the_module_audit(tmp_path: Path) -> None:
    audit = tmp_path / "audit.log"
    configuration = f"""
    router {{
        id: R
        pluginSettings: {{"audit_log": {{"kinds": "audit"}}}}
    }}
    listener {{ host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }}
    log {{ module: AUDIT, outputFile: {audit}, includeTimestamp: no }}
    """
    evil = "me\r\n\x1b[31m{"
    with running(configuration, tmp_path) as router:
        BlockingConnection(f"127.0.0.1:{router.port}", timeout=DEADLINE_S, container_id=evil).close()
        router.wait_for_line(r"Connection Closed")
        assert router.stop() == 0
    lines = audit.read_text().splitlines()
    records = [json.loads(line.removeprefix("AUDIT (info) ")) for line in lines]
    assert {"sasl.outcome", "connection.opened", "connection.closed"} <= {record["k"] for record in records}
    assert [record["n"] for record in records] == list(range(len(records)))
    (opened,) = [record for record in records if record["k"] == "connection.opened"]
    assert opened["container"] == "me\\r\\n\\x1b[31m{"
