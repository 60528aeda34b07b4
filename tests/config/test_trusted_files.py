"""Files that grant trust, logs and records: strangers may change none of them, nor put another one in their place."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.kubernetes.volumes import write_empty, write_projected
from trouter.cli import main
from trouter.config import ChangeRefused, ConfigurationError, created, load, type_named
from trouter.config.entities import Entity
from trouter.config.findings import evaluate
from trouter.config.keepers import Keepers, Walk, keepers_of_process
from trouter.config.problems import Severity
from trouter.config.strictness import REFUSED
from trouter.config.trusted import POINT, TABLE

pytestmark = pytest.mark.attack

STRANGER: Final = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")

#: By field of the table: a configuration with ``{0}`` for the file.
NAMED: Final[dict[str, str]] = {
    "users_file": "router {{\n usersFile: {0}\n}}",
    "oauth_jwks": "router {{\n oauthJwks: {0}\n}}",
    "debug_dump_file": "router {{\n debugDumpFile: {0}\n}}",
    "ca_cert_file": "sslProfile {{\n name: p\n caCertFile: {0}\n}}",
    "crl_file": "sslProfile {{\n name: p\n caCertFile: /etc/passwd\n crlFile: {0}\n}}",
    "cert_file": "sslProfile {{\n name: p\n certFile: {0}\n privateKeyFile: /etc/passwd\n}}",
    "private_key_file": "sslProfile {{\n name: p\n certFile: /etc/passwd\n privateKeyFile: {0}\n}}",
    "password_file": "sslProfile {{\n name: p\n passwordFile: {0}\n}}",
    "password": "sslProfile {{\n name: p\n password: file:{0}\n}}",
    "uid_name_mapping_file": "sslProfile {{\n name: p\n uidNameMappingFile: {0}\n}}",
    "trusted_certs_file": "sslProfile {{ name: p }}\nlistener {{\n host: ::1\n sslProfile: p\n trustedCertsFile: {0}\n}}",
    "metrics_token": "listener {{\n host: ::1\n http: yes\n metricsToken: file:{0}\n}}",
    "tenant_from": "listener {{\n host: ::1\n multiTenant: yes\n tenantFrom: file:{0}\n}}",
    "sasl_password": "connector {{\n saslUsername: a\n saslPassword: file:{0}\n}}",
    "sample_key_file": "vhost {{\n hostname: a\n sampleKeyFile: {0}\n}}",
    "output_file": "log {{ module: AGENT, outputFile: {0} }}",
}
#: The same for folders, whose files count.
FOLDERS: Final[dict[str, str]] = {
    "policy_dir": "policy {{ policyDir: {0} }}",
    "dir": "recordLog {{ dir: {0} }}",
}
#: Rows with tests of their own.
ELSEWHERE: Final = frozenset({"sasl_config_name", "pam_service", "plugins"})


def changeable(path: Path) -> None:
    path.chmod(0o666)


def in_an_open_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def in_an_open_folder_further_up(path: Path) -> None:
    path.parent.parent.chmod(0o777)


def by_a_link_in_an_open_folder(path: Path) -> None:
    open_folder = path.parent.parent / "open"
    open_folder.mkdir(mode=0o700)
    path.rename(path.parent / "target")
    (open_folder / "link").symlink_to(path.parent / "target")
    path.symlink_to("../open/link")
    open_folder.chmod(0o777)


def of_a_stranger(path: Path) -> None:
    os.chown(path, STRANGER, 0)


def in_a_folder_of_a_stranger(path: Path) -> None:
    os.chown(path.parent, STRANGER, 0)


def changeable_by_a_strange_group(path: Path) -> None:
    os.chown(path, 0, STRANGER)
    path.chmod(0o620)


def of_a_stranger_in_a_sticky_folder(path: Path) -> None:
    path.parent.chmod(0o1777)
    os.chown(path, STRANGER, 0)


def by_a_link_of_a_stranger_in_a_sticky_folder(path: Path) -> None:
    path.rename(path.parent.parent / "target")
    path.symlink_to("../target")
    os.chown(path, STRANGER, 0, follow_symlinks=False)
    path.parent.chmod(0o1777)


OPENINGS: Final[tuple[Callable[[Path], None], ...]] = (
    changeable, in_an_open_folder, in_an_open_folder_further_up, by_a_link_in_an_open_folder,
)  # fmt: skip
OPENINGS_OF_ROOT: Final[tuple[Callable[[Path], None], ...]] = (
    of_a_stranger, in_a_folder_of_a_stranger, changeable_by_a_strange_group, of_a_stranger_in_a_sticky_folder,
    by_a_link_of_a_stranger_in_a_sticky_folder,
)  # fmt: skip
EVERY_OPENING: Final = [*OPENINGS, *(pytest.param(each, marks=as_root) for each in OPENINGS_OF_ROOT)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that could be any of those in the table, in a folder of its own."""
    (tmp_path / "up" / "etc").mkdir(parents=True)
    path = tmp_path / "up" / "etc" / "file"
    path.write_text("{}")
    path.chmod(0o600)
    return path


