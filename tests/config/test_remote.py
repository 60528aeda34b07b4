"""Requests that management refuses: files and interfaces that the configuration does not open to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trouter.config import ChangeRefused, Configuration, created, load, type_named, updated

SECURE = "secureDefaults: yes"
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


ELSEWHERE = ["", "0.0.0.0", "::", "10.1.2.4", "example.com"]


@pytest.mark.parametrize("host", ELSEWHERE)
def test_a_listener_may_stand_anywhere_unless_defaults_are_secure(host: str) -> None:
    listening(configured(), host=host)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_management_may_create_a_listener_elsewhere_only_within_allowed_bind_addresses(host: str) -> None:
    text = refused(listening, configured(SECURE), host=host, requireSsl=False)
    assert text.endswith("is not among the allowedBindAddresses of the router")
    listening(configured(f"{SECURE}\n allowedBindAddresses: *"), host=host, requireSsl=False)


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
def test_a_faulty_bind_address_is_refused(text: str) -> None:
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
        with pytest.raises(ChangeRefused, match=r"log\.outputFile: is outside of logDir"):
            changed(configuration, "log/AGENT", outputFile=str(name))


def test_without_log_dir_only_to_files_that_are_logged_to(tmp_path: Path) -> None:
    log = tmp_path / "router.log"
    configuration = configured(SECURE, more=f"log {{ module: DEFAULT, outputFile: {log} }}\n")
    changed(configuration, "log/AGENT", outputFile=str(log))
    changed(configuration, "log/AGENT", outputFile="syslog")
    assert "log.outputFile" in refused(changed, configuration, "log/AGENT", outputFile=str(tmp_path / "other.log"))


def test_management_logs_anywhere_but_to_special_files_unless_defaults_are_secure(tmp_path: Path) -> None:
    configuration = configured()
    changed(configuration, "log/AGENT", outputFile=str(tmp_path / "agent.log"))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "out").symlink_to("/dev/null")
    special = ("/dev/null", "/dev/sda", "/proc/self/mem", "/sys/power/state", tmp_path / "pipe", tmp_path / "out")
    for name in special:
        text = refused(changed, configuration, "log/AGENT", outputFile=str(name))
        assert "no device and no other special file" in text


def test_log_dir_holds_for_the_file_too(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"log\.outputFile: is outside of logDir: .* \(a file below "):
        configured(f"logDir: {tmp_path}", "log { module: AGENT, outputFile: /tmp/elsewhere.log }\n")


def recording(configuration: Configuration, folder: Path) -> Configuration:
    kind = type_named("recordLog")
    assert kind is not None
    return created(configuration, kind, None, {"dir": str(folder)})[0]


def test_management_keeps_records_below_log_dir_only(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "out").symlink_to(tmp_path)
    configuration = configured(f"logDir: {tmp_path / 'logs'}")
    recording(configuration, tmp_path / "logs" / "records")
    for folder in (tmp_path / "records", tmp_path / "logs" / "out" / "records", tmp_path / "logs" / ".." / "records"):
        assert "recordLog.dir" in refused(recording, configuration, folder)


def test_without_log_dir_only_where_records_are_kept(tmp_path: Path) -> None:
    configuration = configured(more=f"recordLog {{ dir: {tmp_path / 'kept'} }}\n")
    recording(configuration, tmp_path / "kept" / "more")
    assert "recordLog.dir" in refused(recording, configuration, tmp_path / "other")
    changed(configuration, f"recordLog/{tmp_path / 'kept'}", maxBytes=5_000_000)


SECRETS: tuple[tuple[str, dict[str, object], str], ...] = (
    ("connector", {"host": "192.0.2.1", "saslUsername": "alice"}, "saslPassword"),
    ("sslProfile", {}, "password"),
    ("listener", {"port": "0", "host": "127.0.0.1", "http": True}, "metricsToken"),
)


def with_secret(configuration: Configuration, short: str, attributes: dict[str, object]) -> Configuration:
    kind = type_named(short)
    assert kind is not None
    return created(configuration, kind, "new", attributes)[0]


@pytest.mark.parametrize(("short", "others", "secret"), SECRETS, ids=[row[0] for row in SECRETS])
def test_management_has_no_secret_from_any_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: str, others: dict[str, object], secret: str
) -> None:
    monkeypatch.setenv("SOME_SECRET", "a-secret-that-is-long-enough")
    (tmp_path / "in").mkdir()
    for path in (tmp_path / "in" / "password", tmp_path / "password"):
        path.write_text("a-secret-that-is-long-enough\n")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "password")
    for configuration in (configured(), configured(f"secretDir: {tmp_path / 'in'}")):
        for path in (tmp_path / "password", tmp_path / "in" / "link", tmp_path / "not there", Path("/etc/shadow")):
            for text in (f"file:{path}", f"file:  {path}", [f"file:{path}"]):
                attributes: dict[str, object] = {**others, secret: text}
                assert "secretDir" in refused(with_secret, configuration, short, attributes)
        assert "variables" in refused(with_secret, configuration, short, {**others, secret: "env:SOME_SECRET"})
        with_secret(configuration, short, {**others, secret: "literal:another-secret-of-16"})
    with_secret(configuration, short, {**others, secret: f"file:{tmp_path / 'in' / 'password'}"})


def test_management_may_name_the_secrets_that_the_configuration_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SECRET", "secret")
    (tmp_path / "password").write_text("secret\n")
    text = "connector {{ name: {}, host: ::1, port: 1, saslUsername: a, saslPassword: {}:{} }}\n"
    configuration = configured(
        more=text.format("f", "file", tmp_path / "password") + text.format("v", "env", "SOME_SECRET")
    )
    for secret in (f"file:{tmp_path / 'password'}", "env:SOME_SECRET"):
        with_secret(configuration, "connector", {"host": "::1", "saslUsername": "b", "saslPassword": secret})
    changed(configuration, "connector/::1:1:f", saslUsername="b")
    assert "secretDir" in refused(changed, configuration, "connector/::1:1:f", saslPassword="file:/etc/passwd")


def test_the_password_file_of_a_key_is_restricted_too(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    attributes: dict[str, object] = {"passwordFile": str(tmp_path / "password")}
    assert "passwordFile: management may name" in refused(with_secret, configured(), "sslProfile", attributes)
    with_secret(configured(f"secretDir: {tmp_path}"), "sslProfile", attributes)


#: By attribute that names a file: the type of its entity, the other attributes it needs, and whether Qpid Dispatch:
# has it.
FILES: dict[str, tuple[str, dict[str, object], str, bool]] = {
    "caCertFile": ("sslProfile", {}, "{}", True),
    "certFile": ("sslProfile", {"privateKeyFile": "{}"}, "{}", True),
    "privateKeyFile": ("sslProfile", {"certFile": "{}"}, "{}", True),
    "uidNameMappingFile": ("sslProfile", {}, "{}", True),
    "trustedCertsFile": ("listener", {"host": "127.0.0.1", "port": "0"}, "{}", True),
    "crlFile": ("sslProfile", {"caCertFile": "{}"}, "{}", False),
    "sampleKeyFile": ("vhost", {"hostname": "v"}, "{}", False),
    "tenantFrom": ("listener", {"host": "127.0.0.1", "port": "0", "multiTenant": True}, "file:{}", False),
}


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("attribute", FILES)
def test_management_does_not_reveal_which_files_exist(tmp_path: Path, attribute: str, secure: bool) -> None:
    """Each attribute is refused alike for an existing file, a folder and a missing path."""
    short, others, form, older = FILES[attribute]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to("/etc/passwd")
    for name in ("in/named", "in/other", "private"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "private").chmod(0)
    paths = [tmp_path / "private", tmp_path / "not there", tmp_path, Path("/etc/passwd"), tmp_path / "in" / "link"]
    defaults = "secureDefaults: yes" if secure else ""

    def asked(configuration: Configuration, path: Path) -> str:
        """Return the refusal without the name of the file; empty if the entity was created."""
        rest = {name: value.format(path) if isinstance(value, str) else value for name, value in others.items()}
        try:
            with_secret(configuration, short, {**rest, attribute: form.format(path)})
        except ChangeRefused as refused:
            return f"{refused.status} {refused.description}"
        return ""

    for router in (defaults, f"{defaults}\n    secretDir: {tmp_path / 'in'}"):
        answers = {asked(configured(router), path) for path in paths}
        if secure or not older:
            assert [answer.startswith("403 ") and "secretDir" in answer for answer in answers] == [True]
        else:
            assert not [answer for answer in answers if answer.startswith("403 ")]
    assert not asked(configured(router), tmp_path / "in" / "other").startswith("403")
    more = f"sslProfile {{ name: p, uidNameMappingFile: {tmp_path / 'in' / 'named'} }}\n"
    assert not asked(configured(defaults, more), tmp_path / "in" / "named").startswith("403")


def test_management_does_not_reveal_which_folders_exist(tmp_path: Path) -> None:
    answers = {
        refused(listening, configured(), host="::1", httpRootDir=str(path)) for path in (tmp_path, tmp_path / "none")
    }
    assert len(answers) == 1
    configuration = configured("secureDefaults: yes", f"policy {{ policyDir: {tmp_path} }}\n")
    answers = {
        refused(changed, configuration, "policy/None", policyDir=path) for path in ("/etc", "/none", "/etc/passwd")
    }
    assert len(answers) == 1
    changed(configuration, "policy/None", policyDir=str(tmp_path))
