"""`helm` and `kubectl` for a shell, obeyed by a cluster of the tests: what the manual types, and no more."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import trio
import yaml

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.release import render_release, secret
from tests.routers import ROOT

#: What the shell runs as `helm` and `kubectl`: it passes words and input on, and prints what comes back.
_PROGRAM: Final = """#!{python}
import json, os, socket, sys
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
given = sys.stdin.read() if words[-2:] == ["-f", "-"] else ""
with socket.socket(socket.AF_UNIX) as line:
    line.connect({path!r})
    line.sendall(json.dumps([words, os.getcwd(), given]).encode())
    line.shutdown(socket.SHUT_WR)
    answer = json.loads(b"".join(iter(lambda: line.recv(65536), b"")))
print(answer[1])
sys.exit(answer[0])
"""


class Commands:
    """Obeys the commands of a shell, whose programs are put into the folder ``programs``."""

    def __init__(self, cluster: Cluster, folder: Path, programs: Path) -> None:
        self._cluster = cluster
        self._documents: list[dict[str, Any]] = []
        self._path = folder / "commands"
        for name in ("helm", "kubectl"):
            (programs / name).write_text(_PROGRAM.format(python=sys.executable, path=str(self._path)), encoding="utf-8")
            (programs / name).chmod(0o755)

    async def serve(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Obey until cancelled."""
        with trio.socket.socket(socket.AF_UNIX) as listening:
            await listening.bind(str(self._path))
            listening.listen()
            task_status.started()
            while True:
                connection, _ = await listening.accept()
                async with trio.SocketStream(connection) as stream:
                    asked = b"".join([part async for part in stream])
                    words, folder, given = json.loads(asked)
                    status, text = await self._obey(words, Path(folder), given)
                    await stream.send_all(json.dumps([status, text]).encode())

    async def _obey(self, words: Sequence[str], folder: Path, given: str) -> tuple[int, str]:
        match words:
            case ["kubectl", "create", "secret", "generic", name, *options]:
                return await self._create_secret(name, options, folder)
            case ["kubectl", "apply", "-f", "-"]:
                document = yaml.safe_load(given)
                await self._cluster.apply([document])
                return 0, f"secret/{document['metadata']['name']} configured"
            case ["kubectl", "get", "pods"]:
                return 0, "\n".join(f"{pod.name} {pod.ready}" for pod in self._cluster.pods.values())
            case ["kubectl", "exec", workload, "-c", container, "--", *command]:
                pod = self._cluster.of(workload.rpartition("/")[2])[0]
                before = len(pod.text(container))
                status = await pod.execute(container, *command)
                return status, pod.text(container)[before:]
            case ["kubectl", "delete", "pod", name]:
                await self._cluster.delete(name)
                return 0, f"pod {name!r} deleted"
            case ["kubectl", "rollout", "restart", workload]:
                kind, _, name = workload.partition("/")
                await self._cluster.restart({"statefulset": "StatefulSet", "deployment": "Deployment"}[kind], name)
                return 0, f"{workload} restarted"
            case ["kubectl", "rollout", "status", workload]:
                return 0 if all(pod.ready for pod in self._cluster.of(workload.rpartition("/")[2])) else 1, ""
            case ["helm", "install", "net", chart, "--namespace", namespace, "-f", values]:
                assert (ROOT / chart).is_dir()
                assert namespace == self._cluster.namespace
                self._documents = render_release(namespace, [folder / values])
                await self._cluster.apply([each for each in self._documents if not _is_hook(each)])
                return 0, "STATUS: deployed"
            case ["helm", "test", "net", *_]:
                (hook,) = [each for each in self._documents if _is_hook(each)]
                pod = await self._cluster.run(hook)
                done = not any(pod.statuses.values())
                return 0 if done else 1, "Phase: Succeeded" if done else pod.text()
        raise AssertionError(f"the tests do not know the command {words}")

    async def _create_secret(self, name: str, options: Sequence[str], folder: Path) -> tuple[int, str]:
        files: dict[str, bytes | Path] = {}
        for option in options:
            kind, _, rest = option.partition("=")
            key, equals, value = rest.partition("=")
            if kind == "--from-literal":
                files[key] = value.encode()
            elif kind == "--from-file":
                files[key if equals else Path(key).name] = folder / (value if equals else key)
        document = secret(name, **files)
        if "--dry-run=client" in options:
            return 0, yaml.safe_dump(document)
        await self._cluster.apply([document])
        return 0, f"secret/{name} created"


def _is_hook(document: dict[str, Any]) -> bool:
    return "helm.sh/hook" in document["metadata"].get("annotations", {})