def named(file: Path, text: str) -> str:
    """Return a configuration with the file, which holds what its attribute needs."""
    if "metricsToken" in text:
        file.write_text("0123456789abcdef")
    return text.format(file)


def points(text: str) -> list[tuple[str, Severity]]:
    return [(each.point, each.severity) for each in evaluate(load(text=text)) if each.point == POINT.name]


def refusals(text: str) -> list[str]:
    secure = text.replace("router {", "router {\nsecureDefaults: yes\n", 1)
    secure = secure if secure != text else f"router {{ secureDefaults: yes }}\n{text}"
    try:
        load(text=secure)
    except ConfigurationError as refused:
        return [str(each) for each in refused.problems if each.point == POINT.name]
    return []


def test_every_row_of_the_table_has_a_test() -> None:
    assert {row.field for row in TABLE} == {*NAMED, *FOLDERS, *ELSEWHERE}
    assert all(issubclass(row.kind, Entity) for row in TABLE)


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_a_file_of_the_router_is_good(file: Path, text: str) -> None:
    assert [*points(named(file, text)), *refusals(named(file, text))] == []


@pytest.mark.parametrize("open_it", EVERY_OPENING)
@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_a_file_that_strangers_can_change_is_found_and_refused_with_secure_defaults(
    file: Path, text: str, open_it: Callable[[Path], None]
) -> None:
    text = named(file, text)
    open_it(file)
    assert points(text) == [(POINT.name, Severity.UNSAFE)]
    (refusal,) = refusals(text)
    assert REFUSED in refusal
    assert "(ch" in refusal, "the cure is a command"


@pytest.mark.parametrize("text", FOLDERS.values(), ids=FOLDERS)
def test_a_folder_that_strangers_can_change_is_found_and_refused_with_secure_defaults(
    tmp_path: Path, text: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert [*points(text.format(folder)), *refusals(text.format(folder))] == []
    for mode in (0o777, 0o1777):
        folder.chmod(mode)
        assert points(text.format(folder)) == [(POINT.name, Severity.UNSAFE)]
        assert len(refusals(text.format(folder))) == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [(FOLDERS["policy_dir"], "a.json"), (NAMED["ca_cert_file"], "a.pem"), (NAMED["crl_file"], "a.crl")],
)
def test_each_file_of_a_folder_that_grants_trust_counts(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / name).write_text("[]")
    assert points(text.format(tmp_path)) == []
    (tmp_path / name).chmod(0o666)
    assert points(text.format(tmp_path)) == [(POINT.name, Severity.UNSAFE)]


def test_the_configuration_itself_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text("router {\n secureDefaults: yes\n}\n")
    load(path)
    path.chmod(0o606)
    with pytest.raises(ConfigurationError, match=f"all users of this machine can change {path}; {REFUSED}"):
        load(path)
    path.write_text("router {\n mode: standalone\n}\n")
    assert [each.point for each in evaluate(load(path)) if each.severity is Severity.UNSAFE] == [POINT.name]


def test_what_the_file_accepts_is_served_with_secure_defaults(file: Path) -> None:
    file.chmod(0o666)
    accepted = f"# trouter: accept {POINT.name}: the only user of this machine\n" + NAMED["ca_cert_file"].format(file)
    assert refusals(accepted) == []
    other = f"{accepted}\n{NAMED['sasl_password'].format(file)}"
    assert len(refusals(other)) == 1, "another section does not accept it"


