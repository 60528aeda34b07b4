"""Subjects of certificates as text: RFC 2253, escaped as Qpid Dispatch does."""

from __future__ import annotations

from typing import Final

from cryptography import x509

_SHORT: Final = {
    "2.5.4.3": "CN",
    "2.5.4.4": "SN",
    "2.5.4.5": "serialNumber",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "street",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.12": "title",
    "2.5.4.17": "postalCode",
    "2.5.4.42": "GN",
    "2.5.4.46": "dnQualifier",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
    "1.2.840.113549.1.9.1": "emailAddress",
}
_SPECIAL: Final = frozenset(',+"\\<>;')


def distinguished_name(name: x509.Name) -> str:
    """Return a name, its last part first, in ASCII; other characters become bytes in hex. "" for an empty name."""
    return ",".join("+".join(_part(attribute) for attribute in reversed(list(part))) for part in reversed(name.rdns))


def _part(attribute: x509.NameAttribute[str | bytes]) -> str:
    oid = attribute.oid.dotted_string
    value = attribute.value if isinstance(attribute.value, str) else attribute.value.hex()
    return f"{_SHORT.get(oid, oid)}={_escaped(value)}"


def _escaped(value: str) -> str:
    last = len(value) - 1
    shown = []
    for at, char in enumerate(value):
        if char in _SPECIAL or (char in " #" and at == 0) or (char == " " and at == last):
            shown.append(f"\\{char}")
        elif " " <= char <= "~":
            shown.append(char)
        else:
            shown += [f"\\{byte:02X}" for byte in char.encode("utf-8", "surrogatepass")]
    return "".join(shown)
