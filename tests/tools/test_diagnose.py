"""The archive of `diagnose`: its contents for one router and for a network, without any planted secret."""

from __future__ import annotations

import json
import stat
import tarfile
from pathlib import Path

import pytest

from tests.networks import client_port, network
from tests.tools.live import run
from trouter.client import connect
from trouter.tools.redaction import without_secrets

SECRETS = {
    "connector": "Sesame-of-the-connector",
    "profile": "Sesame-of-the-key",
    "metrics": "Sesame-of-the-metrics",
    "client": "Sesame-of-a-client",
    "url": "Sesame-of-the-url",
}
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvSesameOfThePem\n-----END PRIVATE KEY-----"


MORE = f"""
listener {{
    host: 127.0.0.1
    port: 0
    http: yes
    metricsToken: {SECRETS["metrics"]}
}}
sslProfile {{
    name: tls
    password: {SECRETS["profile"]}
}}
connector {{
    name: out
    host: 127.0.0.1
    port: 1
    saslMechanisms: PLAIN
    saslUsername: me
    saslPassword: {SECRETS["connector"]}
}}
"""
LOG = f"""dialling amqp://ann:{SECRETS["url"]}@host
Authorization: Bearer {JWT}
{PEM}
metricsToken={SECRETS["metrics"]}
"""


def texts(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as tar:
        return {name: tar.extractfile(name).read().decode() for name in tar.getnames()}  # type: ignore[union-attr]


async def test_an_archive_of_the_network_holds_its_tables_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    log, archive = tmp_path / "any.log", tmp_path / "found.tar.gz"
    log.write_text(LOG)
    with network(tmp_path, {"A": [], "B": ["A"]}, more={"A": MORE, "B": MORE}) as routers:
        bus = f"127.0.0.1:{client_port(routers['A'])}"
        conf = routers["A"].configuration
        async with connect(f"amqp://{bus}", properties={"password": SECRETS["client"]}):
            made = await run(
                *("diagnose", "-b", bus, "--all-routers", "-o", str(archive)),
                *("--file", str(log), "--config", str(conf)),
            )
        again = await run("diagnose", "-b", bus, "-o", str(archive))
    assert (made.status, made.err) == (0, "")
    assert (again.status, again.out) == (1, "")
    assert f"{archive}: File exists" in again.err
    found = texts(archive)
    assert made.lines[-1] == str(archive)
    assert [line.split()[-1] for line in made.lines[:-1]] == list(found)
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    for router in "AB":
        assert json.loads(found[f"{router}/tables/router.json"])[0]["id"] == router
        assert {"connector.json", "connection.json", "router.link.json", "router.address.json"} <= {
            name.rpartition("/")[2] for name in found if name.startswith(f"{router}/tables/")
        }
        assert "Operational" in found[f"{router}/log.json"]
        assert json.loads(found[f"{router}/memory.json"])
    assert json.loads(found["versions.json"])["trouter"]
    assert "saslUsername: me" in found[f"configuration/1-{conf.name}"]
    assert "dialling amqp://ann:*****@host" in found["files/1-any.log"]
    everything = "\n".join(found.values())
    assert [secret for secret in (*SECRETS.values(), JWT, "SesameOfThePem") if secret in everything] == []


async def test_a_router_or_file_out_of_reach_is_a_problem_and_the_rest_is_kept(tmp_path: Path) -> None:
    archive = tmp_path / "found.tar.gz"
    made = await run("diagnose", "-b", "127.0.0.1:1", "-o", str(archive), "--file", str(tmp_path / "absent.log"))
    assert made.status == 1
    assert "trouter diagnose: cannot connect to " in made.err
    assert f"{tmp_path / 'absent.log'}: No such file or directory" in made.err
    assert list(texts(archive)) == ["versions.json", "problems.txt"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("    saslPassword: a b, c\n    x: 1", "    saslPassword: *****\n    x: 1"),
        ('{"password": "a\\"b", "port": 1}', '{"password": "*****", "port": 1}'),
        ("passwordFile: /etc/p", "passwordFile: /etc/p"),
        ('{"saslPassword": null}', '{"saslPassword": null}'),
        ("certDb: pass:word", "certDb: pass:*****"),
        ("amqps://u:p%40w@h/x", "amqps://u:*****@h/x"),
        ("client_secret = 'it''s'", "client_secret = *****"),
        ("mine", "*****"),
        pytest.param("a" * 300_000 + "_token=x", "a" * 300_000 + "_token=*****", id="a word of any length"),
    ],
)
def test_secrets_are_struck_out_of_any_text(text: str, shown: str) -> None:
    assert without_secrets(text, ["mine", ""]) == shown