def test_a_file_that_is_not_there_can_be_made_by_strangers_in_a_sticky_folder(tmp_path: Path) -> None:
    log = NAMED["output_file"].format(tmp_path / "router.log")
    assert points(log) == []
    tmp_path.chmod(0o1777)
    assert points(log) == [(POINT.name, Severity.UNSAFE)]


@pytest.mark.parametrize(
    "output", ["stderr", "stdout", "syslog", "/dev/stdout", "/dev/stderr", "/dev/null", "/proc/self/fd/1"]
)
def test_streams_and_devices_are_not_judged(output: str) -> None:
    assert [*points(NAMED["output_file"].format(output)), *refusals(NAMED["output_file"].format(output))] == []


def test_a_pipe_in_a_folder_of_the_router_is_not_judged(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe").chmod(0o666)
    assert refusals(NAMED["output_file"].format(tmp_path / "pipe")) == []


def test_management_may_name_no_file_that_strangers_can_change(file: Path) -> None:
    kind = type_named("sslProfile")
    assert kind is not None
    configuration = load(text=f"router {{\n secureDefaults: yes\n secretDir: {file.parent}\n}}")
    created(configuration, kind, "p", {"caCertFile": str(file)})
    file.chmod(0o666)
    with pytest.raises(ChangeRefused, match=f"all users of this machine can change {file}"):
        created(configuration, kind, "p", {"caCertFile": str(file)})


def test_the_files_of_cyrus_sasl_count(tmp_path: Path) -> None:
    (tmp_path / "sasldb2").write_bytes(b"")
    (tmp_path / "qdrouterd.conf").write_text(f"sasldb_path: {tmp_path}/sasldb2\n")
    text = f"router {{\n saslConfigDir: {tmp_path}\n}}"
    assert [*points(text), *refusals(text)] == []
    for name in ("sasldb2", "qdrouterd.conf"):
        (tmp_path / name).chmod(0o666)
        assert points(text) == [(POINT.name, Severity.UNSAFE)]
        assert len(refusals(text)) == 1
        (tmp_path / name).chmod(0o600)


def test_the_places_where_cyrus_sasl_looks_itself_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SASL_CONF_PATH", str(tmp_path))
    (tmp_path / "qdrouterd.conf").write_text("pwcheck_method: saslauthd\n")
    (tmp_path / "qdrouterd.conf").chmod(0o666)
    text = "router {\n mode: standalone\n}"
    assert points(text) == [(POINT.name, Severity.UNSAFE)]
    assert refusals(text) == [], "with secureDefaults these places do not count"


def test_the_file_of_a_pam_service_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trouter.config.trusted.PAM_FOLDER", str(tmp_path))
    (tmp_path / "trouter").write_text("")
    text = "router {\n pamService: trouter\n}"
    assert points(text) == []
    (tmp_path / "trouter").chmod(0o666)
    assert points(text) == [(POINT.name, Severity.UNSAFE)]


@pytest.mark.parametrize("opened", ["pack/inner.py", "pack", "pack/__pycache__", "."])
def test_the_code_of_a_listed_plugin_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: str) -> None:
    (tmp_path / "pack" / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "inner.py"):
        (tmp_path / "pack" / name).write_text("raise SystemExit('this code must not run')\n")
    information = tmp_path / "pack-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: pack\nVersion: 1\n")
    (information / "entry_points.txt").write_text("[trouter.plugins]\npacked = pack.inner\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "router {\n plugins: packed\n}"
    assert [*points(text), *refusals(text)] == []
    (tmp_path / opened).chmod(0o777)
    assert {point for point, _ in points(text)} == {POINT.name}
    assert refusals(text)


def test_a_command_that_explains_a_policy_judges_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    group = "users: alice\n remoteHosts: *\n sources: a"
    path.write_text(
        f"router {{ secureDefaults: yes }}\nvhost {{\n hostname: $default\n groups: {{ g: {{\n {group}\n }} }}\n}}"
    )
    path.chmod(0o666)
    assert main(["policy", "explain", "-c", str(path), "--user", "alice", "--host", "::1", "--source", "a"]) == 0
    assert main(["check", str(path)]) == 1


# ------------------------------------------------------------------------------------------------------ users and groups
@as_root
def test_check_takes_a_number_for_the_user_of_the_router(tmp_path: Path) -> None:
    path = tmp_path / "a.conf"
    path.write_text("router {\n secureDefaults: yes\n}\n")
    path.chmod(0o640)
    os.chown(path, 12345, 0)
    assert main(["check", str(path)]) == 1
    assert main(["check", "--user", "12345", str(path)]) == 0


@as_root
def test_the_user_that_the_router_becomes_may_own_its_files(file: Path) -> None:
    os.chown(file.parent, STRANGER, 0)
    os.chown(file, STRANGER, 0)
    assert Walk(keepers_of_process()).danger(str(file)) is not None
    assert Walk(keepers_of_process(STRANGER)).danger(str(file)) is None


@as_root
def test_a_group_of_a_keeper_may_change_a_file(file: Path) -> None:
    os.chown(file, 0, STRANGER)
    file.chmod(0o660)
    assert Walk(keepers_of_process()).danger(str(file)) is not None
    assert Walk(keepers_of_process(STRANGER)).danger(str(file)) is None
    os.chown(file, 0, 0)
    assert Walk(keepers_of_process()).danger(str(file)) is None


def test_an_access_control_list_for_a_stranger_counts(file: Path) -> None:
    entries = ((1, 6, 2**32 - 1), (2, 6, STRANGER), (4, 0, 2**32 - 1), (16, 6, 2**32 - 1), (32, 0, 2**32 - 1))
    content = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(file, "system.posix_acl_access", content)
    except OSError:
        pytest.skip("this file system has no access control lists")
    danger = Walk(keepers_of_process()).danger(str(file))
    assert danger is not None
    assert "by its access control list" in danger.message
    assert Walk(keepers_of_process(STRANGER)).danger(str(file)) is None


@pytest.mark.parametrize(
    ("way", "opened"),
    [
        ("/proc/self/root{0}", True),
        ("/proc/self/root/proc/self/root{0}", True),
        ("/proc/thread-self/root{0}", True),
        ("/proc/self/cwd/file", True),
        ("/proc/../{0}", True),
        ("/proc/self/../..{0}", True),
        ("/sys/..{0}", True),
        ("/dev/..{0}", True),
        ("/dev/pts/../..{0}", True),
        ("/dev/fd/../root{0}", True),
        ("/dev/shm/../..{0}", True),
        ("{1}/link{0}", True),
        ("/proc/self/root{0}", False),
        ("/proc/self/cwd/file", False),
        ("/dev/..{0}", False),
    ],
)
def test_a_path_through_the_folders_of_the_kernel_is_judged_where_it_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, opened: bool
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "file").write_text("x")
    folder.chmod(0o777 if opened else 0o755)
    (tmp_path / "link").symlink_to("/proc/self/root")
    monkeypatch.chdir(folder)
    path = way.format(folder / "file", tmp_path)
    assert Path(path).read_text() == "x"
    danger = Walk(keepers_of_process()).danger(path)
    assert (danger is not None and str(folder) in danger.message) is opened


