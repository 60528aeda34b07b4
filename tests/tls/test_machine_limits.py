"""The machine's OpenSSL configuration limits each profile, unless an attribute overrides it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.routers import DEADLINE_S, ROOT
from tests.tls.pki import Authority
from trouter.config import ConfigurationError, load

MACHINE = """
openssl_conf = whole
[whole]
ssl_conf = ssl
[ssl]
system_default = default
[default]
MinProtocol = {minimum}
CipherString = DEFAULT@SECLEVEL={level}
"""
#: Prints the settings of a server's and a client's context of the first profile of a file, in a process of its own.
SHOW = """
import json, pathlib, sys
from trouter.config import load
from trouter.tls.contexts import ClientUse, ServerUse, client_context, server_context
from trouter.tls.problems import TlsProblem
(profile,) = load(pathlib.Path(sys.argv[1])).ssl_profiles
try:
    contexts = (server_context(profile, ServerUse("none"), ()), client_context(profile, ClientUse(), ()))
except TlsProblem as problem:
    print(json.dumps([problem.attribute]))
else:
    print(json.dumps([[x.minimum_version.name, x.maximum_version.name, x.security_level] for x in contexts]))
"""
#: The machine's minimum and level, the profile's attributes, and the resulting settings.
ROWS: dict[str, tuple[str, int, str, Any]] = {
    "nothing said": ("TLSv1.2", 2, "", ["TLSv1_2", "TLSv1_3", 2]),
    "a stricter machine": ("TLSv1.3", 2, "", ["TLSv1_3", "TLSv1_3", 2]),
    "a stricter level": ("TLSv1.2", 3, "", ["TLSv1_2", "TLSv1_3", 3]),
    "old versions": ("TLSv1.2", 2, "protocols: TLSv1 TLSv1.1 TLSv1.2", ["TLSv1_2", "TLSv1_2", 2]),
    "old versions alone": ("TLSv1.2", 2, "protocols: TLSv1 TLSv1.1", None),
    "a level among the ciphers": ("TLSv1.2", 2, "ciphers: DEFAULT:@SECLEVEL=0", ["TLSv1_2", "TLSv1_3", 2]),
    "a higher level among them": ("TLSv1.2", 2, "ciphers: DEFAULT:@SECLEVEL=3", ["TLSv1_2", "TLSv1_3", 3]),
    "a machine that allows old ones": ("TLSv1", 1, "protocols: TLSv1 TLSv1.2", ["TLSv1", "TLSv1_2", 2]),
    "below it on purpose": (
        "TLSv1.2", 2, "protocols: TLSv1 TLSv1.2\n belowSystemMinimum: yes", ["TLSv1", "TLSv1_2", 0]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("minimum", "level", "attributes", "shown"), ROWS.values(), ids=ROWS)
def test_the_minimum_of_the_machine_holds(
    tmp_path: Path, minimum: str, level: int, attributes: str, shown: Any
) -> None:
    pair = Authority(tmp_path).issue("CN=x", "router.example.com")
    (tmp_path / "openssl.cnf").write_text(MACHINE.format(minimum=minimum, level=level))
    text = f"sslProfile {{\n name: p\n certFile: {pair.cert}\n privateKeyFile: {pair.key}\n {attributes}\n}}\n"
    (tmp_path / "router.conf").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", SHOW, str(tmp_path / "router.conf")],
        cwd=ROOT,
        env={**os.environ, "OPENSSL_CONF": str(tmp_path / "openssl.cnf")},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert json.loads(done.stdout) == ([shown] * 2 if shown else ["protocols"])


def test_under_secure_defaults_no_profile_may_go_below_the_minimum_of_the_machine() -> None:
    profile = "sslProfile {\n name: p\n protocols: TLSv1\n belowSystemMinimum: yes\n}\n"
    assert load(text=profile).ssl_profiles[0].below_system_minimum
    with pytest.raises(ConfigurationError, match=r"sslProfile\.belowSystemMinimum: is forbidden by secureDefaults"):
        load(text=f"router {{ id: R, secureDefaults: yes }}\n{profile}")
