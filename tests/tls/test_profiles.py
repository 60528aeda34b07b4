"""The values of sslProfiles, their renewal, their authorities, their names (security.md 2.1, 2.2, 8.4)."""

from __future__ import annotations

import shutil
import ssl
import time
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tests.tls.pki import DAY, Authority, Pair
from trouter.config import ListenerEntity, SslProfileEntity, load
from trouter.tls.contexts import ClientUse, ServerUse, client_context, server_context, use_of
from trouter.tls.loaded import load as load_profile
from trouter.tls.problems import TlsProblem, TlsProblems
from trouter.tls.profiles import TlsProfiles

NONE = frozenset({ServerUse("none")})


def profile(authority: Authority | None, pair: Pair | None, **attributes: object) -> SslProfileEntity:
    given: dict[str, object] = {"name": "p", **attributes}
    if authority is not None:
        given["ca_cert_file"] = str(authority.file)
    if pair is not None:
        given |= {"cert_file": str(pair.cert), "private_key_file": str(pair.key)}
    return SslProfileEntity(**given)  # type: ignore[arg-type]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


BROKEN = {
    "certificate that has ended": ("certFile", lambda a: profile(a, a.issue("CN=x", days=-0.5))),
    "certificate of tomorrow": ("certFile", lambda a: profile(a, a.issue("CN=x", begins=1))),
    "key of another": (
        "privateKeyFile",
        lambda a: replace(profile(a, a.issue("CN=x")), private_key_file=str(a.issue("CN=y").key)),
    ),
    "key that needs a password": ("privateKeyFile", lambda a: profile(a, a.issue("CN=x", password="secret"))),
    "no certificate": ("certFile", lambda a: profile(a, None)),
    "no cipher": ("ciphers", lambda a: profile(a, a.issue("CN=x"), ciphers="aNULL")),
    "rubbish for ciphers": ("ciphers", lambda a: profile(a, a.issue("CN=x"), ciphers="NONSENSE")),
    "a key for an authority": (
        "caCertFile",
        lambda a: replace(profile(a, a.issue("CN=x")), ca_cert_file=str(a.issue("CN=y").key)),
    ),
    "a list that another has signed": (
        "crlFile",
        lambda a: profile(a, a.issue("CN=x"), crl_file=str(Authority(a.folder).revoke())),
    ),
    "a list of what has changed only": (
        "crlFile",
        lambda a: profile(a, a.issue("CN=x"), crl_file=str(a.revoke(extension=x509.DeltaCRLIndicator(7)))),
    ),
}


@pytest.mark.parametrize(("attribute", "make"), BROKEN.values(), ids=BROKEN)
def test_an_unusable_profile_is_refused_with_the_attribute(attribute: str, make: object, authority: Authority) -> None:
    with pytest.raises(TlsProblem) as problem:
        load_profile(make(authority), NONE, time.time())  # type: ignore[operator]
    assert problem.value.attribute == attribute


async def test_a_broken_renewal_keeps_the_old_pair_and_a_whole_one_replaces_it(authority: Authority) -> None:
    first, second = authority.issue("CN=first"), authority.issue("CN=second")
    text = f"sslProfile {{\n name: p\n certFile: {first.cert}\n privateKeyFile: {first.key}\n}}"
    profiles = TlsProfiles()
    (await profiles.prepare(load(text=text))).apply()
    before = profiles.loaded("p")
    shutil.copy(second.cert, first.cert)
    assert await profiles.renew() == []  # seen for the first time: it may still be changing
    (renewal,) = await profiles.renew()
    assert renewal.problem.startswith("privateKeyFile")
    assert profiles.loaded("p") is before
    assert await profiles.renew() == []  # reported once
    shutil.copy(second.key, first.key)
    await profiles.renew()
    (renewal,) = await profiles.renew()
    assert renewal.problem == ""
    loaded = profiles.loaded("p")
    assert loaded is not None
    assert loaded.certificate == second.certificate
    with pytest.raises(TlsProblems, match="certFile"):
        await profiles.prepare(load(text=text + "\nlistener {\n port: 0\n sslProfile: q\n}\nsslProfile { name: q }"))