def test_what_another_process_leads_to_is_not_good(tmp_path: Path) -> None:
    """Its working directory is what it wants: the path leads elsewhere by the time that the file is read."""
    (tmp_path / "file").write_text("x")
    with subprocess.Popen([sys.executable, "-c", "input()"], cwd=tmp_path, stdin=subprocess.PIPE) as other:
        path = f"/proc/{other.pid}/cwd/file"
        danger = Walk(keepers_of_process()).danger(path)
        other.communicate(b"\n")
    assert danger is not None
    assert "cannot be judged" in danger.message


def test_a_file_without_a_name_is_not_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    with (gone / "file").open("w"):
        folder = os.open(gone, os.O_RDONLY)
        try:
            monkeypatch.chdir(tmp_path)
            gone.rename(tmp_path / "moved")
            assert Walk(keepers_of_process()).danger(f"/proc/self/fd/{folder}/file") is None, "by its new name"
            (tmp_path / "moved" / "file").unlink()
            (tmp_path / "moved").rmdir()
            danger = Walk(keepers_of_process()).danger(f"/proc/self/fd/{folder}/file")
        finally:
            os.close(folder)
    assert danger is not None
    assert "cannot be judged" in danger.message


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert Walk(keepers_of_process()).danger(str(tmp_path / "a")) is None


