"""Values for the Helm chart from the manifest of AMQ Interconnect's operator, and what could not be taken over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

API: Final = "interconnectedcloud.github.io/"
KIND: Final = "Interconnect"
#: What a manifest may hold at most: its objects and scalars, and how deep they nest.
MAX_NODES: Final = 50_000
MAX_DEPTH: Final = 24

#: Where the chart mounts the Secrets of profiles that only connectors use.
_PROFILES: Final = "/etc/trouter/profiles"
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f\\\"]")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_ROLES: Final = ("interior", "edge")

_ADDRESS: Final = {
    "prefix": str,
    "pattern": str,
    "distribution": str,
    "waypoint": bool,
    "ingressPhase": int,
    "egressPhase": int,
    "priority": int,
    "enableFallback": bool,
}
_LINK_ROUTE: Final = {
    "prefix": str,
    "pattern": str,
    "direction": str,
    "containerId": str,
    "connection": str,
    "addExternalPrefix": str,
    "removeExternalPrefix": str,
}
_AUTO_LINK: Final = {
    "address": str,
    "direction": str,
    "containerId": str,
    "connection": str,
    "externalPrefix": str,
    "phase": int,
    "fallback": bool,
}
_CONNECTOR: Final = {
    "name": str,
    "host": str,
    "port": int,
    "cost": int,
    "verifyHostname": bool,
    "linkCapacity": int,
}
#: What a listener of the manifest may have.
_LISTENER: Final = {
    "name": str,
    "host": str,
    "port": int,
    "routeContainer": bool,
    "http": bool,
    "cost": int,
    "sslProfile": str,
    "saslMechanisms": str,
    "authenticatePeer": bool,
    "expose": bool,
    "linkCapacity": int,
}
#: The user of edge routers in the values, until the operator names others.
_EDGE_USER: Final = "edge"
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
#: The listeners for routers: by the list of the manifest the role, and the port of both the chart and the operator.
_BETWEEN_ROUTERS: Final = {"interRouterListeners": ("inter-router", 55672), "edgeListeners": ("edge", 45672)}
#: Names that trouter.conf has for attributes of the manifest.
_RENAMED: Final = {"removeExternalPrefix": "delExternalPrefix"}


class NotAManifest(ValueError):
    """The documents have no Interconnect that can be taken over."""


class Left(NamedTuple):
    """Something that was not taken over as it stands."""

    where: str
    why: str
    cure: str


@dataclass(slots=True)
class TakenOver:
    """The values for a release, and what is left to do."""

    name: str
    values: dict[str, Any] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)


class _Profile(NamedTuple):
    where: str
    name: str
    credentials: str
    authority: str


def taken_over(documents: Sequence[object]) -> TakenOver:
    """Return the values for one interior Interconnect, one of role edge, or one of each that belong together."""
    _check_size(documents)
    found = [document for document in _flat(documents) if _is_manifest(document)]
    if not found:
        raise NotAManifest(f"no document of kind {KIND} and apiVersion {API}v1alpha1")
    manifests = [_Manifest(document) for document in found]
    by_role = {role: [each for each in manifests if each.role == role] for role in _ROLES}
    if any(len(several) > 1 for several in by_role.values()):
        names = ", ".join(each.name for each in manifests)
        raise NotAManifest(f"more than one {KIND} of a role ({names}): give each release a file of its own")
    first = manifests[0] if not by_role["interior"] else by_role["interior"][0]
    result = TakenOver(first.name)
    for manifest in manifests:
        _Converter(manifest, result, alone=len(manifests) == 1).convert()
    if len(manifests) == 1 and first.role == "interior":
        result.values["edge"] = {"replicas": 0}
    result.left.append(
        Left(
            "policy",
            "the operator had no policy, and every user could use every address; policy.vhosts says so again",
            "narrow sources and targets to what each group of users needs (docs/policy.md)",
        )
    )
    everything = {"remoteHosts": "*", "sources": "*", "targets": "*", "sourcePattern": None, "targetPattern": None}
    result.values["policy"] = {"vhosts": {"$default": {"groups": {"$default": everything}}}}
    return result


def _flat(documents: Sequence[object]) -> Iterator[object]:
    """Yield the documents, and those of a List as `kubectl get -o` writes it."""
    for document in documents:
        if isinstance(document, Mapping) and isinstance(document.get("items"), list):
            yield from document["items"]
        else:
            yield document


def _is_manifest(document: object) -> bool:
    return (
        isinstance(document, Mapping)
        and document.get("kind") == KIND
        and str(document.get("apiVersion", "")).startswith(API)
    )


def _check_size(documents: Sequence[object]) -> None:
    waiting: list[tuple[object, int]] = [(documents, 0)]
    count = 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if count > MAX_NODES or depth > MAX_DEPTH:
            raise NotAManifest(f"larger or deeper than a manifest: at most {MAX_NODES} values, {MAX_DEPTH} levels")
        if isinstance(node, Mapping):
            waiting += [(each, depth + 1) for pair in node.items() for each in pair]
        elif isinstance(node, Sequence) and not isinstance(node, str):
            waiting += [(each, depth + 1) for each in node]


class _Manifest:
    """One Interconnect, read with care: what is of another type than it should be counts as absent, and is told."""

    def __init__(self, document: object) -> None:
        self.faults: list[Left] = []
        top = self.mapping(document, "the document")
        self.name = self.text(self.mapping(top.get("metadata"), "metadata"), "name", "metadata") or "interconnect"
        if not _NAME.fullmatch(self.name):
            raise NotAManifest(f"metadata.name {self.name!r} is no name of an object in Kubernetes")
        self.spec = self.mapping(top.get("spec"), "spec")
        self.plan = self.mapping(self.spec.get("deploymentPlan"), "spec.deploymentPlan")
        self.role = self.text(self.plan, "role", "spec.deploymentPlan") or "interior"
        if self.role not in _ROLES:
            raise NotAManifest(f"spec.deploymentPlan.role {self.role!r} is neither interior nor edge")

    def mapping(self, value: object, where: str) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            return {str(key): each for key, each in value.items()}
        if value is not None:
            self.faults.append(Left(where, "it is no map of names and values", "correct the manifest"))
        return {}

    def rows(self, key: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the maps of a list of the spec, each with its place."""
        value = self.spec.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.faults.append(Left(f"spec.{key}", "it is no list", "correct the manifest"))
            return []
        return [
            (f"spec.{key}[{number}]", self.mapping(row, f"spec.{key}[{number}]")) for number, row in enumerate(value)
        ]

    def text(self, row: Mapping[str, Any], key: str, where: str) -> str:
        return str(self.value(row, key, str, where) or "")

    def value(self, row: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
        """Return a value of this type that trouter.conf can hold, else None."""
        value = row.get(key)
        if value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.faults.append(Left(f"{where}.{key}", f"{value!r:.60} is no {_KINDS[kind]}", "correct the manifest"))
            return None
        if isinstance(value, str) and _UNSAFE.search(value):
            self.faults.append(Left(f"{where}.{key}", f"{value!r:.60} has a character that no name has", "correct it"))
            return None
        return value


_KINDS: Final[dict[type, str]] = {str: "text", int: "whole number", bool: "true or false"}


class _Converter:
    """Turns one manifest into values."""

    def __init__(self, manifest: _Manifest, result: TakenOver, *, alone: bool) -> None:
        self._manifest = manifest
        self._result = result
        self._alone = alone
        self._part: dict[str, Any] = result.values.setdefault(manifest.role, {})
        self._sections: list[str] = []
        self._profiles: dict[str, _Profile] = {}
        self._mounted: set[str] = set()

    def convert(self) -> None:
        self._read_profiles()
        self._convert_plan()
        self._convert_users()
        self._convert_listeners()
        self._convert_router_listeners()
        self._convert_connectors()
        self._convert_addresses()
        self._report_unknown()
        if self._sections:
            self._part["extraConfiguration"] = "\n".join(self._sections) + "\n"
        self._result.left += self._manifest.faults

    def _leave(self, where: str, why: str, cure: str) -> None:
        prefix = "" if self._alone else f"{self._manifest.name}: "
        self._result.left.append(Left(f"{prefix}{where}", why, cure))

    def _set_secret(self, section: str, key: str, value: str) -> None:
        self._result.values.setdefault(section, {}).setdefault(key, value)

    # --- the deployment

    def _convert_plan(self) -> None:
        manifest, plan, where = self._manifest, self._manifest.plan, "spec.deploymentPlan"
        size = manifest.value(plan, "size", int, where)
        self._part["replicas"] = size if size is not None and 0 < size <= 100 else 1
        if resources := manifest.mapping(plan.get("resources"), f"{where}.resources"):
            self._part["resources"] = dict(resources)
        placement = manifest.text(plan, "placement", where) or "Any"
        if placement == "AntiAffinity":
            spread = {"keys": ["kubernetes.io/hostname"], "whenUnsatisfiable": "DoNotSchedule"}
            self._result.values["topologySpread"] = spread
        elif placement != "Any":
            self._leave(
                f"{where}.placement",
                f"{placement} is a pod on each node, which the chart has not",
                f"set {manifest.role}.replicas to the number of nodes, topologySpread to DoNotSchedule",
            )
        if manifest.text(plan, "image", where):
            self._leave(f"{where}.image", "it is the image of another router", "set image.repository to trouter's")
        if plan.get("livenessPort") is not None:
            self._leave(
                f"{where}.livenessPort", "the chart's probes ask port 8080", "nothing, unless others ask it, too"
            )
        kind = manifest.text(plan, "serviceType", where)
        if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
            self._result.values.setdefault("clients", {})["service"] = {"type": kind}
        elif kind:
            self._leave(f"{where}.serviceType", f"the chart has no {kind}", "choose one for clients.service.type")
        issuer = manifest.text(plan, "issuer", where) or manifest.text(manifest.spec, "issuer", "spec")
        if issuer:
            self._result.values["certManager"] = {"enabled": True, "issuerRef": {"name": issuer}}

    def _convert_users(self) -> None:
        manifest = self._manifest
        old = manifest.text(manifest.spec, "users", "spec") or f"{manifest.name}-users"
        new = f"{self._result.name}-trouter-users"
        self._set_secret("clients", "usersSecret", new)
        if manifest.role == "edge" and not self._alone:
            return
        self._leave(
            "spec.users",
            f"the Secret {old} has a password in clear for each user; trouter keeps salted hashes",
            f"`trouter passwd add users NAME` for each user, then "
            f"`kubectl create secret generic {new} --from-file=users`",
        )

    # --- TLS

    def _read_profiles(self) -> None:
        manifest = self._manifest
        for where, row in manifest.rows("sslProfiles"):
            name = manifest.text(row, "name", where)
            credentials, authority = (manifest.text(row, key, where) for key in ("credentials", "caCert"))
            if not name:
                self._leave(where, "it has no name", "name it, and convert again")
                continue
            self._profiles[name] = _Profile(where, name, credentials, authority)
            for key, (why, cure) in _LEFT_OF_PROFILES.items():
                if row.get(key) not in (None, False, ""):
                    self._leave(f"{where}.{key}", why, cure)
            for key in sorted(row.keys() - _PROFILE - _LEFT_OF_PROFILES.keys()):
                self._leave(f"{where}.{key}", "no such attribute is known", "look it up in docs/configuration.md")

    def _profile(self, row: Mapping[str, Any], where: str) -> _Profile | None:
        name = self._manifest.text(row, "sslProfile", where)
        if not name:
            return None
        if name not in self._profiles:
            self._leave(f"{where}.sslProfile", f"no profile has the name {name!r:.60}", "name one of sslProfiles")
            return _Profile(where, name, "", "")
        return self._profiles[name]

    def _use_profile(self, profile: _Profile) -> str:
        """Write a profile for connectors, with its Secrets as volumes; return its name."""
        name = f"profile-{re.sub('[^a-z0-9]+', '-', profile.name.lower()).strip('-') or 'x'}"
        if name in self._mounted:
            return name
        self._mounted.add(name)
        attributes: dict[str, object] = {"name": name}
        if profile.credentials:
            attributes["certFile"] = self._mount(f"{name}-own", profile.credentials, "tls.crt")
            attributes["privateKeyFile"] = f"{_PROFILES}/{name}-own/tls.key"
        if profile.authority:
            attributes["caCertFile"] = self._mount(f"{name}-ca", profile.authority, "ca.crt")
        elif not profile.credentials:
            self._leave(profile.where, f"the profile {profile.name} names no Secret", "add caCertFile to its section")
        self._sections.append(_section("sslProfile", attributes))
        return name

    def _mount(self, volume: str, secret: str, file: str) -> str:
        source = {"name": volume, "secret": {"secretName": secret, "defaultMode": 0o440}}
        self._part.setdefault("extraVolumes", []).append(source)
        mount = {"name": volume, "mountPath": f"{_PROFILES}/{volume}", "readOnly": True}
        self._part.setdefault("extraVolumeMounts", []).append(mount)
        return f"{_PROFILES}/{volume}/{file}"

    # --- listeners

    def _convert_listeners(self) -> None:
        manifest = self._manifest
        for where, row in manifest.rows("listeners"):
            self._name_unknown(row, where)
            port = manifest.value(row, "port", int, where)
            profile = self._profile(row, where)
            if self._is_loopback(where, row):
                continue
            if row.get("http") is True:
                if port != 8080:
                    self._result.values["console"] = {"enabled": True}
                    self._leave(
                        where,
                        f"port {port} was HTTP in clear; the chart has the console over TLS, health at 8080",
                        "point probes and Prometheus to 8080, browsers to port 443 of the service with -console",
                    )
            elif profile is None:
                self._leave(
                    where,
                    f"port {port} has no TLS: passwords and messages in clear",
                    "let clients connect to amqps://...:5671, or write a listener of your own into extraConfiguration",
                )
            elif row.get("routeContainer") is True:
                self._further_listener(where, row, "route-container", profile)
            else:
                self._convert_client_listener(where, row, port, profile)
        self._need_certificate()

    def _is_loopback(self, where: str, row: Mapping[str, Any]) -> bool:
        """Return whether a listener was for its own pod alone, which has one of the chart."""
        if self._manifest.text(row, "host", where) not in _LOOPBACK:
            return False
        self._leave(
            where,
            "it was open to its own pod alone; the chart has a listener for that at 127.0.0.1:5672",
            "nothing, if it served commands in the pod",
        )
        return True

    def _convert_client_listener(self, where: str, row: Mapping[str, Any], port: int | None, profile: _Profile) -> None:
        clients = self._result.values.setdefault("clients", {})
        if "saslMechanisms" in clients or (profile.credentials and clients.get("tlsSecret")):
            self._further_listener(where, row, "normal", profile)
            return
        if profile.credentials:
            clients["tlsSecret"] = profile.credentials
        if port != 5671:
            self._leave(
                f"{where}.port",
                f"clients connected to port {port}; the chart's service has 5671",
                "change the clients' port",
            )
        kept = self._mechanisms(where, row, between_routers=False)
        if kept:
            clients["saslMechanisms"] = kept
        capacity = self._manifest.value(row, "linkCapacity", int, where)
        if capacity is not None:
            clients["attributes"] = {"linkCapacity": capacity}
        self._drop_cost(where, row)
        if row.get("expose") is True:
            clients["route"] = {"enabled": True}
            self._say_exposed(where)

    def _mechanisms(self, where: str, row: Mapping[str, Any], *, between_routers: bool) -> str:
        """Return the mechanisms of a listener that the chart can have, separated by spaces."""
        words = self._manifest.text(row, "saslMechanisms", where).replace(",", " ").split()
        refused = {"ANONYMOUS"} if between_routers else {"ANONYMOUS", "EXTERNAL"}
        peers = "other routers" if between_routers else "the chart's clients"
        for word in sorted(refused.intersection(words)):
            self._leave(
                f"{where}.saslMechanisms",
                f"{word} is not taken over: {peers} log in",
                "give them passwords, or write a listener of your own into extraConfiguration",
            )
        if row.get("authenticatePeer") is False:
            self._leave(
                f"{where}.authenticatePeer",
                "peers without a login were let in; the chart asks for one",
                "give the peers passwords",
            )
        return " ".join(word for word in words if word not in refused)

    def _drop_cost(self, where: str, row: Mapping[str, Any]) -> None:
        if row.get("cost") is not None:
            self._leave(f"{where}.cost", "only links between routers have a cost", "nothing")

    def _further_listener(self, where: str, row: Mapping[str, Any], role: str, profile: _Profile | None) -> None:
        """Add a listener with a port, certificates, logins and a Service of its own."""
        manifest = self._manifest
        port = manifest.value(row, "port", int, where)
        if port is None:
            self._leave(where, "it has no port", "add a row to listeners by hand")
            return
        between = role in ("edge", "inter-router")
        rows: list[dict[str, Any]] = self._result.values.setdefault("listeners", [])
        given = re.sub("[^a-z0-9]+", "-", manifest.text(row, "name", where).lower()).strip("-")
        name = given if re.fullmatch("[a-z][-a-z0-9]{0,14}", given) else f"{role}-{port}"[-15:].strip("-")
        if name in _TAKEN_NAMES or any(each["name"] == name for each in rows):
            name = f"port-{port}"
        listener: dict[str, Any] = {"name": name, "part": manifest.role, "role": role, "port": port}
        if profile is None:
            self._leave(
                f"{where}.sslProfile",
                f"port {port} had no TLS; here it has the certificates of the network between routers",
                "give the routers that connect to it certificates of the same authority, or tlsSecret another one",
            )
        else:
            if profile.credentials:
                listener["tlsSecret"] = profile.credentials
            if profile.authority:
                listener["authoritySecret"] = profile.authority
        attributes: dict[str, Any] = {}
        if mechanisms := self._mechanisms(where, row, between_routers=between):
            attributes["saslMechanisms"] = mechanisms
        for key in ("cost", "linkCapacity"):
            value = manifest.value(row, key, int, where)
            if value is not None and (between or key != "cost"):
                attributes[key] = value
        if not between:
            self._drop_cost(where, row)
        if attributes:
            listener["attributes"] = attributes
        if role == "edge" and mechanisms not in ("", "EXTERNAL"):
            listener["users"] = [_EDGE_USER]
            self._leave(
                f"{where}.saslMechanisms",
                f"edge routers log in with passwords; here only the user {_EDGE_USER} may",
                "name the users of the edge routers: others have the rights of clients",
            )
        if row.get("expose") is True:
            listener["route"] = {"enabled": True}
            self._say_exposed(where)
        rows.append(listener)

    def _need_certificate(self) -> None:
        values = self._result.values
        if values.get("clients", {}).get("tlsSecret") or values.get("certManager"):
            return
        secret = f"{self._result.name}-trouter-clients"
        self._set_secret("clients", "tlsSecret", secret)
        self._leave(
            "spec.sslProfiles",
            "no listener for clients had a certificate",
            f"make the Secret {secret} with tls.crt and tls.key (docs/kubernetes.md)",
        )

    def _say_exposed(self, where: str) -> None:
        self._leave(
            f"{where}.expose",
            "it is a Route with TLS passthrough, which needs OpenShift (docs/openshift.md)",
            "elsewhere set the route to enabled: false, and the type of the service to LoadBalancer",
        )

    def _convert_router_listeners(self) -> None:
        manifest = self._manifest
        network = self._result.values.setdefault("network", {})
        for key, (role, chart_port) in _BETWEEN_ROUTERS.items():
            for where, row in manifest.rows(key):
                self._name_unknown(row, where)
                profile = self._profile(row, where)
                if self._is_loopback(where, row):
                    continue
                if profile is not None and profile.credentials and profile.credentials == profile.authority:
                    network.setdefault("tlsSecret", profile.credentials)
                if self._is_charts_own(where, row, chart_port, profile, network):
                    continue
                if manifest.role == "edge":
                    self._leave(where, "an edge router takes no connections of routers", "let them dial interior ones")
                    continue
                self._further_listener(where, row, role, profile)
        if not network.get("tlsSecret") and not self._result.values.get("certManager"):
            secret = f"{self._result.name}-trouter-network"
            network["tlsSecret"] = secret
            self._leave(
                "spec.interRouterListeners",
                "no Secret has ca.crt, tls.crt and tls.key for the names of the chart's routers",
                f"make the Secret {secret} (docs/kubernetes.md)",
            )
        elif network.get("tlsSecret"):
            self._leave(
                "spec.interRouterListeners",
                f"the certificate in {network['tlsSecret']} was issued for other names",
                "issue it again for those that docs/kubernetes.md lists",
            )

    def _is_charts_own(
        self, where: str, row: Mapping[str, Any], port: int, profile: _Profile | None, network: Mapping[str, Any]
    ) -> bool:
        """Return whether the chart's own listener for routers does all that this one did."""
        manifest = self._manifest
        plain = manifest.text(row, "saslMechanisms", where) in ("", "EXTERNAL")
        same = profile is None or profile.credentials in ("", network.get("tlsSecret"))
        others = any(row.get(key) not in (None, False) for key in ("expose", "linkCapacity", "cost"))
        return (
            manifest.value(row, "port", int, where) in (None, port)
            and plain
            and same
            and not others
            and row.get("authenticatePeer") is not False
        )

    def _name_unknown(self, row: Mapping[str, Any], where: str) -> None:
        for key in sorted(row.keys() - _LISTENER.keys()):
            self._leave(f"{where}.{key}", "no such attribute is known", "look it up in docs/configuration.md")

    # --- connectors, and what uses them

    def _convert_connectors(self) -> None:
        manifest = self._manifest
        for where, row in manifest.rows("connectors"):
            role = "route-container" if row.get("routeContainer") is True else "normal"
            self._connector(where, row, role, self._profile(row, where))
        for where, row in manifest.rows("interRouterConnectors"):
            profile = self._profile(row, where)
            if profile is None:
                self._leave(
                    where,
                    "it has no profile, so it shows this network's certificate, which the other network has to trust",
                    "have one authority sign both, or give this connector a profile",
                )
            self._connector(where, row, "inter-router", profile)
        rows = manifest.rows("edgeConnectors")
        if self._alone and manifest.role == "edge":
            self._result.values["interior"] = {"replicas": 0}
            self._part["uplinks"] = [uplink for where, row in rows if (uplink := self._uplink(where, row))]
            if not self._part["uplinks"]:
                self._leave("spec.edgeConnectors", "it is empty", "name interior routers in edge.uplinks")
            return
        for where, _row in rows:
            self._leave(
                where,
                "the chart's edge routers dial the interior ones of the same release",
                "nothing, if these were meant",
            )

    def _uplink(self, where: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a connector of an edge router as the chart has it; empty without host and port."""
        attributes = self._attributes(row, _CONNECTOR, where, {"routeContainer", "sslProfile"})
        host, port = attributes.pop("host", ""), attributes.pop("port", 0)
        attributes.pop("name", None)
        self._drop_cost(where, {"cost": attributes.pop("cost", None)})
        if not (host and port):
            self._leave(where, "a connector without host or port", "add it to edge.uplinks by hand")
            return {}
        profile = self._profile(row, where)
        if profile is not None:
            attributes["sslProfile"] = self._use_profile(profile)
        else:
            self._leave(
                f"{where}.sslProfile",
                "it had no TLS; here it shows the network's certificate, which the hub has to trust",
                "give the hub a listener with TLS, or write attributes of your own into edge.uplinks",
            )
        return {"host": host, "port": port, **({"attributes": attributes} if attributes else {})}

    def _connector(self, where: str, row: Mapping[str, Any], role: str, profile: _Profile | None) -> None:
        attributes = self._attributes(row, _CONNECTOR, where, {"routeContainer", "sslProfile"})
        attributes["role"] = role
        if profile is not None:
            attributes["sslProfile"] = self._use_profile(profile)
        elif role == "inter-router":
            attributes["sslProfile"] = "network"
        if role == "inter-router":
            attributes["saslMechanisms"] = "EXTERNAL"
        else:
            self._drop_cost(where, row)
            attributes.pop("cost", None)
        if "host" not in attributes or "port" not in attributes:
            self._leave(where, "a connector without host or port", "write it into extraConfiguration by hand")
            return
        self._sections.append(_section("connector", attributes))

    def _convert_addresses(self) -> None:
        for key, section, kinds in (
            ("addresses", "address", _ADDRESS),
            ("linkRoutes", "linkRoute", _LINK_ROUTE),
            ("autoLinks", "autoLink", _AUTO_LINK),
        ):
            for where, row in self._manifest.rows(key):
                attributes = self._attributes(row, kinds, where)
                prefix = attributes.pop("externalPrefix", None)
                if prefix is not None and attributes.get("address"):
                    attributes["externalAddress"] = f"{prefix}{attributes['address']}"
                    self._leave(
                        f"{where}.externalPrefix",
                        "trouter names the whole address",
                        f"see that externalAddress: {attributes['externalAddress']} is right",
                    )
                self._sections.append(_section(section, attributes))

    def _attributes(
        self, row: Mapping[str, Any], kinds: Mapping[str, type], where: str, elsewhere: set[str] | None = None
    ) -> dict[str, object]:
        """Return the attributes of a section, in the order of ``kinds``; tell those that are none."""
        for key in sorted(row.keys() - kinds.keys() - (elsewhere or set())):
            self._leave(f"{where}.{key}", "no such attribute is known", "look it up in docs/configuration.md")
        found = {key: self._manifest.value(row, key, kind, where) for key, kind in kinds.items()}
        return {_RENAMED.get(key, key): value for key, value in found.items() if value not in (None, "")}

    def _report_unknown(self) -> None:
        for key in sorted(self._manifest.spec.keys() - _SPEC):
            self._leave(f"spec.{key}", "it is not known", "see whether docs/kubernetes.md has a value for it")
        for key in sorted(self._manifest.plan.keys() - _PLAN):
            self._leave(
                f"spec.deploymentPlan.{key}", "it is not known", "see whether docs/kubernetes.md has a value for it"
            )


_TLS_OF_CHART: Final = (
    "the chart's profiles have TLS 1.2 and 1.3 with the system's ciphers",
    "nothing, unless a client needs less",
)
_MADE_BY_OPERATOR: Final = (
    "the operator had cert-manager make the Secret",
    "keep the Secret, make one of your own, or set certManager.enabled",
)
_PROFILE: Final = {"name", "credentials", "caCert"}
_LEFT_OF_PROFILES: Final = {
    "ciphers": _TLS_OF_CHART,
    "protocols": _TLS_OF_CHART,
    "generateCredentials": _MADE_BY_OPERATOR,
    "generateCaCert": _MADE_BY_OPERATOR,
    "mutualAuth": (
        "clients had to show certificates; the chart's clients log in with passwords",
        "for certificates add a row to listeners, with authoritySecret and saslMechanisms: EXTERNAL",
    ),
}
#: Names of ports that the chart has.
_TAKEN_NAMES: Final = {"amqps", "http", "console", "inter-router", "edge", "interior"}
_SPEC: Final = {
    "deploymentPlan",
    "users",
    "listeners",
    "interRouterListeners",
    "edgeListeners",
    "sslProfiles",
    "addresses",
    "autoLinks",
    "linkRoutes",
    "connectors",
    "interRouterConnectors",
    "edgeConnectors",
    "issuer",
}
_PLAN: Final = {"image", "size", "role", "placement", "resources", "issuer", "livenessPort", "serviceType"}


def _section(name: str, attributes: Mapping[str, object]) -> str:
    """Return a section of trouter.conf."""
    lines = [f"    {key}: {_written(value)}" for key, value in attributes.items()]
    return "\n".join([f"{name} {{", *lines, "}"])


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    return text if re.fullmatch(r"[A-Za-z0-9_./*-]+", text) else json.dumps(text, ensure_ascii=False)


# --- the values as YAML


def written_values(result: TakenOver, source: str) -> str:
    """Return the values as a file for `helm install -f`, with what is left to do in its head."""
    lines = [f"# Values for a release of trouter, from {_commented(source)}."]
    if result.left:
        lines.append("# Not taken over as it stands:")
        lines += [f"#  - {_commented(': '.join(left[:2]))}; {_commented(left.cure)}" for left in result.left]
    lines += _yaml(result.values, 0)
    return "\n".join([*lines, ""])


def _commented(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _yaml(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield the lines of a map: maps and texts of several lines as blocks, the rest as JSON, which YAML includes."""
    indent = "  " * depth
    for key, each in value.items():
        name = key if re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", str(key)) else json.dumps(str(key))
        if isinstance(each, Mapping) and each:
            yield f"{indent}{name}:"
            yield from _yaml(each, depth + 1)
        elif isinstance(each, str) and "\n" in each:
            yield f"{indent}{name}: |"
            yield from (f"{indent}  {line}".rstrip() for line in each.rstrip("\n").split("\n"))
        else:
            yield f"{indent}{name}: {json.dumps(each, ensure_ascii=False, default=str)}"
