"""Parts that cannot be served: the rest serves; the log, /readyz, /metrics and management report them."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.http.test_live import get, http_port, scrape
from tests.management.node import node_of
from tests.routers import RunningRouter, StartRouter, process

pytestmark = pytest.mark.slow

FRONT = "listener { name: front, host: 127.0.0.1, port: 0, saslMechanisms: ANONYMOUS }\n"
WEB = "listener { name: web, host: 127.0.0.1, port: 0, http: yes, websockets: no }\n"
TLS = """
sslProfile {{
    name: site
    certFile: {0}/127-0-0-1.pem
    privateKeyFile: {0}/127-0-0-1.key
}}
listener {{
    name: safe
    host: 127.0.0.1
    port: 0
    sslProfile: site
    requireSsl: yes
    saslMechanisms: ANONYMOUS
}}
"""


def findings(router: RunningRouter, severity: str) -> dict[str, str]:
    with node_of(router.port) as node:
        return {row["entity"]: row["message"] for row in node.query("finding") if row["severity"] == severity}


def test_a_certificate_that_is_not_there_fails_its_listener_only(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router("router { id: R }\n" + FRONT + WEB + TLS.format(tmp_path))
    told = router.wait_for_line(r"MAIN \(critical\) .*listener\.safe: (.*)")[1]
    assert "will not be opened: its sslProfile cannot be used: certFile: " in told
    assert len(router.ports) == 1
    port = http_port(router)
    status, body = get(port, "/readyz")
    assert status == 503
    lines = body.splitlines()
    assert lines[0] == "NOT OK"
    assert any(line.startswith("listener/127.0.0.1:0:safe: will not be opened: ") for line in lines[1:])
    assert get(port, "/livez") == (200, "OK")
    figures = scrape(port)
    assert figures["trouter_ready"] == 0
    assert figures["trouter_configuration_findings{'severity': 'problem'}"] >= 2
    assert "will not be opened" in findings(router, "problem")["listener/127.0.0.1:0:safe"]
    # Once the files exist, the listener opens by itself.
    Authority(tmp_path, "Test").pair("127.0.0.1")
    router.wait_for_line(r"Listening on 127\.0\.0\.1:\d+ \(safe\)")
    assert findings(router, "problem") == {}
    assert get(port, "/readyz") == (200, "OK")


def test_a_version_of_tls_that_there_is_not_fails_its_profile_only(start_router: StartRouter, tmp_path: Path) -> None:
    Authority(tmp_path, "Test").pair("127.0.0.1")
    text = TLS.format(tmp_path).replace("name: site", "name: site\n    protocols: SSLv23")
    router = start_router("router { id: R }\n" + FRONT + WEB + text)
    told = router.wait_for_line(r"MAIN \(critical\) .*listener\.safe: (.*)")[1]
    assert "will not be opened: its sslProfile cannot be used: protocols: 'SSLv23' is not a version of TLS" in told
    assert len(router.ports) == 1
    status, body = get(http_port(router), "/readyz")
    assert status == 503
    assert "listener/127.0.0.1:0:safe: will not be opened: " in body


def test_with_secure_defaults_the_router_does_not_start(tmp_path: Path) -> None:
    with process("router { id: R, secureDefaults: yes }\n" + TLS.format(tmp_path), tmp_path) as router:
        assert router.wait() == 1
        assert "with secureDefaults it is refused" in router.text()


def test_a_reload_that_would_close_a_listener_is_refused(start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router("router { id: R }\n" + FRONT)
    router.configuration.write_text("router { id: R }\n" + FRONT + TLS.format(tmp_path))
    router.process.send_signal(signal.SIGHUP)
    router.wait_for_line(r"MAIN \(error\) Reload refused, nothing was changed")
    assert findings(router, "problem") == {}


def test_an_unsafe_setting_is_counted_and_reported_and_is_no_fault(start_router: StartRouter) -> None:
    router = start_router(
        "router { id: R, mode: interior }\n"
        + FRONT
        + WEB
        + FRONT.replace("front", "in").replace("port: 0", "port: 0, role: inter-router")
    )
    router.wait_for_line(r"MAIN \(warning\) unsafe: .*listener\.role: will let in every host that reaches 127\.0\.0\.1")
    port = http_port(router)
    assert get(port, "/readyz") == (200, "OK")
    assert scrape(port)["trouter_configuration_findings{'severity': 'unsafe'}"] == 1
    assert "as a router of the network" in findings(router, "unsafe")["listener/127.0.0.1:0:in"]


def test_a_mechanism_that_nothing_serves_is_passed_over(start_router: StartRouter) -> None:
    router = start_router(
        "router { id: R }\n" + FRONT + WEB + FRONT.replace("front", "odd").replace("ANONYMOUS", "OTP X-OLD")
    )
    status, body = get(http_port(router), "/readyz")
    assert status == 503
    assert "listener/127.0.0.1:0:odd: no client will be able to log in" in body
    assert len(router.ports) == 2


def test_a_section_that_is_left_out_makes_the_router_not_ready(start_router: StartRouter) -> None:
    router = start_router("router { id: R }\n" + FRONT + WEB + "linkRoute { prefix: a, pattern: b, direction: in }\n")
    port = http_port(router)
    status, body = get(port, "/readyz")
    assert (status, body.splitlines()[0]) == (503, "NOT OK")
    assert "linkRoute" in body
    assert "this section will be left out" in body
    assert get(port, "/livez") == (200, "OK")
    with node_of(router.port) as node:
        assert node.query("router.config.linkRoute") == []
