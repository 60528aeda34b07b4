"""The Helm chart: Kubernetes accepts its output, and routers with its configurations carry messages."""

from __future__ import annotations

import re
import shutil
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from tests.certificates import Authority
from tests.packaging.built import run, tool
from tests.ports import ports_for
from tests.routers import DEADLINE_S, ROOT, RunningRouter, process
from trouter import __version__
from trouter.client import Accepted, Connection, LinkDetached, Message, Properties, Receiver, Sender, connect

CHART = ROOT / "packaging" / "helm" / "trouter"
SECRETS = ("network.tlsSecret=network", "clients.tlsSecret=clients", "clients.usersSecret=users")
#: The oldest Kubernetes that the chart supports, and a new one.
KUBERNETES = ("1.25", "1.36")
EVERYTHING = (
    "serviceMonitor.enabled=true",
    "prometheusRule.enabled=true",
    "dashboards.enabled=true",
    "certManager.enabled=true",
    "certManager.issuerRef.name=ours",
    "edge.autoscaling.enabled=true",
    "console.enabled=true",
    "console.ingress.enabled=true",
    "console.ingress.host=console.example.com",
    "console.ingress.tlsSecret=web",
    "tests.loginSecret=login",
    "operators={ann}",
    "clients.service.type=LoadBalancer",
    "clients.service.externalTrafficPolicy=Local",
    "clients.service.loadBalancerSourceRanges={10.0.0.0/8}",
    "clients.proxyProtocolHosts=10.0.0.1",
    "clients.dnsNames={amqp.example.com}",
    "networkPolicy.clients[0].podSelector.matchLabels.app=till",
    "policy.vhosts.shop\\.example.maxConnections=60000",
    "policy.vhosts.shop\\.example.groups.tills.users=till",
    "policy.vhosts.shop\\.example.groups.tills.remoteHosts=*",
    "extraEnv[0].name=REGION",
    "extraEnv[0].value=north",
    "interior.extraEnv[0].name=BROKER",
    "interior.extraEnv[0].value=secret",
    "edge.extraVolumes[0].name=more",
    "edge.extraVolumes[0].configMap.name=more",
    "edge.extraVolumeMounts[0].name=more",
    "edge.extraVolumeMounts[0].mountPath=/etc/more",
    "interior.podAnnotations.here=yes-here",
    "image.digest=sha256:" + 64 * "a",
    "interior.replicas=2",
    "interior.updateStrategy=OnDelete",
)
#: A further listener for edge routers that log in with passwords.
OUTSIDE = (
    "listeners[0].name=outside",
    "listeners[0].part=interior",
    "listeners[0].role=edge",
    "listeners[0].port=45673",
    "listeners[0].authoritySecret=partners",
    "listeners[0].attributes.saslMechanisms=PLAIN",
    "listeners[0].attributes.linkCapacity=25000",
    "listeners[0].users={shop-edge}",
    "listeners[0].route.enabled=true",
)
#: The password of the users ann, an operator if the values say so, and bob.
PASSWORD = "a password that is long enough"
TROUTER = (sys.executable, "-m", "trouter")
#: Kinds of the Prometheus operator and of cert-manager.
NOT_OF_KUBERNETES = ("ServiceMonitor", "PrometheusRule", "Certificate", "Route")


def render(*values: str) -> list[dict[str, Any]]:
    settings = [word for value in (*SECRETS, *values) for word in ("--set", value)]
    text = run(tool("helm"), "template", "net", CHART, "--namespace", "ns", *settings)
    return [document for document in yaml.safe_load_all(text) if document]


