"""TLS at the dialling end: a connector refuses a server that avoids verification (security.md 7.4)."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.tls.pki import Authority
from tests.tls.test_profiles import agrees, profile
from trouter.tls.contexts import ClientUse, client_context

pytestmark = pytest.mark.attack


def server(authority: Authority, ciphers: str = "", pair: bool = True) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if pair:
        made = authority.issue("CN=localhost", "localhost")
        context.load_cert_chain(made.cert, made.key)
    if ciphers:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(ciphers)
    return context


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("ciphers", ["aNULL:@SECLEVEL=0", "eNULL:@SECLEVEL=0", "aNULL:eNULL:@SECLEVEL=0"])
def test_a_server_without_a_certificate_or_a_cipher_is_refused(tmp_path: Path, ciphers: str, verify: bool) -> None:
    """CVE-2019-0223; a client that accepts anonymous ciphers would have connected."""
    authority = Authority(tmp_path)
    here = client_context(profile(authority, None), ClientUse(verify), (authority.certificate,))
    assert agrees(server(authority), here, "localhost")
    anonymous = server(authority, ciphers, pair="aNULL" not in ciphers)
    assert not agrees(anonymous, here, "localhost")
    careless = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    careless.check_hostname = False
    careless.verify_mode = ssl.CERT_NONE
    careless.maximum_version = ssl.TLSVersion.TLSv1_2
    careless.set_ciphers("ALL:eNULL:@SECLEVEL=0")
    assert agrees(anonymous, careless, "localhost")
