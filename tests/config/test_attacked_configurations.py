"""The configurations that an attacker got past, though ``check --strict`` had called them good: each is judged now."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.certificates import Authority
from trouter.cli import main

pytestmark = pytest.mark.attack

HEAD: Final = "router {\n id: K\n secureDefaults: yes\n usersFile: FOLDER/users\n}\n"
BARE: Final = "router {\n id: K\n secureDefaults: yes\n}\n"
LISTENER: Final = "listener {\n host: 127.0.0.1\n port: 0\n saslMechanisms: SCRAM-SHA-256\n MORE\n}\n"
VHOST: Final = """\
vhost {
    hostname: $default
    allowUnknownUser: yes
    groups: {
        $default: {
            remoteHosts: *
            sources: "SOURCES"
            targets: "SOURCES"
            MORE
        }
    }
}
"""
OWN: Final = VHOST.replace("SOURCES", "${user}.*").replace("MORE", "")
PROFILE: Final = "sslProfile {\n name: s\n certFile: SERVER\n privateKeyFile: KEY\n caCertFile: AUTHORITY\n MORE\n}\n"
EXTERNAL: Final = (
    "listener {\n host: 127.0.0.1\n port: 0\n sslProfile: s\n requireSsl: yes\n saslMechanisms: EXTERNAL\n}\n"
)


class Attacked(NamedTuple):
    """One configuration: its text, files with modes that others may write to, and the points it fails for."""

    text: str
    open_files: tuple[str, ...] = ()
    points: frozenset[str] = frozenset()


def attacked(text: str, *points: str, open_files: tuple[str, ...] = ()) -> Attacked:
    return Attacked(text, open_files, frozenset(points))


WRITABLE: Final = "writable-by-others"
LISTENING: Final = LISTENER.replace("MORE", "")
#: By their names in the report.
CASES: Final[dict[str, Attacked]] = {
    "c1: parts of certificates without escape": attacked(BARE + PROFILE.replace("MORE", "uidFormat: on") + EXTERNAL + OWN),
    "c1, written out": attacked(
        BARE + PROFILE.replace("MORE", "uidFormat: on\n uidMissing: skip\n uidEscape: no") + EXTERNAL + OWN, "ambiguous-user"
    ),
    "c2: a name that begins another one's": attacked(
        HEAD + LISTENING + VHOST.replace("SOURCES", "${user}*").replace("MORE", ""), "open-user-entry"
    ),
    "c2: users in an open folder": attacked(HEAD + LISTENING + OWN, WRITABLE, open_files=(".",)),
    "c3: log and records in an open folder": attacked(
        HEAD + LISTENING + OWN + "log {\n module: DEFAULT\n outputFile: FOLDER/recs/router.log\n}\n"
        "recordLog {\n dir: FOLDER/recs/r\n kinds: audit\n}\n",
        WRITABLE,
        open_files=("recs",),
    ),
    "c5: everybody is a load balancer": attacked(
        HEAD + LISTENER.replace("MORE", "proxyProtocolHosts: 0.0.0.0/0") + OWN, "any-proxy"
    ),
    "c6: tenants that others can change": attacked(
        HEAD + "policy { enableVhostPolicy: no }\n"
        + LISTENER.replace("MORE", "multiTenant: yes\n tenantFrom: file:FOLDER/tenants.json"),
        WRITABLE, "vhost-policy",
        open_files=("tenants.json",),
    ),
    "c7: an authority that others can change": attacked(
        BARE + PROFILE.replace("MORE", "") + EXTERNAL + OWN, WRITABLE, open_files=("ca.pem",)
    ),
    "c7: a mapping that others can change": attacked(
        BARE + PROFILE.replace("MORE", "uidNameMappingFile: FOLDER/map.json") + EXTERNAL + OWN, WRITABLE,
        open_files=("map.json",),
    ),
    "c8: management for all users": attacked(
        HEAD + LISTENING + VHOST.replace("SOURCES", "*").replace("MORE", "management: admin")
    ),
    "c9: a dump in an open folder": attacked(
        HEAD.replace("}", " debugDumpFile: FOLDER/recs/dump.txt\n}") + LISTENING + OWN, WRITABLE, open_files=("recs",)
    ),
    "c10: a service without TLS": attacked(
        BARE + "authServicePlugin {\n name: auth\n host: auth.example.com\n port: 5672\n}\n"
        + LISTENER.replace("MORE", "saslPlugin: auth") + OWN,
        "service-without-tls",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The texts of an authority, a certificate and its key."""
    authority = Authority(tmp_path_factory.mktemp("authority"), "K")
    server, key = authority.pair("127.0.0.1")
    return {
        "ca.pem": authority.certificate.read_text(),
        "server.pem": server.read_text(),
        "server.key": key.read_text(),
    }


@pytest.fixture
def folder(tmp_path: Path, certificates: dict[str, str]) -> Path:
    """A folder with the files that the configurations name, safe all."""
    here = tmp_path / "etc"
    (here / "recs").mkdir(parents=True)
    here.chmod(0o755)
    for name, text in {**certificates, "map.json": '{"CN=x": "x"}', "tenants.json": '{"alice": "t1"}'}.items():
        (here / name).write_text(text)
        (here / name).chmod(0o640)
    (here / "password").write_text("secret-word")
    assert main(["passwd", "add", str(here / "users"), "alice", "--password-file", str(here / "password")]) == 0
    return here


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_attacked_configuration_is_judged(folder: Path, case: Attacked, capsys: pytest.CaptureFixture[str]) -> None:
    names = {"FOLDER": "", "SERVER": "server.pem", "KEY": "server.key", "AUTHORITY": "ca.pem"}
    text = case.text
    for word, name in names.items():
        text = text.replace(word, str(folder / name))
    path = folder / "c.conf"
    path.write_text(text)
    path.chmod(0o640)
    for name in case.open_files:
        (folder / name).chmod(0o777 if (folder / name).is_dir() else 0o666)
    status = main(["check", "--strict", str(path)])
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if line.startswith(("unsafe:", "problem:"))]
    if not case.points:
        assert (status, lines) == (0, []), printed.err
        return
    assert status == 1
    assert {point for point in case.points if any(f"[{point}]" in line for line in printed.err.splitlines())} == set(
        case.points
    )


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.open_files])
def test_the_same_configuration_with_safe_files_passes(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What fails a configuration is what is open about it, and nothing else."""
    case = CASES[name]
    rest = case.points - {WRITABLE}
    test_an_attacked_configuration_is_judged(folder, case._replace(open_files=(), points=rest), capsys)