def pods_of(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the templates of the routers' pods."""
    kinds = ("StatefulSet", "Deployment")
    return [document["spec"]["template"] for kind in kinds for document in of_kind(documents, kind)]


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return render(*EVERYTHING)


def of_kind(documents: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [document for document in documents if document["kind"] == kind]


def test_the_chart_has_the_version_of_the_router_and_no_fault() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert about["version"] == about["appVersion"] == __version__
    run(tool("helm"), "lint", "--strict", CHART, *(word for value in SECRETS for word in ("--set", value)))


@pytest.mark.parametrize(
    "values", [(), EVERYTHING, ("edge.replicas=0", "networkPolicy.enabled=false"), OUTSIDE], ids=len
)
def test_kubernetes_validates_the_rendered_chart(values: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "rendered.yaml"
    rendered = [document for document in render(*values) if document["kind"] not in NOT_OF_KUBERNETES]
    path.write_text(yaml.safe_dump_all(rendered), encoding="utf-8")
    for version in KUBERNETES:
        run(tool("kubernetes-validate"), "--strict", "-k", version, path)


@pytest.mark.parametrize(
    "wrong",
    [
        "edge.count=2",
        "operators={a b}",
        "image.digest=latest",
        "interior.replicas=-1",
        "edge.uplinks[0].host=hub",
        "network.tlsSecret=Not A Name",
        "policy.vhosts.$default.groups.$default.remoteHosts=a\nb",
        "clients.service.type=Ingress",
        "listeners[0].name=Outside",
        "podSecurityContext=restricted",
        "interior.updateStrategy=Recreate",
    ],
)
def test_values_that_cannot_be_are_refused_by_the_schema(wrong: str) -> None:
    with pytest.raises(AssertionError, match="values don't meet the specifications"):
        render(wrong)


@pytest.mark.parametrize(
    ("half", "said"),
    [
        (["network.tlsSecret="], "network.tlsSecret is empty: name a Secret with ca.crt, tls.crt and tls.key"),
        (["clients.tlsSecret="], "clients.tlsSecret is empty: name a Secret with tls.crt and tls.key"),
        (["clients.usersSecret="], "clients.usersSecret is empty: name a Secret with the key users"),
        (["certManager.enabled=true"], "certManager.issuerRef.name is empty: name the Issuer"),
        (["interior.replicas=0"], "interior.replicas is 0 and edge.uplinks is empty"),
        (["listeners[0].name=a", "listeners[0].port=5672"], "a has port 5672, which is that of pod"),
        (["listeners[0].name=edge", "listeners[0].port=1234"], "the name edge is taken"),
        (
            ["listeners[0].name=a", "listeners[0].port=1234", "listeners[0].role=edge"],
            "a is for routers, which connect to interior ones: set its part to interior",
        ),
        ([value for value in OUTSIDE if "users" not in value], "name their users, or every client could connect there"),
        (["interior.replicas=0", "edge.replicas=0"], "the release has no router"),
        (
            ["edge.uplinks[0].host=hub", "edge.uplinks[0].port=45672"],
            "edge.uplinks is set and interior.replicas is not 0",
        ),
        (
            ["edge.autoscaling.enabled=true", "edge.autoscaling.minReplicas=20"],
            r"minReplicas \(20\) is above maxReplicas",
        ),
        (["edge.autoscaling.enabled=true", "edge.resources=null"], "needs edge.resources.requests.cpu"),
        (["console.ingress.enabled=true", "console.ingress.host=c"], "there is no console to lead to"),
        (["console.enabled=true", "console.ingress.enabled=true"], "console.ingress.host is empty"),
        (["policy.vhosts.edges.maxConnections=1"], "policy.vhosts has the name edges, which is the chart's own"),
        (["operators={ann}", "policy.vhosts.$default.groups.operators.users=bob"], "leave out one of them"),
        (["operators={ann}", "policy.vhosts.$default=null"], r"policy.vhosts has no \$default"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_half_configured_values_are_refused_with_what_to_do(half: list[str], said: str) -> None:
    with pytest.raises(AssertionError, match=f"(?s)The values need a change.*{said}"):
        render(*half)


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(AssertionError) as refused:
        render("network.tlsSecret=", "clients.usersSecret=", "console.ingress.enabled=true")
    assert str(refused.value).count("\n  - ") == 4


def test_a_pod_runs_without_rights_on_a_read_only_disk(documents: list[dict[str, Any]]) -> None:
    workloads = of_kind(documents, "StatefulSet") + of_kind(documents, "Deployment")
    assert len(workloads) == 2
    for workload in workloads:
        pod = workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        drain_s = int(re.search(r"drainTimeoutSeconds: (\d+)", texts(documents)["edge.conf"])[1])  # type: ignore[index]
        assert pod["terminationGracePeriodSeconds"] > drain_s + 5
        (router,) = pod["containers"]
        assert router["securityContext"]["readOnlyRootFilesystem"]
        assert router["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert all(port["containerPort"] > 1024 for port in router["ports"])
        assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(router)


def test_a_pod_copies_no_secret_and_gets_the_keys_alone_that_its_configuration_names() -> None:
    """A Secret of cert-manager may have more, such as key stores with their passwords."""
    documents = render(*OUTSIDE)
    text = "".join(texts(documents).values())
    for pod in pods_of(documents):
        spec = pod["spec"]
        assert "initContainers" not in spec
        (router,) = spec["containers"]
        mounted = {mount["name"]: mount["mountPath"] for mount in router["volumeMounts"]}
        secrets = {each["name"]: each["secret"] for each in spec["volumes"] if "secret" in each}
        given = {f"{mounted[name]}/{item['path']}" for name, secret in secrets.items() for item in secret["items"]}
        assert {path for path in given if path not in text} == set()
        assert {"/etc/trouter/users/users", "/etc/trouter/clients/tls.key", "/etc/trouter/network/ca.crt"} <= given
        assert all(mount["readOnly"] for mount in router["volumeMounts"] if mount["name"] in secrets)
        assert all(secret["defaultMode"] == 0o440 for secret in secrets.values())


def test_a_pod_may_leave_its_user_and_groups_to_the_cluster() -> None:
    """OpenShift's restricted-v2 admits no pod that names them."""
    keys = ("runAsUser", "runAsGroup", "fsGroup")
    chosen = render(*(f"podSecurityContext.{key}=null" for key in keys), "tests.loginSecret=login")
    for pod in (*of_kind(chosen, "Pod"), *pods_of(chosen)):
        assert set(pod["spec"]["securityContext"]) == {"runAsNonRoot", "seccompProfile"}
    without = render("podSecurityContext=null", "securityContext=null")
    for pod in pods_of(without):
        assert "securityContext" not in pod["spec"]
        assert all("securityContext" not in container for container in pod["spec"]["containers"])


def test_edge_routers_that_log_in_have_a_vhost_of_their_own(mounts: Path, tmp_path: Path) -> None:
    """Other users of the release must not connect there as edge routers."""
    files = texts(render(*OUTSIDE, "interior.replicas=1", "edge.replicas=0"))
    (name, text), *_ = files.items()
    assert "policyVhost: edges-outside\n" in text
    (tmp_path / name).write_text(placed(text, mounts), encoding="utf-8")
    (tmp_path / name).chmod(0o600)
    run(*TROUTER, "check", "--strict", tmp_path / name)
    explain = (*TROUTER, "policy", "explain", "-c", tmp_path / name, "--vhost", "edges-outside", "--target", "anything")
    run(*explain, "--user", "shop-edge")
    with pytest.raises(AssertionError):
        run(*explain, "--user", "bob")


def test_a_route_of_openshift_leads_tls_to_the_routers() -> None:
    route = of_kind(render(*OUTSIDE, "clients.route.enabled=true", "clients.route.host=amqp.example.com"), "Route")
    clients, outside = (each["spec"] for each in sorted(route, key=lambda each: str(each["metadata"]["name"])))
    assert clients["host"] == "amqp.example.com"
    assert (clients["to"]["name"], clients["port"]["targetPort"]) == ("net-trouter", "amqps")
    assert (outside["to"]["name"], outside["port"]["targetPort"]) == ("net-trouter-outside", "outside")
    assert all(each["tls"]["termination"] == "passthrough" for each in (clients, outside))


def test_every_selector_selects_a_pod(documents: list[dict[str, Any]]) -> None:
    workloads = of_kind(documents, "StatefulSet") + of_kind(documents, "Deployment")
    pods = [workload["spec"]["template"]["metadata"]["labels"] for workload in workloads]
    selectors = [d["spec"]["selector"] for d in of_kind(documents, "Service")]
    selectors += [d["spec"]["selector"]["matchLabels"] for d in of_kind(documents, "PodDisruptionBudget")]
    selectors += [d["spec"]["podSelector"]["matchLabels"] for d in of_kind(documents, "NetworkPolicy")]
    assert len(selectors) == 8
    for selector in selectors:
        assert any(selector.items() <= labels.items() for labels in pods)
    (monitor,) = of_kind(documents, "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert [d for d in of_kind(documents, "Service") if wanted.items() <= d["metadata"]["labels"].items()]


def texts(documents: list[dict[str, Any]]) -> dict[str, str]:
    """Return the configuration files."""
    data: dict[str, str] = of_kind(documents, "ConfigMap")[0]["data"]
    return data


def test_alerts_and_dashboards_are_those_of_the_repository(documents: list[dict[str, Any]]) -> None:
    (rules,) = of_kind(documents, "PrometheusRule")
    source = ROOT / "packaging" / "prometheus" / "alerts.yaml"
    assert rules["spec"] == yaml.safe_load(source.read_text(encoding="utf-8"))
    boards = of_kind(documents, "ConfigMap")[1]["data"]
    assert len(boards) == 2
    for name, text in boards.items():
        path = ROOT / "packaging" / "grafana" / name.removeprefix("trouter-")
        assert text == path.read_text(encoding="utf-8")


def test_what_is_for_one_part_is_in_that_part_alone(documents: list[dict[str, Any]]) -> None:
    (interior,), (edge,) = of_kind(documents, "StatefulSet"), of_kind(documents, "Deployment")
    pods = [workload["spec"]["template"]["spec"] for workload in (interior, edge)]
    names = [[row["name"] for row in pod["containers"][0]["env"]] for pod in pods]
    assert names == [["POD_NAME", "REGION", "BROKER"], ["POD_NAME", "REGION"]]
    assert ["more" in {volume["name"] for volume in pod["volumes"]} for pod in pods] == [False, True]
    assert pods[0]["containers"][0]["image"].endswith("trouter@sha256:" + 64 * "a")
    assert "replicas" not in edge["spec"]


def test_a_vhost_of_the_values_is_in_every_router(documents: list[dict[str, Any]]) -> None:
    for text in texts(documents).values():
        assert 'hostname: "shop.example"\n    maxConnections: 60000\n' in text
        assert text.count('hostname: "$default"') == 1
        assert re.search(r'"operators": \{[^}]*users: "ann"', text)


def test_a_release_of_edge_pods_alone_dials_the_uplinks() -> None:
    text = texts(render("interior.replicas=0", "edge.uplinks[0].host=hub.example", "edge.uplinks[0].port=45000"))
    assert set(text) == {"edge.conf"}
    assert "host: hub.example\n    port: 45000\n" in text["edge.conf"]


@pytest.fixture(scope="module")
def mounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make the files that the pods mount, secrets behind two symbolic links, for processes in a container."""
    made, root = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("mounts")
    authority = Authority(made, "authority")
    certificate, key = authority.pair("127.0.0.1")
    pair = {"tls.crt": certificate, "tls.key": key}
    mount(root / "network", {**pair, "ca.crt": authority.certificate})
    mount(root / "clients", pair)
    mount(root / "authorities" / "outside", {"ca.crt": authority.certificate})
    (made / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
    (made / "password").chmod(0o600)
    for user in ("ann", "bob"):
        run(*TROUTER, "passwd", "add", made / "users", user, "--password-file", made / "password")
    mount(root / "users", {"users": made / "users"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
        yield root


def mount(secret: Path, files: Mapping[str, Path]) -> None:
    """Make the folder of a Secret as the kubelet does."""
    folder = secret / "..2026"
    folder.mkdir(parents=True)
    (secret / "..data").symlink_to("..2026")
    for name, source in files.items():
        shutil.copyfile(source, folder / name)
        (folder / name).chmod(0o440)
        (secret / name).symlink_to(f"..data/{name}")


def placed(text: str, mounts: Path) -> str:
    return text.replace("/etc/trouter", str(mounts))


def test_every_configuration_passes_the_strict_check(
    documents: list[dict[str, Any]], mounts: Path, tmp_path: Path
) -> None:
    files = texts(documents)
    assert set(files) == {"net-trouter-interior-0.conf", "net-trouter-interior-1.conf", "edge.conf"}
    for name, text in files.items():
        (tmp_path / name).write_text(placed(text, mounts), encoding="utf-8")
        (tmp_path / name).chmod(0o600)
        run(*TROUTER, "check", "--strict", tmp_path / name)
    run(*TROUTER, "check", "--strict", *(tmp_path / name for name in files))


@dataclass
class Release:
    """The pods of a release on this machine: the rendered files with other paths, hosts and ports."""

    files: Mapping[str, str]
    mounts: Path
    folder: Path
    stack: ExitStack

    def __post_init__(self) -> None:
        self._known = {name: ports_for(["45672", "55672"]) for name in self.files if name != "edge.conf"}

    def start(self, number: int) -> RunningRouter:
        """Start an interior pod, or start it again: it keeps its name and its ports."""
        return self._start(interior_file(number), self._known[interior_file(number)])

    def start_edge(self, above: int) -> RunningRouter:
        """Start an edge pod for which the name of the interior service leads to pod ``above``."""
        return self._start("edge.conf", self._known[interior_file(above)])

    def _start(self, name: str, own: Mapping[str, str]) -> RunningRouter:
        text = placed(self.files[name], self.mounts)

        def move(section: re.Match[str]) -> str:
            """Give listeners for routers, and connectors, the ports that the others know; other listeners free ones."""
            dialled = re.search(r"host: (net-trouter-interior-\d+)\.", section[0])
            known = own if dialled is None else self._known[f"{dialled[1]}.conf"]
            moved = re.sub(r"port: (\d+)", lambda port: f"port: {known.get(port[1], '0')}", section[0])
            return re.sub(r"host: (?:net-trouter[\w.-]+|0\.0\.0\.0)", "host: 127.0.0.1", moved)

        text = re.sub(r"(listener|connector) \{.*?\}", move, text, flags=re.DOTALL)
        router = self.stack.enter_context(process(text, self.folder))
        router.wait_for_line("Operational")
        return router

    def url(self, router: RunningRouter) -> str:
        """Return the address of the pod's listener for clients."""
        return f"amqps://127.0.0.1:{router.wait_for_line(r'Listening on 127.0.0.1:([0-9]+) .amqps.')[1]}"

    def connect(self, router: RunningRouter, user: str = "bob", **more: Any) -> AbstractAsyncContextManager[Connection]:
        """Return the connection of a user at a pod, to be opened."""
        context = ssl.create_default_context(cafile=str(self.mounts / "network" / "ca.crt"))
        return connect(self.url(router), user=user, password=PASSWORD, ssl_context=context, **more)


def interior_file(number: int) -> str:
    return f"net-trouter-interior-{number}.conf"


@pytest.fixture
def release(mounts: Path, tmp_path: Path) -> Iterator[Release]:
    """Render a release with the default values."""
    with ExitStack() as stack:
        yield Release(texts(render()), mounts, tmp_path, stack)


@asynccontextmanager
async def taking(receiver: Receiver) -> AsyncIterator[None]:
    """Accept every delivery while the block runs."""

    async def take() -> None:
        while True:
            await (await receiver.receive()).accept()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        yield
        nursery.cancel_scope.cancel()


async def insist(sender: Sender) -> None:
    """Send until a message is accepted: one is released while no router knows of the receiver."""
    while await sender.send(Message("hello")) != Accepted():
        pass


async def test_ordinary_users_of_two_edge_pods_exchange_messages_while_pods_die(release: Release) -> None:
    interiors = [release.start(number) for number in range(3)]
    here, there = release.start_edge(0), release.start_edge(1)
    for edge in (here, there):
        edge.wait_for_line("Edge connection .* established")
    interiors[1].wait_for_line("router net-trouter-interior-0 is a neighbour")
    with trio.fail_after(DEADLINE_S):
        async with release.connect(here) as sending, sending.open_sender("bob.news") as sender:
            async with (
                release.connect(there) as receiving,
                receiving.open_receiver("bob.news") as receiver,
                taking(receiver),
            ):
                await insist(sender)
                await ask_and_answer(sending, receiving)
                interiors[0].process.send_signal(signal.SIGKILL)
                interiors[0].wait()
                here.wait_for_line("Edge connection .* lost")
                release.start(0)
                here.wait_for_line("Edge connection .* established", 2)
                await insist(sender)
            there.process.send_signal(signal.SIGKILL)
            there.wait()
            async with (
                release.connect(release.start_edge(2)) as receiving,
                receiving.open_receiver("bob.news") as receiver,
                taking(receiver),
            ):
                await insist(sender)
    assert not [line for router in (*interiors, here, there) for line in router.matching("DENY|cannot use the uplink")]
    assert here.stop() == 0


async def ask_and_answer(asking: Connection, answering: Connection) -> None:
    """Send a request with a dynamic reply address, and answer it through a sender without an address."""

    async def serve() -> None:
        request = await service.receive()
        properties = request.message.properties
        assert properties is not None
        await request.accept()
        assert await replies.send(Message("yes", properties=Properties(to=properties.reply_to))) == Accepted()

    async with (
        answering.open_receiver("bob.service") as service,
        answering.open_sender(None) as replies,
        asking.open_receiver(dynamic=True) as answers,
        asking.open_sender("bob.service") as requests,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(serve)
        request = Message("please", properties=Properties(reply_to=answers.address))
        while await requests.send(request) != Accepted():
            pass
        answer = await answers.receive()
        assert answer.message.body == "yes"
        await answer.accept()


async def test_a_client_gets_neither_the_rights_of_edge_routers_nor_the_addresses_of_others(release: Release) -> None:
    """It may ask for the vhost of edge routers by its name, at an interior pod."""
    interior = release.start(0)
    with trio.fail_after(DEADLINE_S):
        async with release.connect(interior, hostname="edges") as client:
            for address in ("ann.news", "$management", "_topo/0/net-trouter-interior-0/$management"):
                with pytest.raises(LinkDetached, match="unauthorized-access"):
                    async with client.open_sender(address):
                        pass
            with pytest.raises(LinkDetached, match="unauthorized-access"):
                async with client.open_receiver("ann.news"):
                    pass
            async with client.open_receiver("bob.news"):
                pass
    assert interior.stop() == 0


def test_a_release_without_edge_pods_serves_clients_at_the_interior_ones() -> None:
    text = texts(render("edge.replicas=0"))[interior_file(0)]
    assert "role: edge" not in text
    assert "policyVhost: $default" not in text
