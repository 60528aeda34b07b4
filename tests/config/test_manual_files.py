"""The three kinds of files in the manual load unchanged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trouter.config import Configuration, load

FILES = Path(__file__).parent / "manual"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a directory with all files that the configurations name."""
    for name in ("console", "tls", "policies"):
        (tmp_path / name).mkdir()
    for name in ("ca.pem", "server.pem", "server.key"):
        (tmp_path / "tls" / name).write_text("a certificate or a key\n")
    (tmp_path / "tls" / "password").write_text("of the file\nand more\n")
    (tmp_path / "tls" / "names.json").write_text('{"Example;alice;00": "alice"}')
    shutil.copy(FILES / "policies.json", tmp_path / "policies" / "traders.json")
    monkeypatch.setenv("TEST_KEY_PASSWORD", "of the environment")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(name: str) -> Configuration:
    return load(FILES / name)


@pytest.mark.usefixtures("site")
def test_a_standalone_router() -> None:
    configuration = loaded("standalone.conf")
    assert [configuration.unserved(listener) for listener in configuration.listeners] == [(), ()]
    assert configuration.listeners[1].serves_http
    assert [rule.distribution for rule in configuration.addresses].count("multicast") == 3
    assert configuration.logs[0].output_file == "stderr"
    assert {warning.key for warning in configuration.warnings} == {
        "workerThreads", "httpRoot", "output", "timestamp", "source",
    }  # fmt: skip


@pytest.mark.usefixtures("site")
def test_a_router_of_a_network_with_a_broker() -> None:
    configuration = loaded("interior_with_broker.conf")
    assert not [entity for entity in configuration.entities if configuration.unserved(entity)]
    assert "listener/0.0.0.0:5001" in {entity.name for entity in configuration.listeners}
    assert [link.phase for link in configuration.auto_links] == [1, 0, 1]
    assert configuration.addresses[0].egress_phase == 1
    warnings = [str(warning) for warning in configuration.warnings]
    assert not any("not served" in warning for warning in warnings)


@pytest.mark.usefixtures("site")
def test_a_hardened_router_of_several_tenants() -> None:
    configuration = loaded("hardened_multitenant.conf")
    assert [vhost.hostname for vhost in configuration.vhosts] == ["example.com", "$default", "traders.com"]
    assert not all(configuration.unserved(listener) for listener in configuration.listeners)
    assert configuration.unserved(configuration.connectors[0]) == ()
    assert [str(profile.key_password()) for profile in configuration.ssl_profiles] == ["***", "***"]
    first, second = (profile.key_password() for profile in configuration.ssl_profiles)
    assert first is not None
    assert first.reveal() == "of the file"
    assert second is not None
    assert second.reveal() == "of the environment"
    assert configuration.auth_services[0].address == ("192.0.2.20", "5671")
    groups = configuration.vhosts[0].groups
    assert groups["admin"].users == ("alice", "bob")
    assert groups["$default"].sources[-1] == "{user}.inbox"
    assert configuration.vhosts[0].max_connections_per_host == 100
