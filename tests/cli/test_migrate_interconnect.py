"""`trouter migrate --interconnect`: the values that it writes, what is left to do, and files that are no manifests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.routers import ROOT
from trouter.cli import main
from trouter.config.migrate.interconnect import taken_over

MANIFESTS = ROOT / "examples" / "migration" / "interconnect"
HEAD = "apiVersion: interconnectedcloud.github.io/v1alpha1\nkind: Interconnect\n"


def convert(path: Path, tmp_path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values, and what is left to do by its place."""
    output = tmp_path / "values.yaml"
    report = tmp_path / "report"
    with report.open("w") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", file)
        assert main(["migrate", "--interconnect", str(path), "-o", str(output), "--json"]) == 0
    left = json.loads(report.read_text(encoding="utf-8"))["left"]
    text = output.read_text(encoding="utf-8")
    for each in left:
        assert each["cure"]
        assert f"#  - {each['where']}: " in text
    return yaml.safe_load(text), {each["where"]: each["why"] for each in left}


def written(text: str, tmp_path: Path) -> Path:
    path = tmp_path / "manifest.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return path


def test_an_interior_network_and_its_edge_become_one_release(tmp_path: Path) -> None:
    values, left = convert(MANIFESTS / "mesh-with-edge.yaml", tmp_path)
    assert values["interior"]["replicas"] == 2
    assert values["edge"]["replicas"] == 2
    assert values["interior"]["resources"] == {"requests": {"cpu": "100m", "memory": "128Mi"}}
    assert values["topologySpread"]["whenUnsatisfiable"] == "DoNotSchedule"
    assert values["network"] == {"tlsSecret": "mesh-network"}
    assert values["clients"] == {
        "usersSecret": "mesh-trouter-users",
        "tlsSecret": "mesh-clients",
        "saslMechanisms": "PLAIN",
        "route": {"enabled": True},
    }
    assert values["console"] == {"enabled": True}
    sections = values["interior"]["extraConfiguration"]
    assert (
        "connector {\n    name: broker\n    host: broker.example\n    port: 5671\n    verifyHostname: no\n" in sections
    )
    assert "    role: route-container\n    sslProfile: profile-broker\n" in sections
    assert "    caCertFile: /etc/trouter/profiles/profile-broker-ca/ca.crt\n" in sections
    assert "    externalAddress: queue.orders\n" in sections
    assert "    delExternalPrefix: audit.\n" in sections
    assert '    pattern: "news/#"\n' in values["edge"]["extraConfiguration"]
    assert set(left) >= {
        "mesh: spec.users",
        "mesh: spec.deploymentPlan.image",
        "mesh: spec.listeners[0]",
        "mesh: spec.listeners[1].saslMechanisms",
        "mesh: spec.listeners[1].expose",
        "mesh: spec.listeners[2]",
        "mesh: spec.autoLinks[1].externalPrefix",
        "shops: spec.edgeConnectors[0]",
        "policy",
    }


def test_edge_routers_alone_dial_where_they_dialled(tmp_path: Path) -> None:
    values, left = convert(MANIFESTS / "edge-alone.json", tmp_path)
    assert values["interior"] == {"replicas": 0}
    assert values["edge"]["uplinks"] == [
        {"host": "hub.example", "port": 45671, "attributes": {"sslProfile": "profile-hub"}}
    ]
    assert values["clients"]["service"] == {"type": "NodePort"}
    assert {"spec.deploymentPlan.placement", "spec.deploymentPlan.livenessPort"} <= set(left)


EDGE_LISTENERS = """
metadata: {name: hub}
spec:
  deploymentPlan: {size: 1, role: interior}
  edgeListeners:
  - {port: 5671, expose: true, saslMechanisms: PLAIN, authenticatePeer: true, sslProfile: outside}
  - {port: 5673, linkCapacity: 25000}
  sslProfiles:
  - {name: outside, credentials: outside-cert, caCert: outside-ca}
"""
MESH = """
metadata: {name: mesh}
spec:
  deploymentPlan: {size: 2, role: interior}
  sslProfiles:
  - {name: partners, credentials: partner-tls, caCert: partner-tls}
  interRouterConnectors:
  - {host: hub.example.com, port: 443, verifyHostname: false, sslProfile: partners}
"""
RIM = """
metadata: {name: rim}
spec:
  deploymentPlan: {size: 1, role: edge}
  edgeConnectors:
  - {name: up, host: hub.example.com, port: 5673, verifyHostname: false, saslUsername: guest, saslPassword: pw, cost: 7}
"""


