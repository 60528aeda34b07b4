"""Kubernetes objects put into force on this machine, with an own network for each pod.

A node is a network namespace with a bridge; the pods' namespaces hang on it. Services are addresses of the node whose
connections are passed on to ready pods; names are in the file /etc/hosts of every pod, and change with the pods.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from tests.kubernetes.pod import Pod
from tests.lines import Namespace

_NODE: Final = "10.244.0.1"
_WORKLOADS: Final = ("StatefulSet", "Deployment")
_BYTES: Final = 65536


@contextmanager
def node() -> Iterator[Namespace]:
    """Make the network of a node, and be in it during the block."""
    with ExitStack() as stack:
        namespace = Namespace()
        stack.callback(namespace.close)
        stack.enter_context(namespace.inside())
        _ip("link", "add", "bridge", "type", "bridge")
        _ip("address", "add", f"{_NODE}/16", "dev", "bridge")
        _ip("link", "set", "bridge", "up")
        yield namespace


class Cluster:
    """Objects in force; its tasks run in ``nursery``, in a thread that is inside ``node()``."""

    def __init__(self, folder: Path, nursery: trio.Nursery, namespace: str = "ns") -> None:
        self.pods: dict[str, Pod] = {}
        self.namespace = namespace
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._nursery = nursery
        self._objects: dict[tuple[str, str], dict[str, Any]] = {}
        self._numbers = itertools.count(2)
        self._addresses: dict[str, str] = {}
        self._turn = itertools.count()
        self._stack = ExitStack()
        self._hosts = folder / "hosts"
        self._write_hosts()

    def close(self) -> None:
        self._stack.close()

    async def apply(self, documents: Sequence[Mapping[str, Any]]) -> None:
        """Put objects into force; start the pods of workloads, and wait until all are ready."""
        for document in documents:
            self._objects[document["kind"], document["metadata"]["name"]] = dict(document)
        for document in documents:
            if document["kind"] == "Service" and document["spec"].get("clusterIP") != "None":
                await self._serve(document)
        started = [pod for document in documents if document["kind"] in _WORKLOADS for pod in self._scale(document)]
        for pod in started:
            await pod.wait_ready()
        if any(document["kind"] in ("Secret", "ConfigMap") for document in documents):
            for pod in self.pods.values():
                pod.project()

    def address(self, service: str) -> str:
        """Return the address of a service."""
        return self._addresses[service]

    def of(self, workload: str) -> list[Pod]:
        """Return the pods of a StatefulSet or a Deployment, as they are numbered."""
        return [pod for name, pod in self.pods.items() if name.rpartition("-")[0] == workload]

    async def restart(self, kind: str, name: str) -> None:
        """Replace every pod of a workload, in the order that its kind has."""
        workload = self._objects[kind, name]
        if kind == "StatefulSet":
            for number in reversed(range(workload["spec"]["replicas"])):
                await self.pods[f"{name}-{number}"].delete()
                await self._start(workload, number).wait_ready()
            return
        for old in self.of(name):
            await self._start(workload, next(self._numbers)).wait_ready()
            await old.delete()

    async def delete(self, name: str) -> None:
        """Delete a pod of a StatefulSet, in whose place a new one begins."""
        workload, _, number = name.rpartition("-")
        await self.pods[name].delete()
        self._start(self._objects["StatefulSet", workload], int(number))

    async def run(self, document: Mapping[str, Any]) -> Pod:
        """Run a pod that ends by itself, such as that of `helm test`; return it at its end."""
        pod = self._make(document["metadata"]["name"], document)
        await pod.run_once()
        return pod

    def find(self, kind: str, name: str) -> dict[str, Any]:
        return self._objects[kind, name]

    def _scale(self, workload: Mapping[str, Any]) -> list[Pod]:
        name, replicas = workload["metadata"]["name"], workload["spec"].get("replicas", 1)
        if workload["kind"] == "StatefulSet":
            return [self._start(workload, number) for number in range(replicas) if f"{name}-{number}" not in self.pods]
        return [self._start(workload, next(self._numbers)) for _ in range(replicas - len(self.of(name)))]

    def _start(self, workload: Mapping[str, Any], number: int) -> Pod:
        pod = self._make(f"{workload['metadata']['name']}-{number}", workload["spec"]["template"])
        self.pods[pod.name] = pod
        self._write_hosts()
        self._nursery.start_soon(self._run, pod)
        return pod

    def _make(self, name: str, template: Mapping[str, Any]) -> Pod:
        count = next(self._numbers)
        ip = f"10.244.{count >> 8}.{count & 255}"
        network = Namespace()
        self._stack.callback(network.close)
        _join(network, f"veth{count}", ip)
        folder = self._folder / f"{name}.{count}"
        return Pod(name, template, network, ip, self._hosts, folder, self.find, self._write_hosts)

    async def _run(self, pod: Pod) -> None:
        try:
            await pod.run()
        finally:
            if self.pods.get(pod.name) is pod:
                del self.pods[pod.name]
            self._write_hosts()

    def _selected(self, service: Mapping[str, Any]) -> list[Pod]:
        """Return the pods that a service leads to."""
        selector = service["spec"]["selector"].items()
        early = service["spec"].get("publishNotReadyAddresses", False)
        return [pod for pod in self.pods.values() if selector <= pod.labels.items() and (pod.ready or early)]

    def _write_hosts(self) -> None:
        """Write the names of services and pods into the file that all pods have, which stays the same file."""
        lines = ["127.0.0.1 localhost"]
        for (kind, name), document in self._objects.items():
            if kind != "Service":
                continue
            names = [
                name,
                f"{name}.{self.namespace}",
                f"{name}.{self.namespace}.svc",
                f"{name}.{self.namespace}.svc.cluster.local",
            ]
            if name in self._addresses:
                lines.append(f"{self._addresses[name]} {' '.join(names)}")
                continue
            lines += [
                f"{pod.ip} {' '.join(names)} {' '.join(f'{pod.name}.{each}' for each in names)}"
                for pod in self._selected(document)
            ]
        self._hosts.write_text("\n".join([*lines, ""]), encoding="utf-8")

    async def _serve(self, service: Mapping[str, Any]) -> None:
        """Open the address of a service."""
        name = service["metadata"]["name"]
        if name not in self._addresses:
            address = f"10.96.0.{len(self._addresses) + 1}"
            _ip("address", "add", f"{address}/32", "dev", "bridge")
            self._addresses[name] = address
            for port in service["spec"]["ports"]:
                handle = partial(self._pass_on, name, port["targetPort"])
                await self._nursery.start(partial(trio.serve_tcp, handle, port["port"], host=address))
            self._write_hosts()

    async def _pass_on(self, service: str, port: int | str, stream: trio.SocketStream) -> None:
        """Pass a connection on to the next ready pod of a service."""
        pods = self._selected(self._objects["Service", service])
        if not pods:
            return
        pod = pods[next(self._turn) % len(pods)]
        with suppress(OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            async with await trio.open_tcp_stream(pod.ip, pod.port(port)) as other, trio.open_nursery() as nursery:
                nursery.start_soon(_copy, stream, other, nursery.cancel_scope)
                nursery.start_soon(_copy, other, stream, nursery.cancel_scope)


async def _copy(source: trio.SocketStream, target: trio.SocketStream, scope: trio.CancelScope) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        while data := await source.receive_some(_BYTES):
            await target.send_all(data)
    scope.cancel()


def _join(network: Namespace, device: str, ip: str) -> None:
    """Connect a pod's network with the node's."""
    with network.inside():
        fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        peer = ("peer", "name", "eth0", "netns", f"/proc/{os.getpid()}/fd/{fd}")
        _ip("link", "add", device, "type", "veth", *peer)
    finally:
        os.close(fd)
    _ip("link", "set", device, "master", "bridge", "up")
    with network.inside():
        _ip("address", "add", f"{ip}/16", "dev", "eth0")
        _ip("link", "set", "eth0", "up")
        _ip("route", "add", "default", "via", _NODE)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"
