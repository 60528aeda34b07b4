"""The limits in OpenSSL's file are read as the library itself reads them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.routers import DEADLINE_S, ROOT
from trouter.tls.openssl_file import openssl_file, read_openssl_file

#: Prints the limits of a new context of the library that Python's ssl is linked with, and those that trouter read.
COMPARE = """
import ctypes, json, _ssl
from trouter.tls.limits import machine_limits
library = ctypes.CDLL(_ssl.__file__)
library.TLS_method.restype = library.SSL_CTX_new.restype = ctypes.c_void_p
library.SSL_CTX_new.argtypes = library.SSL_CTX_get_security_level.argtypes = [ctypes.c_void_p]
library.SSL_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p]
context = library.SSL_CTX_new(library.TLS_method())
minimum = library.SSL_CTX_ctrl(context, 130, 0, None)  # SSL_CTX_get_min_proto_version
print(json.dumps([[minimum, library.SSL_CTX_get_security_level(context)], machine_limits()]))
"""
HEAD = "openssl_conf = whole\n[whole]\nssl_conf = ssl\n[ssl]\nsystem_default = default_sect\n[default_sect]\n"
SPACED = """
  openssl_conf=whole # all
#[x]
 [ whole ]
ssl_conf = ssl

[ssl]
system_default = d
[ d ]
  MinProtocol   =   TLSv1.3   # high
CipherString = 'DEFAULT'@SECLEVEL=3
"""
#: Files and the limits in them: the lowest version as OpenSSL counts, and the level.
FILES: dict[str, tuple[str, tuple[int, int]]] = {
    "nothing": ("", (0, 2)),
    "no section of TLS": ("openssl_conf = whole\n[whole]\nproviders = p\n[p]\n", (0, 2)),
    "a section that is not there": ("openssl_conf = whole\n[whole]\nssl_conf = ssl\n", (0, 2)),
    "both": (HEAD + "MinProtocol = TLSv1.3\nCipherString = DEFAULT@SECLEVEL=3\n", (0x304, 3)),
    "a version alone": (HEAD + "MinProtocol = TLSv1.1\n", (0x302, 2)),
    "a level alone": (HEAD + "CipherString = DEFAULT:@SECLEVEL=1\n", (0, 1)),
    "two levels": (HEAD + "CipherString = DEFAULT:@SECLEVEL=3:!MD5:@SECLEVEL=1\n", (0, 1)),
    "no version": (HEAD + "MinProtocol = None\n", (0, 2)),
    "small letters": (HEAD + "minprotocol = TLSv1.3\ncipherstring = DEFAULT@SECLEVEL=4\n", (0x304, 4)),
    "the last one": (HEAD + "MinProtocol = TLSv1.3\nMinProtocol = TLSv1.2\n", (0x303, 2)),
    "DTLS behind TLS": (HEAD + "TLS.MinProtocol = TLSv1.3\nDTLS.MinProtocol = DTLSv1.2\n", (0x304, 2)),
    "another maximum": (HEAD + "MaxProtocol = TLSv1.2\n", (0, 2)),
    "blanks and comments": (SPACED, (0x304, 3)),
    "a line in two": (HEAD + "MinProtocol = \\\nTLSv1.3\nCipherString = DEFAULT:\\\n@SECLEVEL=3\n", (0x304, 3)),
    "Windows": ((HEAD + "MinProtocol = TLSv1.3\n").replace("\n", "\r\n"), (0x304, 2)),
    "quotes": (
        "text = 'a # b'\n" + HEAD + 'MinProtocol = "TLSv1.3"\nCipherString = DEFAULT@"SECLEVEL=3" # "x"\n',
        (0x304, 3),
    ),
    "variables": (
        "low = TLSv1.3\nlevel = 3\n"
        + HEAD
        + "level = 1\nMinProtocol = $low\nCipherString = DEFAULT@SECLEVEL=${level}\n",
        (0x304, 1),
    ),
    "variables of a section": (
        "[numbers]\nlevel = 3\n[default]\n" + HEAD + "CipherString = DEFAULT@SECLEVEL=$numbers::level\n",
        (0, 3),
    ),
    "variables of the environment": (HEAD + "MinProtocol = $(ENV::LOW)\n", (0x304, 2)),
    "assignments to another section": (
        "openssl_conf = whole\n[x]\nwhole::ssl_conf = ssl\nssl::system_default = d\nd::MinProtocol = TLSv1.3\n",
        (0x304, 2),
    ),
    "includes": (HEAD + ".include = FOLDER/more\n", (0x304, 3)),
    "includes of a folder": (HEAD + ".include FOLDER/many\n", (0x304, 3)),
    "includes of what is not there": (HEAD + "MinProtocol = TLSv1.3\n.include FOLDER/none\n", (0x304, 2)),
    "a pragma": (".pragma = dollarid:on\n" + HEAD + "MinProtocol = TLSv1.3\n", (0x304, 2)),
}


def limits_of(file: Path) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the limits by the library and by trouter, in a process with this file of OpenSSL."""
    done = subprocess.run(
        [sys.executable, "-c", COMPARE],
        cwd=ROOT,
        env={**os.environ, "OPENSSL_CONF": str(file), "LOW": "TLSv1.3"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    library, ours = json.loads(done.stdout)
    return tuple(library), tuple(ours)


@pytest.mark.parametrize("kind", FILES)
def test_the_limits_are_those_of_the_library(kind: str, tmp_path: Path) -> None:
    text, limits = FILES[kind]
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "1.cnf").write_text("MinProtocol = TLSv1.3\n")
    (tmp_path / "many" / "2.conf").write_text("CipherString = DEFAULT@SECLEVEL=3\n")
    (tmp_path / "many" / "3.txt").write_text("CipherString = DEFAULT@SECLEVEL=1\n")
    (tmp_path / "more").write_text("TLS.MinProtocol = TLSv1.3\nCipherString = @SECLEVEL=3:DEFAULT\n")
    file = tmp_path / "openssl.cnf"
    file.write_bytes(text.replace("FOLDER", str(tmp_path)).encode())
    assert limits_of(file) == (limits, limits)


def test_without_the_file_there_is_no_limit(tmp_path: Path) -> None:
    assert limits_of(tmp_path / "none") == ((0, 2), (0, 2))


@pytest.mark.parametrize(
    "text",
    ["so\n", HEAD + "CipherString = $none\n", ".include FOLDER/openssl.cnf\n"],
    ids=["no form", "no value", "itself"],
)
def test_with_a_file_that_cannot_be_read_pythons_own_limits_hold(text: str, tmp_path: Path) -> None:
    """Python's own are at least as strict as none."""
    file = tmp_path / "openssl.cnf"
    file.write_text(text.replace("FOLDER", str(tmp_path)))
    with pytest.raises(ValueError, match=r"\w"):
        read_openssl_file(file)
    _, ours = limits_of(file)
    assert ours == (0x303, 2)


def test_the_file_of_this_machine_is_read() -> None:
    """Its own, where the environment names none."""
    path = openssl_file()
    if path.exists():
        assert read_openssl_file(path)
