"""What management may not ask for: files and interfaces of this machine that the configuration does not open to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from trouter.config import ChangeRefused, Configuration, created, load, type_named, updated

LISTENER = "listener { name: l, host: 127.0.0.1, port: 0 }\n"


def configured(router: str = "", more: str = LISTENER) -> Configuration:
    return load(text=f"router {{\n    id: R\n    {router}\n}}\n{more}")


def listening(configuration: Configuration, **attributes: object) -> Configuration:
    kind = type_named("listener")
    assert kind is not None
    return created(configuration, kind, "new", {"port": "0", **attributes})[0]


def changed(configuration: Configuration, identity: str, **attributes: object) -> Configuration:
    entity = configuration.find(identity)
    assert entity is not None
    return updated(configuration, entity, attributes)[0]


def refused(change: object, *arguments: object, **attributes: object) -> str:
    assert callable(change)
    with pytest.raises(ChangeRefused) as refusal:
        change(*arguments, **attributes)
    assert refusal.value.status == 403
    return refusal.value.description


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "10.1.2.3"])
def test_a_listener_may_stand_where_others_stand_and_on_this_machine(host: str) -> None:
    listening(configured(more="listener { host: 10.1.2.3, port: 1 }\n"), host=host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.1.2.4", "example.com"])
def test_a_listener_may_stand_nowhere_else_unless_it_is_said(host: str) -> None:
    text = refused(listening, configured(), host=host)
    assert text.endswith("is not among the allowedBindAddresses of the router")
    listening(configured("allowedBindAddresses: *"), host=host)


@pytest.mark.parametrize(
    ("allowed", "host", "may"),
    [
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "127.0.0.1", False),
        ("0.0.0.0/0", "0.0.0.0", False),
        ("0.0.0.0", "0.0.0.0", True),
        ("0.0.0.0/0", "", False),
        ("fd00::/8 inside.example.com", "fd00::1", True),
        ("fd00::/8 inside.example.com", "INSIDE.example.com", True),
        ("fd00::/8 inside.example.com", "example.com", False),
    ],
)
def test_the_list_holds_networks_and_names(allowed: str, host: str, may: bool) -> None:
    configuration = configured(f"allowedBindAddresses: {allowed}")
    if may:
        listening(configuration, host=host)
    else:
        refused(listening, configuration, host=host)


def test_a_listener_may_not_be_moved_either_but_may_be_changed() -> None:
    configuration = configured("allowedBindAddresses: 10.0.0.0/8")
    changed(configuration, "listener/127.0.0.1:0:l", idleTimeoutSeconds=5)
    refused(changed, configuration, "listener/127.0.0.1:0:l", host="0.0.0.0")


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/8", "a b/c", "-a"])
def test_what_is_no_address_is_no_entry(text: str) -> None:
    with pytest.raises(Exception, match="is no address, network or host name"):
        configured(f"allowedBindAddresses: {text}")


def test_management_serves_no_folder_that_is_not_served_already(tmp_path: Path) -> None:
    (tmp_path / "console" / "inner").mkdir(parents=True)
    (tmp_path / "console" / "out").symlink_to("/proc")
    configuration = configured(more=f"listener {{ host: ::1, port: 0, httpRootDir: {tmp_path / 'console'} }}\n")
    listening(configuration, host="::1", httpRootDir=str(tmp_path / "console" / "inner"))
    for folder in ("/proc", "/", str(tmp_path), str(tmp_path / "console" / "out")):
        assert "listener.httpRootDir" in refused(listening, configuration, host="::1", httpRootDir=folder)


def test_management_logs_to_files_below_log_dir_only(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    configuration = configured(f"logDir: {tmp_path / 'logs'}")
    (tmp_path / "logs" / "out").symlink_to(tmp_path)
    changed(configuration, "log/AGENT", outputFile=str(tmp_path / "logs" / "agent.log"))
    changed(configuration, "log/AGENT", outputFile="stderr")
    for name in (tmp_path / "a.log", tmp_path / "logs" / ".." / "a.log", tmp_path / "logs" / "out" / "a.log", "a.log"):
        with pytest.raises(ChangeRefused, match=r"log\.outputFile: lies outside of logDir"):
            changed(configuration, "log/AGENT", outputFile=str(name))


def test_without_log_dir_only_to_files_that_are_logged_to(tmp_path: Path) -> None:
    log = tmp_path / "router.log"
    configuration = configured(more=f"log {{ module: DEFAULT, outputFile: {log} }}\n")
    changed(configuration, "log/AGENT", outputFile=str(log))
    changed(configuration, "log/AGENT", outputFile="syslog")
    assert "log.outputFile" in refused(changed, configuration, "log/AGENT", outputFile=str(tmp_path / "other.log"))


def test_log_dir_holds_for_the_file_too(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"log\.outputFile: lies outside of logDir: .* \(a file below "):
        configured(f"logDir: {tmp_path}", "log { module: AGENT, outputFile: /tmp/elsewhere.log }\n")
