"""Configuration files of the kinds that people have: each is served with real clients, and what it does is compared.

`files/` has one small file for each habit, of images, platforms, talks and 0.x, and beside it NAME.expect.json with
what it is and what must come of it (``Expected``). In a file ``@own@`` and ``@away@`` stand for free ports,
``@broker@`` for that of a broker beside the router, ``@dir@`` for a folder with certificates and users.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest
from proton import ConnectionException
from proton.utils import LinkDetached

from tests.brokers import broker
from tests.dropin.cases import Login, Way
from tests.dropin.scene import PASSWORD, Folder
from tests.dropin.test_configurations import client, go
from tests.e2e.peer import Peer
from tests.management.node import Node, node_of
from tests.ports import free_ports
from tests.proton_build import WITH_TLS
from tests.routers import DEADLINE_S, RunningRouter, running
from trouter.cli import main, obey
from trouter.cli.names import qdmanage_parser, qdstat_parser

FILES: Final = Path(__file__).with_name("files")
EXPECT: Final = ".expect.json"
CASES: Final = sorted(path for path in FILES.iterdir() if not path.name.endswith(EXPECT))
#: The users of a SASL configuration that names its mechanisms.
LISTED: Final = (
    "pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {}\nmech_list: SCRAM-SHA-1 DIGEST-MD5 PLAIN\n"
)
PROBLEM: Final = "problem"

pytestmark = pytest.mark.skipif(shutil.which("saslpasswd2") is None, reason="saslpasswd2 (sasl2-bin) is not installed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must come of a file. ``about`` is the habit; numbers of listeners count from 0, in the order of the log."""

    about: str
    #: It is refused, with advice, and what `trouter migrate` writes for it is served.
    migrate: bool = False
    #: Variables of the environment of the router.
    environment: dict[str, str] = field(default_factory=dict)
    #: A broker beside the router listens; or it dials this listener.
    broker: bool = False
    dialled: int | None = None
    #: The user that management and the tools log in as; empty for none.
    login: str = ""
    #: Messages that must arrive: ``address``, the listeners ``from`` and ``to``, ``user``, ``tls``, ``copies``,
    #: ``kept``.
    ways: list[dict[str, Any]] = field(default_factory=list)
    #: Links that must be refused.
    denied: list[dict[str, Any]] = field(default_factory=list)
    #: Listeners that refuse clients without a name.
    refused: list[int] = field(default_factory=list)
    #: By listener the mechanisms that it offers.
    mechanisms: dict[str, list[str]] = field(default_factory=dict)
    #: By path the status of a request to the first listener with HTTP.
    http: dict[str, int] = field(default_factory=dict)
    #: Properties of the router's open.
    properties: dict[str, str] = field(default_factory=dict)
    #: By type some values of the rows that management shows, in their order.
    shows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    #: The points of all findings that are problems, and of some others.
    problems: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    #: Lines of the log.
    logs: list[str] = field(default_factory=list)

    @property
    def options(self) -> dict[str, Any]:
        """The options of python-qpid-proton for management."""
        user = {"user": self.login, "password": PASSWORD, "allowed_mechs": "PLAIN", "allow_insecure_mechs": True}
        return user if self.login else {"allowed_mechs": "ANONYMOUS"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Make the files that the configurations name."""
    made = Folder(tmp_path_factory.mktemp("site"))
    (made.path / "listed").mkdir()
    (made.path / "listed" / "qdrouterd.conf").write_text(LISTED.format(made.path / "sasldb2"))
    return made


def expected_of(case: Path) -> Expected:
    return Expected(**json.loads(case.with_name(f"{case.stem}{EXPECT}").read_text(encoding="utf-8")))


def renewed(text: str, case: Path, path: Path) -> str:
    """Return what `trouter migrate` writes for a file that `check` refuses."""
    old, new = path / case.name, path / f"new-{case.name}"
    old.write_text(text, encoding="utf-8")
    assert main(["check", str(old)]) == 1
    assert main(["migrate", str(old), "-o", str(new)]) == 0
    assert main(["migrate", "--check", str(new)]) == 0
    return new.read_text(encoding="utf-8")


def with_what_it_needs(case: Path) -> object:
    """Return the case as a parameter, skipped where python-qpid-proton has no TLS for its clients."""
    needs_tls = any(way.get("tls") for way in expected_of(case).ways)
    return pytest.param(case, marks=WITH_TLS if needs_tls else (), id=case.stem)


@pytest.mark.parametrize("case", [*map(with_what_it_needs, CASES)])
def test_a_file_of_the_field_is_served_as_expected(
    case: Path, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = expected_of(case)
    own, away = map(str, free_ports(2))
    names = {"own": own, "away": away, "dir": str(folder.path)}
    for name, value in expected.environment.items():
        monkeypatch.setenv(name, replaced(value, names))
    with ExitStack() as stack:
        if expected.broker:
            names["broker"] = str(stack.enter_context(broker(keeps=True)).port)
        text = replaced(case.read_bytes().decode(), names)
        if expected.migrate:
            text = renewed(text, case, tmp_path)
        router = stack.enter_context(running(text, tmp_path, suffix=case.suffix))
        if expected.dialled is not None:
            stack.enter_context(broker(dials=router.ports[expected.dialled], keeps=True))
        check_clients(expected, router, folder)
        check_management(expected, router)
        for line in expected.logs:
            router.wait_for_line(line)


def replaced(text: str, names: dict[str, str]) -> str:
    return re.sub(r"@([a-z]+)@", lambda found: names[found[1]], text)


def check_clients(expected: Expected, router: RunningRouter, folder: Folder) -> None:
    """Check which clients are let in, and what they may do."""
    routers = {"A": router}
    for way in expected.ways:
        sender, receiver = f"A.{way.get('from', 0)}", f"A.{way.get('to', 0)}"
        login = Login(way.get("user", ""), tls=way.get("tls", False))
        kept = way.get("kept", False)
        go(Way(sender, receiver, way["address"], login, copies=way.get("copies", 1), kept=kept), routers, folder)
    for link in expected.denied:
        with client(routers, "A.0", Login(link.get("user", "")), folder) as connection:
            with pytest.raises(LinkDetached, match="local policy"):
                connection.create_sender(link["address"])
            with pytest.raises(LinkDetached, match="local policy"):
                connection.create_receiver(link["address"])
    for number in expected.refused:
        with pytest.raises(ConnectionException), client(routers, f"A.{number}", Login(), folder):
            pass
    for listener, mechanisms in expected.mechanisms.items():
        assert offered(router.ports[int(listener)]) == mechanisms
    for path, status in expected.http.items():
        port = router.wait_for_line(r"Listening for HTTP on \S+:(\d+)")[1]
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=DEADLINE_S) as answer:
            assert answer.status == status


def offered(port: int) -> list[str]:
    """Return the mechanisms that a listener offers, in the order of their names."""
    with Peer(port, opened=False) as peer:
        return sorted(map(str, peer.begin_sasl()))


def check_management(expected: Expected, router: RunningRouter) -> None:
    """Check what management shows of the router, and that the tools of Qpid Dispatch read it."""
    with node_of(router.port, **expected.options) as node:
        properties = node.connection.conn.remote_properties
        assert {name: properties[name] for name in expected.properties} == expected.properties
        for kind, wanted in expected.shows.items():
            rows = node.query(kind)
            known = [{name: row[name] for name in each} for row, each in zip(rows, wanted, strict=False)]
            assert known == wanted
        check_findings(expected, node)
    bus = f"127.0.0.1:{router.port}"
    login = ["--sasl-mechanisms", "PLAIN", "--sasl-username", expected.login, "--sasl-password", PASSWORD]
    words = ["-b", bus, *(login if expected.login else [])]
    shown = io.StringIO()
    with redirect_stdout(shown):
        assert obey(qdstat_parser(), [*words, "-c"]) == 0
        assert obey(qdmanage_parser(), [*words, "query", "--type", "listener"]) == 0
    assert "Connections" in shown.getvalue()
    assert f'"port": "{router.port}"' in shown.getvalue() or '"port": "0"' in shown.getvalue()


def check_findings(expected: Expected, node: Node) -> None:
    found = node.query("finding", names=["severity", "point", "message"])
    of_file = [row for row in found if row["point"]]  # the others are about the state, such as a hub that is away
    assert sorted({row["point"] for row in of_file if row["severity"] == PROBLEM}) == expected.problems, found
    assert set(expected.findings) <= {row["point"] for row in of_file}


def test_each_file_has_what_is_expected_of_it_and_its_habit() -> None:
    names = {path.name.removesuffix(EXPECT) for path in FILES.iterdir() if path.name.endswith(EXPECT)}
    assert names == {case.stem for case in CASES}
    assert len(CASES) >= 24
    abouts = [expected_of(case).about for case in CASES]
    assert len(set(abouts)) == len(abouts)
