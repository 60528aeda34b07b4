"""A file of an earlier 1.x release of Qpid Dispatch is served without what 1.19 dropped, and the loss is reported."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import urlopen

import pytest
from proton import Message
from proton.utils import BlockingConnection

from tests.routers import DEADLINE_S, running
from trouter.cli import main
from trouter.config import ConfigurationError, load
from trouter.config.earlier import MODULES, SECTIONS
from trouter.config.migrate import migrated
from trouter.config.problems import Severity
from trouter.config.strictness import REFUSED

FILE = """\
router {
    id: A
}
listener {
    host: 127.0.0.1
    port: 0
    authenticatePeer: no
}
listener {
    host: 127.0.0.1
    port: 0
    http: yes
}
tcpListener {
    host: 127.0.0.1
    port: 9090
    address: web
}
http-connector {
    port: 9091
    address: web
}
log {
    module: TCP_ADAPTOR
    enable: debug+
}
"""
LOST = ("no program can connect by TCP", "no messages go to this HTTP server", "nothing is logged for it")


@pytest.mark.parametrize(
    "text",
    [
        *(f"{name} {{\n address: a\n port: 1\n}}" for name in SECTIONS),
        *(f"log {{ module: {name} }}" for name in MODULES),
    ],
)
def test_a_section_of_an_earlier_release_is_left_out_with_a_problem_and_its_cure(text: str) -> None:
    configuration = load(text=f"{text}\nlistener {{ host: ::1 }}")
    (found,) = configuration.warnings
    assert (found.point, found.severity, found.place.line) == ("earlier-release", Severity.PROBLEM, 1)
    assert found.suggestion
    assert len(configuration.listeners) == 1
    with pytest.raises(ConfigurationError, match=REFUSED):
        load(text=f"router {{ secureDefaults: yes }}\n{text}")


def test_migration_takes_them_away_and_names_what_to_use_instead() -> None:
    result = migrated(FILE, "old.conf")
    assert [(change.old, change.unsupported) for change in result.changes] == [
        ("tcpListener", True),
        ("http-connector", True),
        ("log with module: TCP_ADAPTOR", True),
    ]
    assert all(change.why for change in result.changes)
    assert load(text=result.text).warnings == ()


def test_the_rest_of_the_file_is_served_and_each_loss_is_shown_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(FILE, tmp_path) as router:
        connection = BlockingConnection(f"127.0.0.1:{router.ports[0]}", timeout=DEADLINE_S)
        receiver = connection.create_receiver("a", credit=10)
        connection.create_sender("a").link.send(Message(body="served"))
        assert receiver.receive(timeout=DEADLINE_S).body == "served"
        connection.close()
        port = router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1]
        metrics = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S).read().decode()
        assert 'trouter_configuration_findings{severity="problem"} 3.0' in metrics
        assert main(["manage", "-b", f"127.0.0.1:{router.ports[0]}", "query", "--type", "finding"]) == 0
        shown = [row["message"] for row in json.loads(capsys.readouterr().out) if row["severity"] == "problem"]
        for loss in LOST:
            router.wait_for_line(rf"\(critical\) problem: .*{loss}")
            assert any(loss in message for message in shown)
    assert main(["check", str(router.configuration)]) == 1
    captured = capsys.readouterr()
    assert all(loss in captured.err for loss in LOST)
    assert "not served as written, 3 problem(s)" in captured.err
