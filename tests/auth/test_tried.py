"""The name that a peer tries is read from its messages, and never a password (security.md 8.1)."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trouter.auth.tried import MAX_TRIED, READERS, TriedName
from trouter.hooks import ListenerFacts, PeerFacts, TlsFacts
from trouter.mechanisms import ANONYMOUS, EXTERNAL, STANDARD

pytestmark = pytest.mark.attack

PEER = PeerFacts(1, ListenerFacts("here", "", "amqp"), "192.0.2.1", 40000, encrypted=True, loopback=False)
SECRET = b"open sesame"


def ntlm(user: str, flags: int = 1) -> bytes:
    name = user.encode("utf-16-le" if flags & 1 else "latin-1")
    fields = b"".join(struct.pack("<HHI", size, size, 64) for size in (0, 0, 0, len(name), 0, 0))
    return b"NTLMSSP\0\3\0\0\0" + fields + struct.pack("<I", flags)[:4] + name


DIGEST = b'charset=utf-8,username="%b",realm="r",nonce="n",response=00,qop=auth'
#: By mechanism: the initial response, further ones, and the name.
SAID: list[tuple[str, list[bytes], str]] = [
    ("PLAIN", [b"\0alice\0" + SECRET], "alice"),
    ("PLAIN", [b"", b"bob\0alice\0" + SECRET], "alice"),
    ("PLAIN", [b"\0\xff\0" + SECRET], "\ufffd"),
    ("PLAIN", [b"alice\0" + SECRET], ""),
    ("PLAIN", [SECRET], ""),
    ("PLAIN", [b"\0\0" + SECRET], ""),
    ("PLAIN", [b"\0a\0" + SECRET + b"\0" + SECRET], ""),
    ("LOGIN", [b"", b"alice", SECRET], "alice"),
    ("LOGIN", [b"alice", SECRET], "alice"),
    ("LOGIN", [b"", b"", SECRET], ""),
    ("CRAM-MD5", [b"", b"alice of here " + b"0" * 32], "alice of here"),
    ("CRAM-MD5", [b"", b"alice"], ""),
    ("DIGEST-MD5", [b"", DIGEST % b"alice"], "alice"),
    ("DIGEST-MD5", [b"", DIGEST % rb"al\"i\\ce"], 'al"i\\ce'),
    ("DIGEST-MD5", [b"", DIGEST % b"alice" + b',username="bob"'], ""),
    ("DIGEST-MD5", [b"", b"username=alice"], ""),
    ("DIGEST-MD5", [b"", b"=,"], ""),
    ("NTLM", [b"NTLMSSP\0\1\0\0\0" + b"\0" * 60, ntlm("alice")], "alice"),
    ("NTLM", [b"", b"NTLMSSP\0\1\0\0\0" + b"\0" * 60, ntlm("alice", 0)], "alice"),
    ("NTLM", [ntlm("alice")[:40]], ""),
    ("OTP", [b"\0alice"], "alice"),
    ("OTP", [b"alice"], ""),
    ("SRP", [struct.pack(">IH5s", 7, 5, b"alice")], "alice"),
    ("SRP", [b"\0\0\0\7\0\7alice"], ""),
    ("SRP", [b"x"], ""),
    ("OAUTHBEARER", [b"n,a=al=2Cice,\1auth=Bearer x\1\1"], "al,ice"),
    ("OAUTHBEARER", [b"n,,\1auth=Bearer x\1\1"], ""),
    ("XOAUTH2", [b"user=alice\1auth=Bearer x\1\1"], "alice"),
    ("XOAUTH2", [b"auth=Bearer x\1user=alice\1\1"], ""),
    ("SCRAM-SHA-256", [b"n,,n=alice,r=abc", b"c=biws,r=abcd,p=AAAA"], "alice"),
    ("SCRAM-SHA-256", [b"", b"n,a=bob,n=al=3Dice=2C,r=abc"], "al=ice,"),
    ("SCRAM-SHA-256-PLUS", [b"p=tls-unique,,n=alice,r=abc"], "alice"),
    ("SCRAM-SHA-1", [b"n,,m=x,n=alice,r=abc"], ""),
    ("SCRAM-SHA-1", [b"n,,n=alice,n=bob,r=abc"], ""),
    ("GSSAPI", [b"\0alice\0" + SECRET], ""),
    ("X-MINE", [b"\0alice\0" + SECRET], ""),
    ("ANONYMOUS", [SECRET], ""),
]


@pytest.mark.parametrize(("mechanism", "responses", "name"), SAID)
def test_the_name_stands_in_the_first_message_of_the_client(mechanism: str, responses: list[bytes], name: str) -> None:
    tried = TriedName(mechanism, PEER)
    tried.begin(responses[0])
    for response in responses[1:]:
        tried.read(response)
    assert tried.name == name
    assert SECRET.decode() not in tried.name


def test_a_certificate_names_its_user_for_external() -> None:
    tls = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", 256, "CN=alice", b"certificate", "alice")
    peer = PeerFacts(1, PEER.listener, "192.0.2.1", 40000, encrypted=True, loopback=False, tls=tls)
    assert TriedName("EXTERNAL", peer).name == "alice"
    assert TriedName("PLAIN", peer).name == ""
    assert TriedName("EXTERNAL", PEER).name == ""


def test_every_standard_mechanism_has_a_reader() -> None:
    assert STANDARD.keys() - READERS.keys() == {ANONYMOUS, EXTERNAL}
    assert READERS.keys() <= STANDARD.keys()


@given(st.sampled_from([*READERS]), st.lists(st.binary(max_size=200), min_size=1, max_size=3))
def test_any_bytes_are_read_within_bounds(mechanism: str, responses: list[bytes]) -> None:
    tried = TriedName(mechanism, PEER)
    tried.begin(responses[0])
    for response in responses[1:]:
        tried.read(response)
    assert len(tried.name) <= MAX_TRIED


@pytest.mark.parametrize("mechanism", READERS)
def test_a_long_message_is_read_in_linear_time(mechanism: str) -> None:
    for message in (
        b"n,,n=" + b"a" * 60_000,
        b'username="' + b'\\"' * 30_000,
        b" " * 60_000,
        b"a " * 30_000 + b"0" * 32,
    ):
        tried = TriedName(mechanism, PEER)
        tried.begin(message)
        assert len(tried.name) <= MAX_TRIED
