"""The table of strictness: what `secureDefaults` changes, and what is reported as unsafe with and without it.

The router serves the files of Qpid Dispatch, and reports what is unsafe in them (docs/decisions/0010). With
`secureDefaults: yes` in the router section each point has its strict side. The code that decides takes the texts from
`POINTS`; a test goes through all rows with and without the switch.
"""

from __future__ import annotations

from typing import Final, Unpack

from trouter.config.point import Point
from trouter.config.problems import About, Findings, Severity, SourcePosition
from trouter.config.strictness_of_files import READ_AS
from trouter.config.strictness_of_peers import BELIEVED, RIGHTS

#: Attributes whose default the switch changes.
DEFAULTS: Final = (
    Point(
        "passwords-in-clear",
        "listener.allowInsecurePlain",
        "yes, unless it is given: passwords are accepted without TLS from every machine",
        "loopback, unless it is given: without TLS they are accepted from this machine only",
        "will accept unencrypted passwords from other machines",
        "write allowInsecurePlain: loopback, or require TLS",
        "authentication.md",
    ),
    Point(
        "password-sent-in-clear",
        "connector.allowInsecurePlain",
        "yes, unless it is given: a connector logs in with PLAIN without TLS",
        "no, unless it is given",
        "will send the password unencrypted",
        "write an sslProfile, or allowInsecurePlain: loopback",
        "authentication.md",
    ),
    Point(
        "service-in-clear",
        "authServicePlugin.allowInsecurePlain",
        "yes, unless it is given: passwords are passed on to the service without TLS",
        "loopback, unless it is given: without TLS only to a service on this machine",
        "will pass passwords on to {host} unencrypted",
        "write an sslProfile, or allowInsecurePlain: loopback",
        "auth-service.md",
    ),
    Point(
        "authenticate-peer",
        "listener.authenticatePeer",
        "no, unless it is given: clients need not authenticate",
        "yes, unless it is given",
        "will let in every client from {where}, without {what}",
        "write authenticatePeer: yes",
        "authentication.md",
    ),
    Point(
        "require-tls",
        "listener.requireSsl",
        "no, unless it is given: clients may connect without TLS",
        "yes on listeners for other machines, unless it is given",
        "will accept clients without TLS from other machines",
        "write requireSsl: yes and an sslProfile",
        "tls.md",
    ),
    Point(
        "health-for-others",
        "listener.healthz",
        "yes, unless it is given",
        "no on listeners for other machines, unless it is given",
        "will show other machines the health of the router",
        "write healthz: no",
        "metrics.md",
    ),
    Point(
        "sessions",
        "listener.maxSessions",
        "1024 on listeners of role normal, unless it is given (Qpid Dispatch: 32768)",
        "256 there, unless it is given",
        page="limits.md",
    ),
    Point(
        "vhost-policy",
        "policy.enableVhostPolicy",
        "no, unless it is given: the rules of vhosts apply to no connection",
        "yes, unless it is given: a connection that no vhost allows is refused",
        "will not apply the rules of any vhost",
        "write enableVhostPolicy: yes",
        "policy.md",
    ),
)

#: Settings that Qpid Dispatch serves, and the switch forbids.
FORBIDDEN: Final = (
    Point(
        "unproven-router",
        "listener.role",
        "a listener of role inter-router or edge opens without authenticatePeer, and without TLS",
        "it is not opened, unless it authenticates, and uses TLS where it is not on a loopback address; "
        "allowInsecureRole: yes opens it",
        "will let in every host that reaches {where} as a router of the network",
        "write authenticatePeer: yes and an sslProfile",
        "networks.md",
    ),
)