def test_listeners_for_edge_routers_keep_their_ports_logins_and_certificates(tmp_path: Path) -> None:
    values, left = convert(written(EDGE_LISTENERS, tmp_path), tmp_path)
    assert values["listeners"] == [
        {
            "name": "edge-5671",
            "part": "interior",
            "role": "edge",
            "port": 5671,
            "tlsSecret": "outside-cert",
            "authoritySecret": "outside-ca",
            "attributes": {"saslMechanisms": "PLAIN"},
            "users": ["edge"],
            "route": {"enabled": True},
        },
        {"name": "edge-5673", "part": "interior", "role": "edge", "port": 5673, "attributes": {"linkCapacity": 25000}},
    ]
    assert {"spec.edgeListeners[0].expose", "spec.edgeListeners[0].saslMechanisms"} <= set(left)
    assert "no TLS" in left["spec.edgeListeners[1].sslProfile"]


def test_a_connector_to_another_network_keeps_its_profile(tmp_path: Path) -> None:
    values, left = convert(written(MESH, tmp_path), tmp_path)
    interior = values["interior"]
    assert "    sslProfile: profile-partners\n    saslMechanisms: EXTERNAL\n" in interior["extraConfiguration"]
    assert {each["secret"]["secretName"] for each in interior["extraVolumes"]} == {"partner-tls"}
    assert "spec.interRouterConnectors[0]" not in left


def test_what_an_uplink_has_is_kept_or_named(tmp_path: Path) -> None:
    values, left = convert(written(RIM, tmp_path), tmp_path)
    assert values["edge"]["uplinks"] == [
        {"host": "hub.example.com", "port": 5673, "attributes": {"verifyHostname": False}}
    ]
    where = "spec.edgeConnectors[0]"
    assert {f"{where}.{key}" for key in ("saslUsername", "saslPassword", "cost", "sslProfile")} <= set(left)


#: Every attribute of an Interconnect, with a value that is not its default; `{}` stands for a list of one map.
PLAN: dict[str, Any] = {
    "image": "quay.example/router",
    "size": 3,
    "role": "interior",
    "placement": "AntiAffinity",
    "resources": {"limits": {"memory": "1Gi"}},
    "issuer": "office",
    "livenessPort": 8888,
    "serviceType": "NodePort",
}
LISTENER = {
    "name": "one",
    "host": "127.0.0.1",
    "port": 4711,
    "routeContainer": True,
    "http": True,
    "cost": 5,
    "sslProfile": "own",
    "saslMechanisms": "PLAIN",
    "authenticatePeer": False,
    "expose": True,
    "linkCapacity": 77,
}
CONNECTOR = {
    "name": "one",
    "host": "other.example",
    "port": 4711,
    "routeContainer": True,
    "cost": 5,
    "verifyHostname": False,
    "sslProfile": "own",
    "linkCapacity": 77,
}
PROFILE = {
    "name": "more",
    "credentials": "more-tls",
    "caCert": "more-ca",
    "generateCredentials": True,
    "generateCaCert": True,
    "mutualAuth": True,
    "ciphers": "HIGH",
    "protocols": "TLSv1.3",
}
ADDRESS = {
    "prefix": "a",
    "pattern": "a/#",
    "distribution": "multicast",
    "waypoint": True,
    "ingressPhase": 1,
    "egressPhase": 1,
    "priority": 7,
    "enableFallback": True,
}
LINK_ROUTE = {
    "prefix": "a",
    "pattern": "a/#",
    "direction": "in",
    "containerId": "broker",
    "connection": "broker",
    "addExternalPrefix": "b.",
    "removeExternalPrefix": "c.",
}
AUTO_LINK = {
    "address": "a",
    "direction": "in",
    "containerId": "broker",
    "connection": "broker",
    "externalPrefix": "b.",
    "phase": 1,
    "fallback": True,
}
#: Names alone have no meaning for the values; a role of connectors between routers is that of their list.
WITHOUT_MEANING = {
    ("edgeConnectors", "name"),
    ("interRouterConnectors", "routeContainer"),
    ("edgeConnectors", "routeContainer"),
    ("listeners", "name"),
    ("interRouterListeners", "routeContainer"),
    ("interRouterListeners", "http"),
    ("edgeListeners", "routeContainer"),
    ("edgeListeners", "http"),
    ("interRouterListeners", "name"),
    ("edgeListeners", "name"),
}
LISTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "listeners": (LISTENER, {"port": 5671, "sslProfile": "base"}),
    "interRouterListeners": (LISTENER, {"port": 55672}),
    "edgeListeners": (LISTENER, {"port": 45672}),
    "sslProfiles": (PROFILE, {"name": "spare"}),
    "addresses": (ADDRESS, {}),
    "linkRoutes": (LINK_ROUTE, {}),
    "autoLinks": (AUTO_LINK, {"address": "b"}),
    "connectors": (CONNECTOR, {"host": "h", "port": 1}),
    "interRouterConnectors": (CONNECTOR, {"host": "h", "port": 1}),
    "edgeConnectors": (CONNECTOR, {"host": "h", "port": 1}),
}
ATTRIBUTES: list[tuple[str, str]] = [(key, name) for key, (attributes, _) in LISTS.items() for name in attributes]


