"""`trouter certs`: OpenSSL accepts the certificates that it makes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from trouter.cli import main


def certs(folder: Path, *arguments: str, status: int = 0) -> None:
    command, *rest = arguments
    assert main(["certs", command, "-d", str(folder), *rest]) == status


def openssl(*arguments: str | Path) -> str:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an authority with a server, a client and a router."""
    path = tmp_path_factory.mktemp("authority") / "certs"
    certs(path, "ca")
    certs(path, "server", "router", "--host", "router.example.com", "--host", "127.0.0.1", "--host", "::1")
    certs(path, "client", "alice")
    certs(path, "router", "east", "--host", "127.0.0.1")
    return path


@pytest.mark.parametrize(
    ("arguments", "good"),
    [
        (("-purpose", "sslserver", "-verify_hostname", "router.example.com", "router.crt"), True),
        (("-purpose", "sslserver", "-verify_ip", "127.0.0.1", "router.crt"), True),
        (("-purpose", "sslserver", "-verify_ip", "::1", "router.crt"), True),
        (("-purpose", "sslserver", "-verify_hostname", "example.com", "router.crt"), False),
        (("-purpose", "sslclient", "router.crt"), False),
        (("-purpose", "sslclient", "alice.crt"), True),
        (("-purpose", "sslserver", "alice.crt"), False),
        (("-purpose", "sslserver", "-verify_ip", "127.0.0.1", "east.crt"), True),
        (("-purpose", "sslclient", "east.crt"), True),
    ],
)
def test_a_certificate_is_valid_for_its_purpose_only(folder: Path, arguments: tuple[str, ...], good: bool) -> None:
    *options, name = arguments
    output = openssl("verify", "-x509_strict", "-CAfile", folder / "ca.crt", *options, folder / name)
    assert output.endswith(": OK\n") is good, output


def test_the_key_fits_the_certificate_and_only_its_owner_may_read_the_key(folder: Path) -> None:
    for name in ("ca", "router", "alice", "east"):
        assert stat.S_IMODE((folder / f"{name}.key").stat().st_mode) == 0o600
        public = openssl("pkey", "-in", folder / f"{name}.key", "-pubout")
        assert public.startswith("-----BEGIN PUBLIC KEY")
        assert openssl("x509", "-in", folder / f"{name}.crt", "-noout", "-pubkey") == public
    assert "privateKeyFile: certs/router.key" in (folder / "README").read_text()


def test_a_key_is_private_for_every_umask(tmp_path: Path) -> None:
    code = f"import os; os.umask(0); from trouter.cli import main; main(['certs', 'ca', '-d', {str(tmp_path)!r}])"
    subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)
    assert stat.S_IMODE((tmp_path / "ca.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("arguments", [("ca",), ("server", "router"), ("client", "alice"), ("client", "router")])
def test_no_file_is_overwritten_without_the_option(
    folder: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    certs(folder, *arguments, status=1)
    assert "exists already: --force replaces it" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_force_makes_another_key(tmp_path: Path) -> None:
    certs(tmp_path, "ca")
    certs(tmp_path, "client", "bob")
    before = (tmp_path / "bob.key").read_bytes()
    certs(tmp_path, "client", "bob", "--force")
    assert (tmp_path / "bob.key").read_bytes() != before
    assert stat.S_IMODE((tmp_path / "bob.key").stat().st_mode) == 0o600
    assert openssl("verify", "-CAfile", tmp_path / "ca.crt", tmp_path / "bob.crt").endswith(": OK\n")


def test_renewal_keeps_the_key_and_the_purpose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certs(tmp_path, "ca")
    certs(tmp_path, "server", "router", "--host", "a.example.com", "--days", "3")
    certs(tmp_path, "client", "alice")
    key, old = (tmp_path / "router.key").read_bytes(), (tmp_path / "router.crt").read_bytes()
    authority = (tmp_path / "ca.crt").read_bytes()
    certs(tmp_path, "renew", "router", "--days", "90")
    assert (tmp_path / "router.key").read_bytes() == key
    assert (tmp_path / "router.crt").read_bytes() != old
    assert (tmp_path / "ca.crt").read_bytes() == authority
    options = ("-purpose", "sslserver", "-verify_hostname", "a.example.com")
    assert openssl("verify", "-CAfile", tmp_path / "ca.crt", *options, tmp_path / "router.crt").endswith(": OK\n")
    assert openssl("x509", "-in", tmp_path / "router.crt", "-noout", "-checkend", str(89 * 86400)).startswith(
        "Certificate will not expire"
    )
    capsys.readouterr()
    certs(tmp_path, "renew")
    assert capsys.readouterr().out.split() == [str(tmp_path / "alice.crt"), str(tmp_path / "router.crt")]
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("action", ["list", "renew"])
def test_a_folder_that_does_not_exist_is_an_error(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "nowhere"
    assert main(["certs", action, "-d", str(nowhere)]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == (
        "",
        f"trouter certs {action}: there is no folder {nowhere}: make an authority with `trouter certs ca`\n",
    )


def test_the_certificates_of_a_folder_can_be_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certs(folder, "list")
    rows = [line.split(maxsplit=2)[1:] for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["ca", "ca"],
        ["client", "alice"],
        ["router", "east (127.0.0.1)"],
        ["server", "router (router.example.com, 127.0.0.1, ::1)"],
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("client", "../alice"), "'../alice' cannot be a name"),
        (("client", "ca"), "'ca' cannot be a name"),
        (("client", "CA"), "'CA' cannot be a name"),
        (("client", "a" * 65), "cannot be a name"),
        (("server", "other", "--host", "a b"), "'a b' is neither a host name nor an address"),
        (("renew", "nobody"), "nobody.crt: No such file or directory"),
    ],
)
def test_bad_input_is_reported_and_makes_nothing(
    folder: Path, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.iterdir())
    certs(folder, *arguments, status=1)
    assert message in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before


def test_an_authority_comes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certs(tmp_path, "client", "alice", status=1)
    assert "make one with `trouter certs ca`" in capsys.readouterr().err


def test_certificates_of_another_authority_are_not_renewed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certs(tmp_path, "ca")
    certs(tmp_path, "client", "alice")
    certs(tmp_path, "ca", "--force")
    certs(tmp_path, "renew", status=1)
    assert "was not issued by this authority" in capsys.readouterr().err


@pytest.mark.parametrize("days", ["0", "-1", "x", "36501"])
def test_days_are_a_number(tmp_path: Path, days: str) -> None:
    with pytest.raises(SystemExit) as ended:
        certs(tmp_path, "ca", "--days", days)
    assert ended.value.code == 2


def test_the_script_makes_certificates_and_renews_them(tmp_path: Path) -> None:
    script = tmp_path / "make"
    script.write_bytes((ROOT / "certs" / "make").read_bytes())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for _ in range(2):
        subprocess.run(["sh", script], env=os.environ | {"PATH": path}, check=True, capture_output=True)
    made = tmp_path / "dev"
    issued = [str(made / f"{name}.crt") for name in ("server", "alice", "bob")]
    verify = ["openssl", "verify", "-CAfile", str(made / "ca.crt"), *issued]
    assert subprocess.run(verify, check=True, capture_output=True, text=True).stdout.count(": OK") == len(issued)
