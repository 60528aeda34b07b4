"""A pod: its containers one after the other and side by side, its probes, and its end."""

from __future__ import annotations

import itertools
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import trio

from tests.kubernetes.container import ENTRYPOINT, Container, Identity, Mount
from tests.kubernetes.volumes import chosen, data_of, mode_of, write_empty, write_projected
from tests.lines import Namespace

#: Finds a Secret or a ConfigMap by kind and name.
Find = Callable[[str, str], Mapping[str, Any]]
#: The user of a pod that names none, and the group of its volumes, as OpenShift chooses them; its own group is 0.
CHOSEN_USER = 1_000_680_000
#: Starts of a container of a new pod after which nothing more is expected of it.
_CRASHES = 2
_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class PodFailed(AssertionError):
    """A pod did not come up."""


class Pod:
    """A pod with the address ``ip`` in the network of its namespace."""

    def __init__(
        self,
        name: str,
        template: Mapping[str, Any],
        network: Namespace,
        ip: str,
        hosts: Path,
        folder: Path,
        find: Find,
        changed: Callable[[], None],
    ) -> None:
        self.name = name
        self.ip = ip
        self.labels: dict[str, str] = template["metadata"]["labels"]
        self.spec: Mapping[str, Any] = template["spec"]
        self.ready = False
        self.ending = False
        self.restarts = 0
        #: The exit statuses of containers that run once.
        self.statuses: dict[str, int] = {}
        self.gone = trio.Event()
        self._network = network
        self._hosts = hosts
        self._folder = folder
        self._find = find
        self._changed = changed
        self._security = self.spec.get("securityContext", {})
        self._group: int | None = self._security.get("fsGroup", None if "runAsUser" in self._security else CHOSEN_USER)
        self._running: dict[str, Container] = {}
        #: The containers' probes that do not hold now; the pod is ready with none.
        self._unready: set[str] = set()
        self._delete = trio.Event()
        self._become_ready = trio.Event()
        self._trouble = ""

    def port(self, named: int | str) -> int:
        """Return the number of a container's port."""
        if isinstance(named, int):
            return named
        ports = (port for container in self.spec["containers"] for port in container.get("ports", ()))
        return next(int(port["containerPort"]) for port in ports if port["name"] == named)

    async def run(self) -> None:
        """Live until the pod is deleted, and end as Kubernetes ends pods."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._live)
                await self._delete.wait()
                self.ready, self.ending = False, True
                self._changed()
                nursery.cancel_scope.cancel()
            await self._end()
        finally:
            for container in self._running.values():
                container.close()
            self.gone.set()
            self._changed()

    async def run_once(self) -> None:
        """Run the containers to their ends, which the exit statuses tell of."""
        try:
            self._make_volumes()
            for spec in self.spec["containers"]:
                self.statuses[spec["name"]] = await self._start(spec).wait()
        finally:
            for container in self._running.values():
                container.close()

    def inside(self) -> AbstractContextManager[None]:
        """Be in the network of the pod, as a command behind `kubectl port-forward` is."""
        return self._network.inside()

    async def delete(self) -> None:
        """Delete the pod and wait until it is gone."""
        self._delete.set()
        await self.gone.wait()

    async def wait_ready(self) -> None:
        await self._become_ready.wait()
        if self._trouble:
            raise PodFailed(f"{self.name}: {self._trouble}\n{self.text()}")

    def text(self, container: str | None = None) -> str:
        """Return what the containers, or one of them, have printed."""
        logs = self._folder.glob(f"{container or '*'}/log")
        return "\n".join(log.read_text(encoding="utf-8", errors="replace") for log in sorted(logs))

    async def execute(self, container: str, *command: str) -> int:
        """Run a command in a container; return its exit status."""
        return await self._running[container].execute(command)

    def kill(self, container: str) -> None:
        """Kill a container's process, as a fault would."""
        self._running[container].signal(signal.SIGKILL)

    def project(self) -> None:
        """Write the Secrets and ConfigMaps that the pod mounts, as they are now."""
        for volume in self.spec.get("volumes", ()):
            for kind, key in (("Secret", "secretName"), ("ConfigMap", "name")):
                source = volume.get(kind[0].lower() + kind[1:])
                if source is not None:
                    files = chosen(data_of(self._find(kind, source[key])), source)
                    write_projected(self._volume(volume["name"]), files, mode_of(source), self._group)

    def _volume(self, name: str) -> Path:
        return self._folder / "volumes" / name

    async def _live(self) -> None:
        self._make_volumes()
        for number, spec in enumerate(self.spec.get("initContainers", ())):
            container = self._start(spec)
            status = await container.wait()
            if status != 0:
                self._fail(f"init container {number} ended with {status}")
                return
        self._unready = {spec["name"] for spec in self.spec["containers"]}
        async with trio.open_nursery() as nursery:
            for spec in self.spec["containers"]:
                nursery.start_soon(self._keep, spec)

    def _make_volumes(self) -> None:
        self.project()
        for volume in self.spec.get("volumes", ()):
            if "emptyDir" in volume:
                write_empty(self._volume(volume["name"]), self._group)

    def _fail(self, trouble: str) -> None:
        self._trouble = trouble
        self._become_ready.set()

    def _start(self, spec: Mapping[str, Any]) -> Container:
        values = self._environment(spec)

        def expanded(words: Sequence[str]) -> list[str]:
            return [_VARIABLE.sub(lambda found: values.get(found[1], found[0]), str(word)) for word in words]

        command = expanded(spec.get("command", ENTRYPOINT)) + expanded(spec.get("args", ()))
        security = {**self._security, **spec.get("securityContext", {})}
        group = int(security.get("runAsGroup", 0))
        identity = Identity(
            user=int(security.get("runAsUser", CHOSEN_USER)),
            group=group,
            groups=[group] if self._group is None else sorted({group, self._group}),
            read_only_root=security.get("readOnlyRootFilesystem", False),
            drops_all=security.get("capabilities", {}).get("drop") == ["ALL"],
        )
        assert not (security.get("runAsNonRoot") and identity.user == 0)
        mounts = [Mount(self._hosts, "/etc/hosts", read_only=True)]
        for mount in spec.get("volumeMounts", ()):
            source = self._volume(mount["name"]) / mount.get("subPath", "")
            mounts.append(Mount(source, mount["mountPath"], mount.get("readOnly", False)))
        folder = self._folder / spec["name"]
        container = Container(self._network, command, values, mounts, identity, folder, self.name)
        self._running[spec["name"]] = container
        return container

    def _environment(self, spec: Mapping[str, Any]) -> dict[str, str]:
        fields = {"metadata.name": self.name, "status.podIP": self.ip}
        values = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
        for row in spec.get("env", ()):
            if "value" in row:
                values[row["name"]] = _VARIABLE.sub(lambda found: values.get(found[1], found[0]), str(row["value"]))
            elif "fieldRef" in row["valueFrom"]:
                values[row["name"]] = fields[row["valueFrom"]["fieldRef"]["fieldPath"]]
            else:
                kind = "Secret" if "secretKeyRef" in row["valueFrom"] else "ConfigMap"
                reference = row["valueFrom"][f"{kind[0].lower()}{kind[1:]}KeyRef"]
                values[row["name"]] = data_of(self._find(kind, reference["name"]))[reference["key"]].decode()
        return values

    async def _keep(self, spec: Mapping[str, Any]) -> None:
        """Run a container, and run it again when it ends, or when its liveness probe fails too often."""
        for run in itertools.count():
            container = self._start(spec) if run == 0 else self._restart(spec)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._probe, container, spec)
                await container.wait()
                nursery.cancel_scope.cancel()
            self._set_ready(spec["name"], ready=False)
            if run >= _CRASHES and not self._become_ready.is_set():
                self._fail(f"container {spec['name']} ends again and again")
                return

    def _restart(self, spec: Mapping[str, Any]) -> Container:
        self.restarts += 1
        self._running[spec["name"]].close()
        shutil.rmtree(self._folder / spec["name"] / "root", ignore_errors=True)
        return self._start(spec)

    async def _probe(self, container: Container, spec: Mapping[str, Any]) -> None:
        if "startupProbe" in spec:
            probe = spec["startupProbe"]
            await trio.sleep(probe.get("initialDelaySeconds", 0))
            for _ in range(probe.get("failureThreshold", 3)):
                if await self._passes(container, probe):
                    break
                await trio.sleep(probe.get("periodSeconds", 10))
            else:
                await self._stop(container, spec)
                return
        async with trio.open_nursery() as nursery:
            if "livenessProbe" in spec:
                nursery.start_soon(self._watch_life, container, spec)
            if "readinessProbe" not in spec:
                self._set_ready(spec["name"], ready=True)
                return
            nursery.start_soon(self._watch_readiness, container, spec)

    async def _watch_life(self, container: Container, spec: Mapping[str, Any]) -> None:
        probe = spec["livenessProbe"]
        failures = 0
        while failures < probe.get("failureThreshold", 3):
            failures = 0 if await self._passes(container, probe) else failures + 1
            await trio.sleep(probe.get("periodSeconds", 10))
        await self._stop(container, spec)

    async def _watch_readiness(self, container: Container, spec: Mapping[str, Any]) -> None:
        probe = spec["readinessProbe"]
        failures = 0
        while True:
            if await self._passes(container, probe):
                failures = 0
                self._set_ready(spec["name"], ready=True)
            else:
                failures += 1
                if failures >= probe.get("failureThreshold", 3):
                    self._set_ready(spec["name"], ready=False)
            await trio.sleep(probe.get("periodSeconds", 10))

    def _set_ready(self, container: str, *, ready: bool) -> None:
        (self._unready.discard if ready else self._unready.add)(container)
        self.ready = not self._unready and not self.ending
        if self.ready:
            self._become_ready.set()
        self._changed()

    async def _passes(self, container: Container, probe: Mapping[str, Any]) -> bool:
        passed = False
        with trio.move_on_after(probe.get("timeoutSeconds", 1)):
            if "exec" in probe:
                passed = await container.execute(probe["exec"]["command"]) == 0
            else:
                passed = await self._answers(probe["httpGet"])
        return passed

    async def _answers(self, page: Mapping[str, Any]) -> bool:
        with suppress(OSError, trio.BrokenResourceError):
            async with await trio.open_tcp_stream(self.ip, self.port(page["port"])) as stream:
                request = f"GET {page['path']} HTTP/1.1\r\nHost: {self.ip}\r\nConnection: close\r\n\r\n"
                await stream.send_all(request.encode())
                answer = await stream.receive_some()
                return bool(re.match(rb"HTTP/1\.1 [23]", answer))
        return False

    async def _end(self) -> None:
        """Run the hooks, send TERM, and kill what is left when the time of grace is over."""
        with trio.move_on_after(self.spec.get("terminationGracePeriodSeconds", 30)):
            async with trio.open_nursery() as nursery:
                for spec in self.spec["containers"]:
                    container = self._running.get(spec["name"])
                    if container is not None:
                        nursery.start_soon(self._stop, container, spec)

    async def _stop(self, container: Container, spec: Mapping[str, Any]) -> None:
        hook = spec.get("lifecycle", {}).get("preStop", {})
        if "exec" in hook and not container.ended:
            await container.execute(hook["exec"]["command"])
        if "sleep" in hook:
            await trio.sleep(hook["sleep"]["seconds"])
        container.signal(signal.SIGTERM)
        await container.wait()
