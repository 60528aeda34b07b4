"""security.md 2.3, rule by rule: the user name for a certificate."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from tests.tls.pki import OIDS
from trouter.hooks import CertificateFacts, Plugins, Refused, SslProfileFacts
from trouter_plugins import uid_format

KEY = ec.generate_private_key(ec.SECP256R1())
ALICE = ("C=US", "ST=NC", "L=Raleigh", "O=Client", "OU=Dev", "CN=alice")
BOB = ("C=US", "O=Client", "CN=bob")
SUBJECT = "the whole subject"


def certificate(parts: Sequence[str], subject: str = SUBJECT) -> CertificateFacts:
    pairs = (part.split("=", 1) for part in parts)
    name = x509.Name([x509.NameAttribute(OIDS[key], value) for key, value in pairs])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, KEY.public_key(), 1, now, now + timedelta(1))
        .sign(KEY, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )
    return CertificateFacts(subject, made)


def uid(parts: Sequence[str], letters: str, names: Mapping[str, str] | None = None, **choices: object) -> str | Refused:
    profile = SslProfileFacts("p", letters, names=names or {}, **choices)  # type: ignore[arg-type]
    return Plugins([uid_format]).map_uid(certificate(parts), profile)


RULES = {
    "the order of the letters": (ALICE, "onu", "Client;alice;Dev"),
    "all fields": (ALICE, "cslou", "US;NC;Raleigh;Client;Dev"),
    "one field": (ALICE, "n", "alice"),
    "what is missing goes with its separator": (BOB, "cslounn", "US;Client;bob;bob"),
    "the first of several": ((*ALICE, "OU=Ops", "CN=second"), "un", "Dev;alice"),
    "a letter twice": (ALICE, "nn", "alice;alice"),
    "a separator inside": (("O=a;b", "CN=c"), "on", "a;b;c"),
    "no field at all": (("CN=x",), "csl", SUBJECT),
    "no format": (ALICE, "", SUBJECT),
    "nine letters": (ALICE, "cslouncsl", "US;NC;Raleigh;Client;Dev;alice;US;NC;Raleigh"),
    "not ASCII": (("CN=Zo\N{LATIN SMALL LETTER E WITH DIAERESIS}",), "n", "Zo\N{LATIN SMALL LETTER E WITH DIAERESIS}"),
}


@pytest.mark.parametrize(("parts", "letters", "user"), RULES.values(), ids=RULES)
def test_a_format_makes_the_user(parts: Sequence[str], letters: str, user: str) -> None:
    assert uid(parts, letters) == user


@pytest.mark.parametrize(("letter", "digest"), [("1", "sha1"), ("2", "sha256"), ("5", "sha512")])
def test_a_digest_is_that_of_the_certificate_in_lower_case(letter: str, digest: str) -> None:
    facts = certificate(ALICE)
    made = Plugins([uid_format]).map_uid(facts, SslProfileFacts("p", f"{letter}n"))
    assert made == f"{hashlib.new(digest, facts.der).hexdigest()};alice"


CHOICES: dict[str, tuple[Sequence[str], dict[str, object], str | None]] = {
    "skipped": (BOB, {"uid_missing": "skip"}, "US;Client;bob"),
    "left empty": (BOB, {"uid_missing": "empty"}, "US;;;Client;;bob"),
    "rejected": (BOB, {"uid_missing": "reject"}, None),
    "there, so not rejected": (ALICE, {"uid_missing": "reject"}, "US;NC;Raleigh;Client;Dev;alice"),
    "escaped": (("O=a;b", r"CN=c\d"), {"uid_escape": True}, r"a\;b;c\\d"),
}


@pytest.mark.parametrize(("parts", "choices", "user"), CHOICES.values(), ids=CHOICES)
def test_a_missing_or_doubtful_part_is_treated_as_configured(
    parts: Sequence[str], choices: dict[str, object], user: str | None
) -> None:
    made = uid(parts, "csloun", None, **choices)
    assert made == user if user else isinstance(made, Refused)


@pytest.mark.parametrize("control", ["\0", "\r", "\n", "\x1b", "\x7f", "\x85"])
def test_a_name_with_control_characters_is_refused(control: str) -> None:
    refusal = uid((f"CN=alice{control}root",), "n")
    assert isinstance(refusal, Refused)
    assert "alice" not in refusal.reason


def test_only_the_parts_that_make_the_user_are_judged() -> None:
    assert uid(("O=a\nb", "CN=alice"), "n") == "alice"


def test_without_a_subject_there_is_no_user() -> None:
    facts = CertificateFacts("", certificate(()).der)
    assert isinstance(Plugins([uid_format]).map_uid(facts, SslProfileFacts("p", "n")), Refused)


@pytest.mark.parametrize(
    ("letters", "names", "user"),
    [
        ("on", {"Client;alice": "Alice"}, "Alice"),
        ("on", {"Client;alice": ""}, "Client;alice"),
        ("on", {"alice": "Alice"}, "Client;alice"),
        ("", {SUBJECT: "Alice"}, "Alice"),
    ],
)
def test_a_mapping_gives_the_user_another_name(letters: str, names: dict[str, str], user: str) -> None:
    assert uid(ALICE, letters, names) == user


def test_rubbish_instead_of_a_certificate_is_refused() -> None:
    plugins = Plugins([uid_format])
    assert isinstance(plugins.map_uid(CertificateFacts("CN=x", b"rubbish"), SslProfileFacts("p", "n")), Refused)
    assert plugins.faults["map_uid"] == 0
