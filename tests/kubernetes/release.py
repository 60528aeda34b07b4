"""A release of the chart: rendered by Helm, with the Secrets that it needs, its pods on this machine."""

from __future__ import annotations

import base64
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio
import yaml

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.ledger import Clients
from tests.kubernetes.pod import Pod
from tests.packaging.built import run, tool
from tests.routers import ROOT
from tests.tls.pki import Authority

CHART: Final = ROOT / "packaging" / "helm" / "trouter"
TROUTER: Final = (sys.executable, "-m", "trouter")
SECRETS: Final = ("network.tlsSecret=network", "clients.tlsSecret=clients", "clients.usersSecret=users")
PASSWORD: Final = "a password that is long enough"
NAME: Final = "net-trouter"


def render(*settings: str, files: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """Return the objects of the release ``net`` in the namespace ``ns``."""
    return render_release("ns", files, settings)


def render_release(namespace: str, files: Sequence[Path], settings: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the objects of the release ``net`` in a namespace."""
    words: list[str | Path] = [word for path in files for word in ("-f", path)]
    words += [word for value in settings for word in ("--set", value)]
    text = run(tool("helm"), "template", "net", CHART, "--namespace", namespace, *words)
    return [document for document in yaml.safe_load_all(text) if document]


def secret(name: str, **files: bytes | Path) -> dict[str, Any]:
    """Return a Secret; an underscore in the name of a file stands for a dot, because Python's names have none."""
    data = {
        key.replace("_", "."): base64.b64encode(value if isinstance(value, bytes) else value.read_bytes()).decode()
        for key, value in files.items()
    }
    return {"kind": "Secret", "metadata": {"name": name}, "data": data}


class Secrets:
    """The three Secrets of a release, from an authority of the test."""

    def __init__(self, folder: Path, *users: str) -> None:
        self._folder = folder
        authority = Authority(folder)
        self.authority = authority.file
        interior = f"{NAME}-interior.ns.svc.cluster.local"
        routers = authority.issue("CN=network", interior, f"*.{interior}")
        clients = authority.issue(
            "CN=clients", f"{NAME}.ns.svc.cluster.local", f"{NAME}.ns.svc", "10.96.0.1", "10.96.0.2"
        )
        (folder / "password").write_text(f"{PASSWORD}\n", encoding="utf-8")
        (folder / "password").chmod(0o600)
        for user in users:
            self.add_user(user)
        self.documents = [
            secret("network", ca_crt=authority.file, tls_crt=routers.cert, tls_key=routers.key),
            secret("clients", tls_crt=clients.cert, tls_key=clients.key, ca_crt=authority.file),
            self.users(),
        ]

    def add_user(self, user: str) -> None:
        run(*TROUTER, "passwd", "add", self._folder / "users", user, "--password-file", self._folder / "password")

    def users(self) -> dict[str, Any]:
        return secret("users", users=self._folder / "users")


class Release:
    """The release in a cluster."""

    def __init__(self, cluster: Cluster, secrets: Secrets, hooks: Sequence[dict[str, Any]]) -> None:
        self.cluster = cluster
        self.secrets = secrets
        self._hooks = hooks

    async def test(self) -> Pod:
        """Do what `helm test` does; return the pod that ran."""
        (hook,) = self._hooks
        return await self.cluster.run(hook)

    def clients(self, user: str = "bob") -> Clients:
        """Return how clients reach the release: through its service."""
        context = ssl.create_default_context(cafile=str(self.secrets.authority))
        return Clients(f"amqps://{self.cluster.address(NAME)}:5671", user, PASSWORD, context)

    def text(self) -> str:
        """Return what the pods that are there now have printed."""
        return "\n".join(pod.text() for pod in self.cluster.pods.values())


@asynccontextmanager
async def installed(
    folder: Path, *settings: str, files: Sequence[Path] = (), more: Sequence[dict[str, Any]] = ()
) -> AsyncIterator[Release]:
    """Install the release in a cluster of its own, and wait until every pod is ready."""
    secrets = Secrets(folder, "ann", "bob")
    async with trio.open_nursery() as nursery:
        cluster = Cluster(folder, nursery)
        try:
            await cluster.apply([*secrets.documents, *more])
            documents = render(*SECRETS, *settings, files=files)
            hooks = [
                document for document in documents if "helm.sh/hook" in document["metadata"].get("annotations", {})
            ]
            await cluster.apply([document for document in documents if document not in hooks])
            yield Release(cluster, secrets, hooks)
        finally:
            nursery.cancel_scope.cancel()
            cluster.close()
