"""A certificate that expires while the router runs is found where an operator looks first."""

from __future__ import annotations

import time
from pathlib import Path

import trio

from tests.tls.pki import DAY, Authority
from trouter.app.process import RouterProcess
from trouter.config import load
from trouter.hooks import Plugins


async def test_a_certificate_that_expires_is_a_problem_and_one_that_soon_does_a_warning(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    pair = Authority(tmp_path).issue("CN=localhost", "localhost", days=30)
    days = 0.0
    text = f"""
    router {{ id: R }}
    sslProfile {{
        name: p
        certFile: {pair.cert}
        privateKeyFile: {pair.key}
    }}
    listener {{
        host: 127.0.0.1
        port: 0
        sslProfile: p
    }}
    """
    process = RouterProcess(load(text=text), Plugins.load(), calendar=lambda: time.time() + days * DAY.total_seconds())
    await nursery.start(process.run)

    def found() -> list[tuple[str, str]]:
        of_profile = [each for each in process.in_force.findings() if each.section == "sslProfile"]
        return [(str(each.severity), each.message) for each in of_profile]

    assert (found(), process.site.ready()) == ([], True)
    days = 25.0
    assert (found(), process.site.ready()) == ([("warning", "its certificate expires in 5.0 days")], True)
    days = 32.0
    assert found() == [("problem", "its certificate has expired 2.0 days ago: peers refuse it")]
    assert not process.site.ready()
    assert any("its certificate has expired" in reason for reason in process.site.reasons())
    nursery.cancel_scope.cancel()