def manifest(key: str, row: dict[str, Any]) -> dict[str, Any]:
    profiles = [{"name": name, "credentials": f"{name}-tls"} for name in ("base", "own")]
    role = "edge" if key == "edgeConnectors" else "interior"
    spec: dict[str, Any] = {"deploymentPlan": {"size": 1, "role": role}, "sslProfiles": profiles}
    if key == "sslProfiles":
        spec["listeners"] = [{"port": 5671, "sslProfile": "spare"}]
        spec["edgeListeners"] = [{"port": 5672, "sslProfile": "spare"}]
        spec[key] = [*profiles, row]
    else:
        spec[key] = [row]
    return {"apiVersion": HEAD.split()[1], "kind": "Interconnect", "metadata": {"name": "net"}, "spec": spec}


@pytest.mark.parametrize(("key", "name"), ATTRIBUTES, ids=lambda each: each)
def test_each_attribute_of_the_operators_schema_is_taken_over_or_named(key: str, name: str) -> None:
    attributes, base = LISTS[key]
    before, after = taken_over([manifest(key, base)]), taken_over([manifest(key, {**base, name: attributes[name]})])
    changed = after.values != before.values or set(after.left) - set(before.left)
    assert bool(changed) != ((key, name) in WITHOUT_MEANING)


@pytest.mark.parametrize("name", PLAN)
def test_each_attribute_of_the_deployment_is_taken_over_or_named(name: str) -> None:
    plain = manifest("addresses", {})
    other = manifest("addresses", {})
    other["spec"]["deploymentPlan"][name] = "edge" if name == "role" else PLAN[name]
    before, after = taken_over([plain]), taken_over([other])
    assert (before.values, before.left) != (after.values, after.left)


def test_the_smallest_manifest_has_clients_at_the_interior_routers(tmp_path: Path) -> None:
    values, _left = convert(MANIFESTS / "smallest.yaml", tmp_path)
    assert values["interior"]["replicas"] == 2
    assert values["edge"] == {"replicas": 0}
    assert values["certManager"] == {"enabled": True, "issuerRef": {"name": "office"}}
    assert "network" not in values or "tlsSecret" not in values["network"]


def test_what_is_unknown_or_of_another_type_is_named(tmp_path: Path) -> None:
    text = (
        "metadata: {name: net}\nspec:\n  deploymentPlan: {size: many, colour: red}\n"
        "  vhosts: [x]\n  addresses: {a: b}\n"
        "  connectors: [{host: 'a\"b', port: 1}, {host: h, port: true}, 7]\n  linkRoutes: [{prefix: p, weight: 3}]\n"
    )
    values, left = convert(written(text, tmp_path), tmp_path)
    assert "connector" not in values["interior"].get("extraConfiguration", "")
    assert set(left) >= {
        "spec.deploymentPlan.size",
        "spec.deploymentPlan.colour",
        "spec.vhosts",
        "spec.addresses",
        "spec.connectors[0].host",
        "spec.connectors[1].port",
        "spec.connectors[2]",
        "spec.linkRoutes[0].weight",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Deployment\n", "no document of kind Interconnect"),
        ("{", "it is neither JSON nor YAML"),
        ("a: [", "it is neither JSON nor YAML"),
        ("a: &a [*a]\n" + HEAD, "larger or deeper than a manifest"),
        (HEAD + "metadata: {name: 'A B'}\n", "no name of an object"),
        (HEAD + "spec: {deploymentPlan: {role: broker}}\n", "neither interior nor edge"),
        (HEAD + "metadata: {name: a}\n---\n" + HEAD + "metadata: {name: b}\n", "more than one Interconnect of a role"),
        ("[" * 100_000, "nests too deep"),
        ("\xff" * ((1 << 20) + 1), "larger than 1 MiB"),
    ],
    ids=["other-kind", "no-json", "no-yaml", "circle", "name", "role", "two", "deep", "large"],
)
def test_a_file_that_is_no_manifest_is_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "manifest.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["migrate", "--interconnect", str(path)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert said in output.err


def test_a_machine_without_yaml_is_told_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert main(["migrate", "--interconnect", str(MANIFESTS / "smallest.yaml"), "--check"]) == 1
    assert "pip install 'trouter[kubernetes]'" in capsys.readouterr().err
    assert main(["migrate", "--interconnect", str(MANIFESTS / "edge-alone.json"), "-o", str(tmp_path / "v.yaml")]) == 0


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["migrate", "--interconnect", str(MANIFESTS / "smallest.yaml"), "-o", str(tmp_path / "v.yaml")]
    assert main(words) == 0
    assert main(words) == 1
    assert "exists already" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0
    assert main(["migrate", "--interconnect", str(MANIFESTS / "smallest.yaml"), "--check"]) == 1


@pytest.mark.parametrize("more", [["old.conf"], ["--secure"], ["--check", "-o", "v"], ["--json"]], ids="_".join)
def test_options_that_do_not_go_together_are_a_wrong_command_line(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["migrate", "--interconnect", str(MANIFESTS / "smallest.yaml"), *more])
    assert ended.value.code == 2
    assert capsys.readouterr().err