async def test_new_files_that_strangers_can_change_are_not_used_with_secure_defaults(authority: Authority) -> None:
    first, second = authority.issue("CN=first"), authority.issue("CN=second")
    text = f"sslProfile {{\n name: p\n certFile: {first.cert}\n privateKeyFile: {first.key}\n}}"
    secure = f"router {{ secureDefaults: yes }}\n{text}"
    strict, compatible, accepting = TlsProfiles(), TlsProfiles(), TlsProfiles()
    (await strict.prepare(load(text=secure))).apply()
    (await compatible.prepare(load(text=text))).apply()
    first.cert.chmod(0o666)
    accepted = load(text=secure.replace("sslProfile", "# trouter: accept writable-by-others: a test\nsslProfile"))
    (await accepting.prepare(accepted)).apply()
    shutil.copyfile(second.cert, first.cert)
    shutil.copyfile(second.key, first.key)
    for each in (strict, compatible, accepting):
        await each.renew()
    (renewal,) = await strict.renew()
    assert f"all users of this machine can change {first.cert}" in renewal.problem
    assert await strict.renew() == [], "reported once"
    for each in (compatible, accepting):
        assert [renewal.problem for renewal in await each.renew()] == [""]
    loaded = strict.loaded("p")
    assert loaded is not None
    assert loaded.certificate == first.certificate
    first.cert.chmod(0o644)
    await strict.renew()
    assert [renewal.problem for renewal in await strict.renew()] == [""]
    loaded = strict.loaded("p")
    assert loaded is not None
    assert loaded.certificate == second.certificate


async def test_a_renewal_waits_for_the_password_of_its_key(authority: Authority) -> None:
    """Files change one after the other, and the password may be the last of them."""
    first, second = authority.issue("CN=first", password="one"), authority.issue("CN=second", password="two")
    password = authority.folder / "password"
    password.write_text("one")
    text = f"sslProfile {{\n name: p\n certFile: {first.cert}\n privateKeyFile: {first.key}\n"
    profiles = TlsProfiles()
    (await profiles.prepare(load(text=f"{text} passwordFile: {password}\n}}"))).apply()
    shutil.copy(second.cert, first.cert)
    shutil.copy(second.key, first.key)
    await profiles.renew()
    (renewal,) = await profiles.renew()
    assert renewal.problem.startswith("privateKeyFile")
    password.write_text("two")
    await profiles.renew()
    (renewal,) = await profiles.renew()
    assert renewal.problem == ""


async def test_ends_are_reported_at_thirty_days_seven_and_one(authority: Authority) -> None:
    pair = authority.issue("CN=x", days=40)
    now = [time.time()]
    profiles = TlsProfiles(lambda: now[0])
    text = f"sslProfile {{\n name: p\n certFile: {pair.cert}\n privateKeyFile: {pair.key}\n}}"
    (await profiles.prepare(load(text=text))).apply()
    warned = []
    for _ in range(42):
        warned += [days for _, days, _ in profiles.endings()]
        now[0] += DAY.total_seconds()
    assert warned == [30, 7, 1]


async def test_open_connections_are_judged_by_the_lists_of_now(authority: Authority) -> None:
    alice, now = authority.issue("CN=alice", days=3), [time.time()]
    crl = authority.revoke()
    text = f"sslProfile {{\n name: p\n caCertFile: {authority.file}\n crlFile: {crl}\n crlRequired: yes\n}}"
    profiles = TlsProfiles(lambda: now[0])
    (await profiles.prepare(load(text=text))).apply()
    chain = [each.certificate.public_bytes(Encoding.DER) for each in (alice, authority)]
    assert profiles.objection(chain, "p") == ""
    authority.revoke(alice.certificate, into=crl)
    await profiles.renew()
    await profiles.renew()
    assert "revoked" in profiles.objection(chain, "p")
    authority.revoke(into=crl)
    await profiles.renew()
    await profiles.renew()
    now[0] += 2 * DAY.total_seconds()
    assert "no current revocation list" in profiles.objection(chain, "p")
    now[0] += 2 * DAY.total_seconds()
    assert "expired" in profiles.objection(chain, "p")


async def test_a_certificate_of_an_expired_authority_is_not_trusted(authority: Authority) -> None:
    alice, now = authority.issue("CN=alice", days=500), [time.time()]
    profiles = TlsProfiles(lambda: now[0])
    (await profiles.prepare(load(text=f"sslProfile {{\n name: p\n caCertFile: {authority.file}\n}}"))).apply()
    chain = [each.certificate.public_bytes(Encoding.DER) for each in (alice, authority)]
    assert profiles.objection(chain, "p") == ""
    now[0] += 450 * DAY.total_seconds()  # longer than the authority's own, and shorter than alice's
    assert "expired" in profiles.objection(chain, "p")


