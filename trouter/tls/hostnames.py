"""The hosts that a certificate is for, if its common name counts too (RFC 6125, 6.4.4: as the last resort)."""

from __future__ import annotations

import ipaddress

from cryptography import x509
from cryptography.x509.oid import NameOID

from trouter.hooks.certificates import UNREADABLE

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_for(der: bytes | None, host: str) -> bool:
    """Return whether a certificate (DER) is for ``host``, a name or an address.

    The names in subjectAltName count; without that extension, the common names. A wildcard stands for exactly the first
    label, and at least two labels must follow it. An unreadable certificate is for no host.
    """
    if der is None:
        return False
    try:
        certificate = x509.load_der_x509_certificate(der)
        names, addresses = _names_of(certificate)
    except UNREADABLE:
        return False
    wanted = _address(host.partition("%")[0])
    if wanted is not None:
        return wanted in addresses
    try:
        name = host.removesuffix(".").encode("idna").decode("ascii").lower()
    except UnicodeError:
        return False
    return any(_matches(pattern.lower(), name) for pattern in names)


def host_names_in(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the names of hosts in a certificate; none if it is unreadable."""
    try:
        return tuple(_names_of(certificate)[0])
    except UNREADABLE:
        return ()


def _names_of(certificate: x509.Certificate) -> tuple[list[str], list[Address]]:
    """Return the host names and addresses in a certificate; UNREADABLE."""
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        common = [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        found = [address for name in common if (address := _address(name)) is not None]
        return [name for name in common if _address(name) is None], found
    addresses = alternatives.get_values_for_type(x509.IPAddress)
    return (alternatives.get_values_for_type(x509.DNSName), [each for each in addresses if isinstance(each, Address)])


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _matches(pattern: str, name: str) -> bool:
    if not pattern.startswith("*."):
        return bool(name) and pattern == name
    rest = pattern[2:]
    label, dot, parent = name.partition(".")
    return bool(label and dot) and parent == rest and "." in rest and "*" not in rest
