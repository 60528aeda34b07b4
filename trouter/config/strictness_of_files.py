"""The points of strictness about files: contents that Qpid Dispatch reads in its own way."""

from __future__ import annotations

from typing import Final

from trouter.config.point import Point
from trouter.config.problems import Severity


def _read_as(
    name: str,
    subject: str,
    compatible: str,
    warning: str,
    cure: str,
    page: str = "configuration.md",
    severity: Severity = Severity.NOTE,
    strict: str = "the file is refused",
) -> Point:
    return Point(name, subject, compatible, strict, warning, cure, page, severity)


#: Contents of a file that Qpid Dispatch reads in its own way.
READ_AS: Final = (
    _read_as(
        "unknown-in-group",
        "vhost.groups",
        "an unknown attribute of a group is ignored",
        "it will be ignored",
        "leave it out",
        "policy.md",
    ),
    _read_as(
        "unknown-tls-version",
        "sslProfile.protocols",
        "the profile cannot be used: its listeners open, its connectors do not dial",
        "listeners with this profile will refuse TLS, connectors will not dial",
        "a list of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3",
        "tls.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "unknown-uid-letter",
        "sslProfile.uidFormat",
        "the whole subject of the certificate is the user's name",
        "the whole subject of the certificate will be the user's name",
        "letters of csloun125, one digest at most",
        "tls.md",
        Severity.UNSAFE,
    ),
    _read_as(
        "size-clamped",
        "listener.maxFrameSize",
        "maxFrameSize, maxSessions and every other number of its attributes, those of policies apart, counts as the "
        "nearest within its bounds",
        "it will count as the nearest number within",
        "an integer within the bounds",
    ),
    _read_as(
        "port-too-high",
        "listener.port",
        "for a port above 65535 the router uses the lowest 16 bits",
        "the remainder by 65536 will be the port",
        "a number from 0 to 65535",
        "configuration.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "left-out",
        "linkRoute",
        "an address, linkRoute, autoLink, exchange or binding with a contradiction or an impossible value, and an "
        "sslProfile or authServicePlugin without a name, is left out, and the rest serves",
        "this section will be left out",
        "mend it or remove it",
        "configuration.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "earlier-release",
        "tcpListener",
        "a section or a log module that only releases before 1.19 know (tcpListener, httpConnector, module TCP_ADAPTOR "
        "and the like) is left out, and the rest serves",
        "this section will be left out",
        "remove it",
        "compatibility.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "reported-attribute",
        "linkRoute.operStatus",
        "an attribute that only management shows is ignored in a file",
        "it will be ignored",
        "leave it out",
    ),
    _read_as(
        "unknown-component",
        "listener.messageLoggingComponents",
        "a word that names no part of a message is ignored",
        "it will be ignored",
        "all, none, or a list of parts",
    ),
    _read_as(
        "unknown-profile",
        "listener.sslProfile",
        "a listener or connector fails alone if its sslProfile does not exist",
        "it will not be served",
        "add an sslProfile with this name",
        "tls.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "unusable-profile",
        "listener.sslProfile",
        "a listener opens although its sslProfile cannot be used: its TLS handshakes fail; clients without TLS are "
        "served if requireSsl is no and only protocols is at fault",
        "",
        "",
        "tls.md",
        Severity.PROBLEM,
        "the router does not start",
    ),
    _read_as(
        "half-a-pair",
        "sslProfile.certFile",
        "with a certFile and no privateKeyFile the profile cannot be used: its listeners open, its connectors do not "
        "dial",
        "listeners with this profile will refuse their clients, connectors will not dial",
        "add privateKeyFile: PATH",
        "tls.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "key-alone",
        "sslProfile.privateKeyFile",
        "a privateKeyFile without a certFile is not used",
        "it will not be used",
        "add certFile: PATH",
        "tls.md",
    ),
    _read_as(
        "service-without-host",
        "authServicePlugin.host",
        "a service without a host is never used, and the rest serves",
        "it will not be used",
        "add host: HOST",
        "auth-service.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "same-addresses",
        "address.prefix",
        "if two address sections have the same prefix or pattern, the first counts",
        "this section will not be added",
        "make one section of the two",
    ),
    _read_as(
        "unreadable-file",
        "sslProfile.certFile",
        "a certificate, key, authority, mapping or password file, or saslConfigDir, that cannot be read: "
        "the parts that need it fail, a listener at each TLS handshake, and the rest serves",
        "the parts that need it will not be served",
        "name one that can be read",
        "tls.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "encryption-without-profile",
        "listener.sslProfile",
        "a listener that requires TLS, or EXTERNAL, without an sslProfile opens, but no client can log in",
        "no client will be able to log in",
        "add sslProfile: NAME",
        "tls.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "external-without-profile",
        "connector.sslProfile",
        "a connector with EXTERNAL and no sslProfile dials, but cannot log in",
        "it will not be able to log in",
        "add an sslProfile with a certFile",
        "tls.md",
        Severity.PROBLEM,
    ),
    _read_as(
        "password-without-user",
        "connector.saslPassword",
        "a saslPassword without a saslUsername is not used",
        "it will not be used",
        "add saslUsername: NAME",
        "authentication.md",
    ),
    _read_as(
        "unserved-mechanism",
        "listener.saslMechanisms",
        "the listener opens without the mechanisms that no plugin serves",
        "no plugin serves {mechanisms}: will open without them",
        "leave it out, or configure a plugin that serves it",
        "authentication.md",
        strict="an unknown mechanism stops the start",
    ),
    _read_as(
        "no-such-mechanism",
        "listener.saslMechanisms",
        "a word that cannot be the name of a mechanism is ignored",
        "it will be ignored",
        "e.g. PLAIN",
        "authentication.md",
    ),
    _read_as(
        "unreadable-folder",
        "listener.httpRootDir",
        "requests for files of a folder that cannot be read are answered with 404",
        "requests for its files will be answered with 404",
        "name one that can be read",
    ),
)