async def test_of_two_authorities_of_one_name_each_is_believed_until_it_is_withdrawn(tmp_path: Path) -> None:
    authority, other = (Authority(tmp_path, key_ids=True) for _ in range(2))
    assert other.subject == authority.subject
    both = tmp_path / "both.pem"
    both.write_bytes(other.file.read_bytes() + authority.file.read_bytes())
    server = authority.issue("CN=x", "router.test.example")
    files = f"certFile: {server.cert}\n privateKeyFile: {server.key}\n caCertFile: {both}"
    listener = "listener {\n port: 0\n sslProfile: p\n authenticatePeer: yes\n saslMechanisms: EXTERNAL\n}"
    profiles = TlsProfiles()
    (await profiles.prepare(load(text=f"sslProfile {{\n name: p\n {files}\n}}\n{listener}"))).apply()
    pairs = {each: each.issue("CN=alice") for each in (authority, other)}

    def believed() -> list[Authority]:
        """Return the authorities whose alice may connect."""
        loaded = profiles.loaded("p")
        assert loaded is not None
        (context,) = loaded.contexts.values()
        found = []
        for each, pair in pairs.items():
            here = ssl.create_default_context(cafile=str(authority.file))
            here.load_cert_chain(pair.cert, pair.key)
            found += [each] if agrees(context, here, "router.test.example") else []
        return found

    assert believed() == [authority, other]
    for left in (other, authority):
        both.write_bytes(left.file.read_bytes())
        await profiles.renew()
        assert [renewal.problem for renewal in await profiles.renew()] == [""]
        assert believed() == [left]


NAMES = {
    "its name": (("router.test.example",), "router.test.example", True),
    "another": (("other.example",), "router.test.example", False),
    "a whole label": (("*.test.example",), "router.test.example", True),
    "part of a label": (("r*.test.example",), "router.test.example", False),
    "two labels": (("*.test.example",), "a.router.test.example", False),
    "only the common name": ((), "router.test.example", False),
    "its address": (("127.0.0.1",), "127.0.0.1", True),
    "another address": (("127.0.0.2",), "127.0.0.1", False),
}


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(("sans", "host", "right"), NAMES.values(), ids=NAMES)
def test_a_connector_accepts_certificates_of_the_host_and_the_trusted_authority(
    authority: Authority, sans: tuple[str, ...], host: str, right: bool, verify: bool
) -> None:
    pair = authority.issue("CN=router.test.example", *sans)
    there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    there.load_cert_chain(pair.cert, pair.key)
    entity = profile(authority, None)
    here = client_context(entity, ClientUse(verify), (authority.certificate,))
    stranger = client_context(entity, ClientUse(verify), (Authority(authority.folder).certificate,))
    assert agrees(there, here, host) == (right or not verify)
    assert not agrees(there, stranger, host)


@pytest.mark.parametrize(
    ("own", "system", "believed"),
    [(True, False, False), (True, True, True), (False, False, True)],
    ids=["its own authorities alone", "those of the system, too", "those of the system, for want of its own"],
)
def test_whether_a_connector_believes_the_authorities_of_the_system(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, own: bool, system: bool, believed: bool
) -> None:
    """R-2.2b, Q-05."""
    other = Authority(authority.folder, "The System's")
    monkeypatch.setenv("SSL_CERT_FILE", str(other.file))
    pair = other.issue("CN=x", "router.test.example")
    there = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    there.load_cert_chain(pair.cert, pair.key)
    entity = profile(authority if own else None, None, use_system_ca=system)
    here = client_context(entity, ClientUse(), (authority.certificate,) if own else ())
    assert agrees(there, here, "router.test.example") == believed


@pytest.mark.parametrize("trusted", [False, True], ids=["the profile's", "the listener's own"])
@pytest.mark.parametrize("system", [False, True], ids=["alone", "and the system's"])
def test_whether_a_listener_believes_the_authorities_of_the_system(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, trusted: bool, system: bool
) -> None:
    """The authorities in trustedCertsFile of a listener are the only ones that it trusts (R-2.2b, R-2.4)."""
    other = Authority(authority.folder, "The System's")
    monkeypatch.setenv("SSL_CERT_FILE", str(other.file))
    entity = profile(authority, authority.issue("CN=x", "router.test.example"), use_system_ca=system)
    listener = ListenerEntity(client_cert="required", trusted_certs_file=str(authority.file) if trusted else None)
    there = server_context(entity, use_of(listener, entity), (authority.certificate,))
    here = ssl.create_default_context(cafile=str(authority.file))
    here.load_cert_chain(*other.issue("CN=alice")[:2])
    assert agrees(there, here, "router.test.example") == (system and not trusted)


def agrees(there: ssl.SSLContext, here: ssl.SSLContext, host: str) -> bool:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        here.wrap_bio(to_client, to_server, server_hostname=host),
        there.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return False
    return True
