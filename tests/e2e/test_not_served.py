"""Parts that cannot be served: the rest serves; the log, /readyz, /metrics and management report them."""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Final, Protocol

import pytest
import trio

from tests.certificates import Authority
from tests.http.test_live import get, http_port, scrape
from tests.management.node import node_of
from tests.routers import DEADLINE_S, ROOT, RunningRouter, StartRouter, process
from trouter.client import Anonymous, ClientError, Message, connect

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


#: A configuration of OpenSSL that forbids versions before TLS 1.2.
MINIMUM: Final = """
openssl_conf = all
[all]
ssl_conf = tls
[tls]
system_default = limits
[limits]
MinProtocol = TLSv1.2
"""


class Sender(Protocol):
    async def __call__(self, *, tls: bool) -> None:
        """Send a message, and receive it."""


def findings(router: RunningRouter, severity: str) -> dict[str, str]:
    with node_of(router.port) as node:
        return {row["entity"]: row["message"] for row in node.query("finding") if row["severity"] == severity}


def client_of(port: int, folder: Path) -> Sender:
    """Return a function that sends a message through a listener at this port: over TLS, or in clear."""

    async def send(*, tls: bool) -> None:
        context = ssl.create_default_context(cafile=str(folder / "ca.pem")) if tls else None
        with trio.fail_after(DEADLINE_S):
            async with (
                connect(
                    f"amqp{'s' if tls else ''}://127.0.0.1:{port}", ssl_context=context, sasl=[Anonymous()]
                ) as client,
                client.open_receiver("a") as receiver,
                client.open_sender("a") as sender,
            ):
                await sender.submit(Message("hello"))
                assert (await receiver.receive()).message.body == "hello"

    return send


def assert_reported(router: RunningRouter, fault: str) -> None:
    """Check that log, page, metric and management name the fault of the sslProfile `site`."""
    told = router.wait_for_line(r"MAIN \(critical\) .*listener\.safe: (.*)")[1]
    assert "will open, and no TLS handshake with it will succeed: its sslProfile cannot be used: " in told
    assert fault in told
    status, body = get(http_port(router), "/readyz")
    assert status == 503
    assert f"listener/127.0.0.1:0:safe: {told}" in body.splitlines()
    assert findings(router, "problem")["listener/127.0.0.1:0:safe"] == told
    assert scrape(http_port(router))["trouter_configuration_findings{'severity': 'problem'}"] >= 2
    checked = subprocess.run(
        [sys.executable, "-m", "trouter", "check", str(router.configuration)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert checked.returncode == 1
    assert re.search(
        rf"^problem: .* sslProfile\.site: .*{re.escape(fault)}.*; its listeners will open, and no TLS handshake",
        checked.stderr,
        re.MULTILINE,
    ), checked.stderr


def encrypt(key: Path) -> None:
    """Protect a key by the password `right`."""
    secret = key.with_suffix(".secret")
    command = ["openssl", "pkey", "-in", str(key), "-aes256", "-passout", "pass:right", "-out", str(secret)]
    subprocess.run(command, check=True, capture_output=True, env={"PATH": os.environ["PATH"]})
    secret.replace(key)


def safe_port(router: RunningRouter) -> int:
    return int(router.wait_for_line(r"Listening on 127\.0\.0\.1:(\d+) \(safe\)")[1])


async def test_a_listener_whose_certificate_is_missing_opens_and_serves_once_it_is_there(
    start_router: StartRouter, tmp_path: Path
) -> None:
    router = start_router("router { id: R }\n" + FRONT + WEB + TLS.format(tmp_path))
    assert_reported(router, "certFile: ")
    authority = Authority(tmp_path, "Test")
    send = client_of(safe_port(router), tmp_path)
    with pytest.raises(OSError, match=r"(?i)eof|reset|closed"):
        await send(tls=True)
    router.wait_for_line(r"Connection from .* failed: TLS: sslProfile site cannot be used: certFile: ")
    assert get(http_port(router), "/livez") == (200, "OK")
    authority.pair("127.0.0.1")
    router.wait_for_line("sslProfile site: new connections use its new files")
    await send(tls=True)
    assert findings(router, "problem") == {}
    assert get(http_port(router), "/readyz") == (200, "OK")


#: By name: what is changed in the configuration, and the fault that is reported.
FAULTS = {
    "unknown version": ("protocols: SSLv23", "protocols: 'SSLv23' is not a version of TLS"),
    "version below the machine's": ("protocols: TLSv1", "protocols: this machine's OpenSSL configuration forbids"),
    "password": ("password: literal:wrong", "privateKeyFile: this key cannot be read, or not with this password"),
    "authorities": ("caCertFile: /no/such", "caCertFile: "),
}


@pytest.mark.parametrize("requires", [True, False], ids=["requireSsl", "TLS if they like"])
@pytest.mark.parametrize(("attribute", "fault"), FAULTS.values(), ids=FAULTS)
async def test_clear_clients_are_served_where_only_versions_of_tls_are_at_fault(
    attribute: str,
    fault: str,
    requires: bool,
    start_router: StartRouter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = tmp_path / "openssl.cnf"
    limits.write_text(MINIMUM)
    monkeypatch.setenv("OPENSSL_CONF", str(limits))
    _, key = Authority(tmp_path, "Test").pair("127.0.0.1")
    if attribute.startswith("password"):
        encrypt(key)
    text = TLS.format(tmp_path).replace("name: site", f"name: site\n    {attribute}")
    if not requires:
        text = text.replace("requireSsl: yes", "requireSsl: no")
    router = start_router("router { id: R }\n" + FRONT + WEB + text)
    assert_reported(router, fault)
    send = client_of(safe_port(router), tmp_path)
    with pytest.raises(OSError, match=r"(?i)eof|reset|closed"):
        await send(tls=True)
    router.wait_for_line(rf"failed: TLS: sslProfile site cannot be used: {re.escape(fault)}")
    if attribute.startswith("protocols") and not requires:
        await send(tls=False)
    else:
        with pytest.raises((OSError, ClientError)):
            await send(tls=False)


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
    count = len(router.matching(r"MAIN \(warning\) unsafe: "))
    assert scrape(port)["trouter_configuration_findings{'severity': 'unsafe'}"] == count
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
