"""The Helm chart: Kubernetes accepts its output, and routers with its configurations find each other."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.certificates import Authority
from tests.packaging.built import run, tool
from tests.ports import ports_for
from tests.routers import ROOT, process
from trouter import __version__

CHART = ROOT / "packaging" / "helm" / "trouter"
SECRETS = ("network.tlsSecret=network", "clients.tlsSecret=clients", "clients.usersSecret=users")
#: The oldest Kubernetes that the chart supports, and a new one.
KUBERNETES = ("1.25", "1.36")
EVERYTHING = (
    "serviceMonitor.enabled=true",
    "operators={ann}",
    "clients.service.type=LoadBalancer",
    "interior.replicas=2",
)
TROUTER = (sys.executable, "-m", "trouter")
#: This kind is defined by the Prometheus operator.
NOT_OF_KUBERNETES = "ServiceMonitor"


def render(*values: str) -> list[dict[str, Any]]:
    settings = [word for value in (*SECRETS, *values) for word in ("--set", value)]
    text = run(tool("helm"), "template", "net", CHART, "--namespace", "ns", *settings)
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return render(*EVERYTHING)


def of_kind(documents: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [document for document in documents if document["kind"] == kind]


def test_the_chart_has_the_version_of_the_router_and_no_fault() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert about["version"] == about["appVersion"] == __version__
    run(tool("helm"), "lint", "--strict", CHART, *(word for value in SECRETS for word in ("--set", value)))


@pytest.mark.parametrize("values", [(), EVERYTHING, ("edge.replicas=0", "networkPolicy.enabled=false")], ids=len)
def test_kubernetes_validates_the_rendered_chart(values: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "rendered.yaml"
    rendered = [document for document in render(*values) if document["kind"] != NOT_OF_KUBERNETES]
    path.write_text(yaml.safe_dump_all(rendered), encoding="utf-8")
    for version in KUBERNETES:
        run(tool("kubernetes-validate"), "--strict", "-k", version, path)


@pytest.mark.parametrize(
    "wrong", ["network.tlsSecret=", "clients.usersSecret=", "interior.replicas=0", "edge.count=2", "operators={a b}"]
)
def test_values_that_make_no_sense_are_refused(wrong: str) -> None:
    with pytest.raises(AssertionError, match="values don't meet the specifications"):
        render(wrong)


def test_a_pod_runs_without_rights_on_a_read_only_disk(documents: list[dict[str, Any]]) -> None:
    workloads = of_kind(documents, "StatefulSet") + of_kind(documents, "Deployment")
    assert len(workloads) == 2
    for workload in workloads:
        pod = workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        drain_s = int(re.search(r"drainTimeoutSeconds: (\d+)", texts(documents)["edge.conf"])[1])  # type: ignore[index]
        assert pod["terminationGracePeriodSeconds"] > drain_s + 5
        for container in pod["containers"] + pod["initContainers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        (router,) = pod["containers"]
        assert all(port["containerPort"] > 1024 for port in router["ports"])
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(router)


def test_every_selector_selects_a_pod(documents: list[dict[str, Any]]) -> None:
    workloads = of_kind(documents, "StatefulSet") + of_kind(documents, "Deployment")
    pods = [workload["spec"]["template"]["metadata"]["labels"] for workload in workloads]
    selectors = [d["spec"]["selector"] for d in of_kind(documents, "Service")]
    selectors += [d["spec"]["selector"]["matchLabels"] for d in of_kind(documents, "PodDisruptionBudget")]
    selectors += [d["spec"]["podSelector"]["matchLabels"] for d in of_kind(documents, "NetworkPolicy")]
    assert len(selectors) == 7
    for selector in selectors:
        assert any(selector.items() <= labels.items() for labels in pods)
    (monitor,) = of_kind(documents, NOT_OF_KUBERNETES)
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert [d for d in of_kind(documents, "Service") if wanted.items() <= d["metadata"]["labels"].items()]


def texts(documents: list[dict[str, Any]]) -> dict[str, str]:
    """Return the configuration files."""
    (mounted,) = of_kind(documents, "ConfigMap")
    data: dict[str, str] = mounted["data"]
    return data


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the files that the pods mount: secrets behind two symbolic links, and the copied file of users."""
    made, root = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("mounts")
    authority = Authority(made, "authority")
    certificate, key = authority.pair("127.0.0.1")
    for secret in ("network", "clients"):
        folder = root / secret / "..2026"
        folder.mkdir(parents=True)
        (root / secret / "..data").symlink_to("..2026")
        for name, source in {"tls.crt": certificate, "tls.key": key, "ca.crt": authority.certificate}.items():
            shutil.copyfile(source, folder / name)
            (folder / name).chmod(0o440)
            (root / secret / name).symlink_to(f"..data/{name}")
    (root / "password").write_text("a password that is long enough\n", encoding="utf-8")
    (root / "password").chmod(0o600)
    run(*TROUTER, "passwd", "add", root / "users", "ann", "--password-file", root / "password")
    return root


def placed(text: str, mounts: Path) -> str:
    return text.replace("/etc/trouter", str(mounts)).replace("/run/trouter", str(mounts))


def test_every_configuration_passes_the_check(documents: list[dict[str, Any]], mounts: Path, tmp_path: Path) -> None:
    files = texts(documents)
    assert set(files) == {"net-trouter-interior-0.conf", "net-trouter-interior-1.conf", "edge.conf"}
    for name, text in files.items():
        (tmp_path / name).write_text(placed(text, mounts), encoding="utf-8")
        run(*TROUTER, "check", tmp_path / name)


def test_the_routers_of_a_release_find_each_other(
    documents: list[dict[str, Any]], mounts: Path, tmp_path: Path
) -> None:
    """The rendered files run on this machine, with other paths, names and ports."""
    files = texts(documents)
    shared = ports_for(["45672", "55672"])
    with ExitStack() as stack:
        routers = []
        for name in ("net-trouter-interior-0.conf", "net-trouter-interior-1.conf", "edge.conf"):
            text = re.sub(r"host: (?:net-trouter[\w.-]+|0\.0\.0\.0)", "host: 127.0.0.1", placed(files[name], mounts))
            routers.append(stack.enter_context(process(_moved(text, shared, name), tmp_path)))
        routers[2].wait_for_line("Edge connection .* established")
        routers[1].wait_for_line("router net-trouter-interior-0 is a neighbour")
        assert [router.stop() for router in routers] == [0, 0, 0]


def _moved(text: str, shared: Mapping[str, str], name: str) -> str:
    """Give the first router ports that the others know; every other listener gets a free one."""

    def move(section: re.Match[str]) -> str:
        known = shared if section[1] == "connector" or "interior-0" in name else {}
        return re.sub(r"port: (\d+)", lambda port: f"port: {known.get(port[1], '0')}", section[0])

    return re.sub(r"(listener|connector) \{.*?\}", move, text, flags=re.DOTALL)
