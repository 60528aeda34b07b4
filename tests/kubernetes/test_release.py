"""What the values of the chart promise, with its pods running."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio

from tests.kubernetes.ledger import Ledger
from tests.kubernetes.pod import Pod
from tests.kubernetes.release import NAME, PASSWORD, TROUTER, Release, installed, secret
from tests.kubernetes.waiting import until
from tests.packaging.built import run
from tests.routers import DEADLINE_S, ROOT
from tests.tls.pki import Authority
from trouter.client import Accepted, AuthenticationFailed, LinkDetached, Message, Sender

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_a_node")]
SETTINGS = (
    "interior.replicas=1",
    "edge.replicas=2",
    "preStopSeconds=0",
    "drainOverSeconds=0",
    "operators={ann}",
    "tests.loginSecret=login",
    "console.enabled=true",
    "policy.vhosts.$default.groups.tills.users=carol",
    "policy.vhosts.$default.groups.tills.remoteHosts=*",
    "policy.vhosts.$default.groups.tills.targets=sales",
    "extraEnv[0].name=BROKER_PASSWORD",
    "extraEnv[0].valueFrom.secretKeyRef.name=login",
    "extraEnv[0].valueFrom.secretKeyRef.key=password",
    "interior.extraVolumes[0].name=broker",
    "interior.extraVolumes[0].secret.secretName=network",
    "interior.extraVolumeMounts[0].name=broker",
    "interior.extraVolumeMounts[0].mountPath=/etc/broker",
)
OPENSHIFT = tuple(f"podSecurityContext.{key}=null" for key in ("runAsUser", "runAsGroup", "fsGroup"))
MANIFEST = ROOT / "examples" / "migration" / "interconnect" / "mesh-with-edge.yaml"
#: Sections with a password from the environment, and a file of a volume.
INTERIOR = """
interior:
  extraConfiguration: |
    sslProfile {
        name: brokers
        caCertFile: /etc/broker/ca.crt
    }
    connector {
        name: broker
        role: route-container
        host: broker.example
        port: 5671
        sslProfile: brokers
        saslMechanisms: PLAIN
        saslUsername: trouter
        saslPassword: env:BROKER_PASSWORD
    }
"""


async def test_what_the_values_promise(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(INTERIOR, encoding="utf-8")
    login = secret("login", username=b"bob", password=PASSWORD.encode())
    with trio.fail_after(DEADLINE_S):
        async with installed(tmp_path, *SETTINGS, files=[tmp_path / "values.yaml"], more=[login]) as release:
            for pod in release.cluster.pods.values():
                assert "problem" not in pod.text(), pod.text()
            await helm_test_carries_a_message(release)
            await a_new_user_is_let_in_without_a_restart(release)
            await the_console_is_served(release)
            await an_operator_looks_from_within_a_pod(release)
            await a_killed_router_is_started_again(release)


async def helm_test_carries_a_message(release: Release) -> None:
    pod = await release.test()
    assert pod.statuses == {"message": 0}, pod.text()
    assert "a message of helm test" in pod.text()


async def a_new_user_is_let_in_without_a_restart(release: Release) -> None:
    carol = release.clients("carol")
    with pytest.raises(AuthenticationFailed):
        async with carol.connection():
            pass
    release.secrets.add_user("carol")
    await release.cluster.apply([release.secrets.users()])
    for pod in release.cluster.of(f"{NAME}-edge"):
        await until(partial(_says, pod, "read again, 3 user(s)"))
    async with (
        release.clients("ann").connection() as operator,
        operator.open_receiver("sales") as receiver,
        carol.connection() as connection,
        connection.open_sender("sales") as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sell, sender)
        delivery = await receiver.receive()
        await delivery.accept()
        assert delivery.message.body == "an apple"
        with pytest.raises(LinkDetached, match="unauthorized-access"):
            async with connection.open_receiver("sales"):
                pass
    assert not any(pod.restarts for pod in release.cluster.pods.values())


def _says(pod: Pod, text: str) -> bool:
    return text in pod.text("router")


async def sell(sender: Sender) -> None:
    while await sender.send(Message("an apple")) != Accepted():
        pass


async def the_console_is_served(release: Release) -> None:
    """Its page comes over TLS with the clients' certificate."""
    address = release.cluster.address(f"{NAME}-console")
    stream = await trio.open_ssl_over_tcp_stream(address, 443, ssl_context=release.clients().context)
    async with stream:
        await stream.send_all(f"GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        answer = await stream.receive_some()
    assert answer.startswith(b"HTTP/1.1 200")


async def an_operator_looks_from_within_a_pod(release: Release) -> None:
    """Without a password, as `kubectl exec` runs commands."""
    pod = release.cluster.of(f"{NAME}-edge")[0]
    assert await pod.execute("router", "trouter", "stat", "--connections") == 0
    assert "net-trouter-interior-0" in pod.text("router").rpartition("Connections")[2]


async def a_killed_router_is_started_again(release: Release) -> None:
    pod = release.cluster.of(f"{NAME}-edge")[0]
    pod.kill("router")
    await until(lambda: not pod.ready)
    await until(lambda: pod.ready)
    assert pod.restarts == 1


async def test_the_pods_run_with_a_user_and_groups_that_the_cluster_chooses(tmp_path: Path) -> None:
    """As OpenShift does: its restricted-v2 admits no pod that names a user."""
    (tmp_path / "values.yaml").write_text(INTERIOR, encoding="utf-8")
    login = secret("login", username=b"bob", password=PASSWORD.encode())
    files = [tmp_path / "values.yaml"]
    with trio.fail_after(DEADLINE_S):
        async with installed(tmp_path, *SETTINGS, *OPENSHIFT, files=files, more=[login]) as release:
            await helm_test_carries_a_message(release)
            await a_new_user_is_let_in_without_a_restart(release)


async def test_the_values_from_an_old_manifest_make_a_release_that_carries_messages(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    run(*TROUTER, "migrate", "--interconnect", MANIFEST, "-o", values)
    authority, between = Authority(tmp_path, "broker"), Authority(tmp_path, "between").issue("CN=between")
    more = [
        secret("broker-authority", ca_crt=authority.file),
        secret("mesh-network", ca_crt=authority.file, tls_crt=between.cert, tls_key=between.key),
    ]
    with trio.fail_after(DEADLINE_S):
        async with (
            installed(tmp_path, "preStopSeconds=0", "drainOverSeconds=0", files=[values], more=more) as release,
            trio.open_nursery() as nursery,
        ):
            assert len(release.cluster.pods) == 4
            ledger = Ledger(release.clients(), "news/of/today")
            nursery.start_soon(ledger.receive)
            nursery.start_soon(ledger.send)
            await ledger.wait_for(50)
            await ledger.close()
            nursery.cancel_scope.cancel()
    assert ledger.crossed
    assert not ledger.contradicted