def test_a_path_with_dots_is_judged_where_its_links_lead(tmp_path: Path) -> None:
    (tmp_path / "open" / "deep").mkdir(parents=True)
    (tmp_path / "open" / "file").write_text("")
    (tmp_path / "link").symlink_to("open/deep")
    (tmp_path / "open").chmod(0o777)
    assert Walk(keepers_of_process()).danger(f"{tmp_path}/link/../file") is not None, "link/.. is the folder `open`"


# ------------------------------------------------------------------------------------------------------------ containers
MOUNTS: Final = """
import sys
from pathlib import Path
from trouter.config.keepers import Keepers, Walk
keepers = Keepers(frozenset({0, 10001}), frozenset({0, 10001}), contained=sys.argv[2] == "yes")
for name in sys.argv[3:]:
    danger = Walk(keepers).danger(str(Path(sys.argv[1], name)), ending="")
    print(name, "good" if danger is None else danger.message)
"""
MOUNTED: Final = """
mount -t tmpfs -o mode=0755 none "$1"; cd "$1"
mkdir secret run data etc
mount -t tmpfs -o mode=1777 none secret; mount -t tmpfs -o mode=0777 none run; mount -t tmpfs -o mode=0777 none data
mount -t tmpfs -o mode=0755 none etc; chown 1000 etc; echo x >etc/own; chown 1000 etc/own; mount -o remount,ro etc
"$2" -c "$3" "$1"
mount -o remount,ro secret
shift 3
exec "$@"
"""


@as_root
@pytest.mark.parametrize("group", [10001, None])
@pytest.mark.parametrize("contained", ["yes", "no"])
def test_what_a_kubelet_mounts_is_good_in_its_container(tmp_path: Path, group: int | None, contained: str) -> None:
    root = Path(__file__).parents[2]
    fill = (
        f"import sys; sys.path.insert(0, {str(root)!r})\n"
        "import os; from pathlib import Path; from tests.kubernetes.volumes import *; at = Path(sys.argv[1])\n"
        f"write_projected(at / 'secret', {{'tls.crt': b'x', 'ca.crt': b'y'}}, 0o440, {group})\n"
        f"group = {group}\n"
        "os.chown(at / 'run', 0, group or 0); (at / 'run').chmod(0o2777 if group else 0o777)\n"
        "(at / 'run/users').write_text('x'); os.chown(at / 'run/users', 10001, group or 10001)\n"
        "(at / 'data/records').mkdir(); os.chown(at / 'data/records', 10001, group or 10001)\n"
    )
    names = ["secret/tls.crt", "secret", "run/users", "run/made-later", "data/records", "etc/own"]
    shell = ["unshare", "--mount", "sh", "-euc", MOUNTED, "sh", str(tmp_path), sys.executable, fill]
    look = [sys.executable, "-c", MOUNTS, str(tmp_path), contained, *names]
    found = subprocess.run([*shell, *look], check=False, capture_output=True, text=True, timeout=120, cwd=root)
    if "unshare" in found.stderr or "mount:" in found.stderr:
        pytest.skip(f"nothing can be mounted here: {found.stderr}")
    assert found.stderr == ""
    lines = dict(line.split(" ", 1) for line in found.stdout.splitlines())
    assert list(lines) == names
    good = {name for name, line in lines.items() if line == "good"}
    assert good == (set(names) if contained == "yes" else {"secret/tls.crt"})


def test_openshift_chooses_the_user_and_the_group_is_root(tmp_path: Path) -> None:
    """The image's folders belong to root and its group, which may write; volumes have a group of the project."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    project = 1_000_680_000
    keepers = Keepers(frozenset({0, project}), frozenset({0, project}), contained=True)
    image = tmp_path / "image"
    image.mkdir(mode=0o775)
    (image / "trouter.conf").write_text("")
    (image / "trouter.conf").chmod(0o664)
    write_projected(tmp_path / "users", {"users": b"x"}, 0o440, project)
    write_empty(tmp_path / "volume", project)
    (tmp_path / "volume").chmod(0o2770)
    for path in (image / "trouter.conf", tmp_path / "users" / "users", tmp_path / "volume"):
        assert Walk(keepers).danger(str(path)) is None


def test_a_process_knows_that_it_is_in_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    assert keepers_of_process().contained
    assert keepers_of_process().gids >= set(os.getgroups())