#: The rights of management and of files beside the configuration.
MACHINE: Final = (
    Point(
        "listener-elsewhere",
        "router.allowedBindAddresses",
        "without it, management may open listeners on every interface",
        "without it, only on loopback addresses and the hosts of the listeners in the file",
        page="hardening.md",
    ),
    Point(
        "log-elsewhere",
        "router.logDir",
        "without it, management may choose log files wherever the router's user may write, no device or special file",
        "without it, only files that are logged to already",
        page="hardening.md",
    ),
    Point(
        "users-by-link",
        "router.usersFile",
        "a symbolic link is followed, to a file of safe modes",
        "a symbolic link is refused",
        page="authentication.md",
    ),
)

#: Settings that are reported with and without the switch.
REPORTED: Final = (
    Point(
        "no-mechanism",
        "listener.saslMechanisms",
        "a listener none of whose mechanisms is served opens",
        "",
        "no client will be able to log in: no plugin serves any of its mechanisms",
        "write saslMechanisms that are served: by a usersFile, a saslConfigDir or a plugin",
        "authentication.md",
        Severity.PROBLEM,
    ),
    Point(
        "unknown-connection",
        "autoLink.connection",
        "an autoLink or linkRoute whose connection does not exist waits for it: management may create it",
        "",
        "there is no connector or listener '{name}': will stay inactive",
        "add a connector or listener with this name and role: route-container",
        "link-routing.md",
        Severity.PROBLEM,
    ),
    Point(
        "connection-elsewhere",
        "linkRoute.connection",
        "a linkRoute whose connection only another router of the network has leads there",
        "",
        "there is no connector or listener '{name}' here: its links go to other routers alone",
        "leave out connection, or add a connector with this name and role: route-container",
        "link-routing.md",
        Severity.NOTE,
    ),
    Point(
        "not-for-routes",
        "linkRoute.connection",
        "an autoLink or linkRoute whose connection has another role than route-container stays inactive",
        "",
        "'{name}' has the role {role}: will stay inactive",
        "write role: route-container there",
        "link-routing.md",
        Severity.PROBLEM,
    ),
    Point(
        "unknown-vhost",
        "listener.policyVhost",
        "for a policyVhost that does not exist the default vhost counts; without that one too, connections are refused",
        "",
        "there is no vhost '{name}': connections will have the rights of the default vhost, or be refused without one",
        "add a vhost with this hostname",
        "policy.md",
        Severity.PROBLEM,
    ),
    Point(
        "not-expanded",
        "router.id",
        "variables of the environment count as text, except in the addresses of vhosts",
        "",
        "nothing expands {variable}: it will count as text",
        "write the value; passwords may be env:NAME",
        severity=Severity.NOTE,
    ),
    Point(
        "no-neighbours",
        "router.mode",
        "an interior router serves without other routers",
        "",
        "the router is interior, but no listener and no connector is for other routers",
        "add a listener or connector with role: inter-router, or write mode: standalone",
        "networks.md",
        Severity.NOTE,
    ),
    Point(
        "pages-of-every-site",
        "listener.webSocketOrigins",
        "`*` is obeyed",
        "",
        "will let the pages of every site open WebSockets",
        "name the sites",
    ),
    Point(
        "tls-if-they-like",
        "listener.requireSsl",
        "an sslProfile alone leaves TLS to the client",
        "",
        "will accept clients without TLS too",
        "write requireSsl: yes",
        "tls.md",
    ),
    Point(
        "never-opens",
        "listener.initialHandshakeTimeoutSeconds",
        "0 is obeyed",
        "",
        "will keep connections that never open for ever",
        "write a number of seconds",
    ),
    Point(
        "any-host-name",
        "connector.verifyHostname",
        "`no` is obeyed",
        "",
        "will accept any host with a trusted certificate in place of the one that it dials",
        "write verifyHostname: yes",
        "tls.md",
    ),
    Point(
        "old-tls",
        "sslProfile.protocols",
        "TLSv1 and TLSv1.1 are allowed where they are named, as far as the machine's OpenSSL configuration allows them",
        "",
        "will allow {versions}, which can be broken",
        "write TLSv1.2 TLSv1.3",
        "tls.md",
    ),
    Point(
        "secret-in-file",
        "connector.saslPassword",
        "a password may stand in the configuration itself",
        "",
        "the password stands in the configuration itself",
        "write env:NAME or file:PATH",
        "hardening.md",
    ),
    Point(
        "readable-by-others",
        "sslProfile.privateKeyFile",
        "a private file that all users of the machine can read or change is used",
        "",
        "all users of this machine can read {path}",
        "chmod o= {path}",
        "hardening.md",
    ),
    Point(
        "writable-by-others",
        "policy.policyDir",
        "a configuration that all users of the machine can change is used",
        "",
        "all users of this machine can change {path}",
        "chmod o-w {path}",
        "hardening.md",
    ),
    Point(
        "writable-by-group",
        "router.usersFile",
        "a private file that its group can change is used",
        "",
        "all of its group can change {path}",
        "chmod g-w {path}",
        "hardening.md",
    ),
    Point(
        "idle-vhost",
        "vhost",
        "a vhost without enableVhostPolicy applies to no connection",
        "",
        "the rules of this vhost will apply to no connection",
        "write policy { enableVhostPolicy: yes }",
        "policy.md",
    ),
    Point(
        "idle-message-size",
        "policy.maxMessageSize",
        "it limits the messages of connections that have a vhost: none without enableVhostPolicy, and none on "
        "connections of other routers, or on those that the router opened without a policyVhost",
        "",
        "will limit no message",
        "write enableVhostPolicy: yes",
        "policy.md",
    ),
    Point(
        "open-group",
        "vhost.groups",
        "a group that admits users without a name from every host is served",
        "",
        "will let in clients without a name from every host, through {listener}",
        "name the hosts, or write authenticatePeer: yes there",
        "policy.md",
    ),
    Point(
        "traces-kept",
        "listener.stripAnnotations",
        "router annotations may pass",
        "",
        "will show peers the path of messages, and believe what they say about it",
        "write stripAnnotations: both",
    ),
    Point(
        "files-served",
        "listener.httpRootDir",
        "files are served over HTTP",
        "",
        "will serve files over HTTP",
        "leave it out",
    ),
    Point(
        "older-console",
        "listener.httpRootDir",
        "where the folder of Qpid Dispatch's console is not on this machine, the router's own console is served",
        "",
        "this folder of Qpid Dispatch's console is not on this machine: will serve the router's own console",
        "leave it out",
        "console.md",
        Severity.NOTE,
    ),
    Point(
        "no-memory-left",
        "router.maxMemoryBytes",
        "a limit below what the router itself uses is accepted",
        "",
        "no client could connect: the router uses {needed} bytes before the first client connects",
        "{least} or more",
        "limits.md",
        Severity.PROBLEM,
    ),
)

#: All points, by name.
POINTS: Final[dict[str, Point]] = {
    point.name: point for point in (*DEFAULTS, *FORBIDDEN, *MACHINE, *READ_AS, *RIGHTS, *BELIEVED, *REPORTED)
}
#: The end of a message about a setting that the switch forbids.
REFUSED: Final = "with secureDefaults it is refused"


def doubt(findings: Findings, point: str, place: SourcePosition, message: str, **about: Unpack[About]) -> bool:
    """Report a doubtful value at ``place``; return whether it is served, in the way of Qpid Dispatch.

    With secureDefaults it is an error, and so is a PROBLEM in a management request. The default suggestion is the cure
    of the point.
    """
    row = POINTS[point]
    about["suggestion"] = about.get("suggestion") or row.cure
    if findings.single and row.severity is Severity.PROBLEM:
        findings.error(place, message, **about)
        return False
    if findings.secure:
        findings.error(place, f"{message}; {REFUSED}", **about)
        return False
    findings.warning(place, f"{message}: {row.warning}", severity=row.severity, point=point, **about)
    return True
