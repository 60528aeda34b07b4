"""An object store on this machine: moto's S3 in a process of its own, which can be told to fail.

It serves one request at a time, so that a write on a condition is decided as S3 decides it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from trouter_pipeline.places import Place

REPOSITORY: Final = Path(__file__).parents[2]
USER: Final = "writer"
SECRET: Final = "s3cr3t-that-nobody-may-see"
BUCKET: Final = "lake"
_FAULTS: Final = "/_faults"
_DENIED: Final = (
    b"<Error><Code>InvalidAccessKeyId</Code><Message>The key does not exist in our records.</Message></Error>"
)
_BUSY: Final = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@dataclass
class Store:
    """A running store with one bucket."""

    port: int
    options: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.options = {
            "aws_endpoint_url": self.url,
            "aws_access_key_id": USER,
            "aws_secret_access_key": SECRET,
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
            "max_retries": "2",
            "backoff_config.init_backoff": "10ms",
            "backoff_config.max_backoff": "20ms",
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def plain(self) -> dict[str, str]:
        """The options that every program takes as text."""
        return {name: value for name, value in self.options.items() if name.startswith("aws_")}

    @property
    def environment(self) -> dict[str, str]:
        """Variables with the options, those of retries aside."""
        return {name.upper(): value for name, value in self.plain.items()}

    def root(self, name: str, **options: str) -> Place:
        """Return a root for a pipeline in the bucket."""
        return Place.of(f"s3://{BUCKET}/{name}", {**self.options, **options})

    def fails(self, *, method: str, holding: str, times: int, status: int = 503, done: bool = False) -> None:
        """Answer so many requests of this method and with this text in their path by a status.

        ``done``: each request is carried out nevertheless, and only its answer is lost.
        """
        fault = {"method": method, "holding": holding, "times": times, "status": status, "done": done}
        self._request("PUT", _FAULTS, json.dumps(fault).encode())

    def recovers(self) -> None:
        """Answer as it should again."""
        self._request("DELETE", _FAULTS)

    def create_bucket(self) -> None:
        self._request("PUT", f"/{BUCKET}")

    def keys(self, prefix: str = "") -> list[str]:
        """Return the names of all objects."""
        found = ET.fromstring(self._request("GET", f"/{BUCKET}?list-type=2&prefix={prefix}"))
        return [each.text or "" for each in found.iter() if each.tag.endswith("Key")]

    def get(self, key: str) -> bytes:
        return self._request("GET", f"/{BUCKET}/{key}")

    def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(self.url + path, data=body, method=method)
        request.add_header("Authorization", f"AWS4-HMAC-SHA256 Credential={USER}/20260301/us-east-1/s3/aws4_request")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())


@contextmanager
def running() -> Iterator[Store]:
    """Run a store with an empty bucket; nothing of it outlives the block."""
    command = [sys.executable, "-m", "pipeline.tests.stores"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            store = Store(int(process.stdout.readline()))
            store.create_bucket()
            yield store
        finally:
            process.terminate()


class _Failing:
    """A WSGI application around that of moto."""

    def __init__(self, inner: Callable[..., Iterable[bytes]]) -> None:
        self._inner = inner
        self._fault: dict[str, Any] = {}

    def __call__(self, request: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path, method = request["PATH_INFO"], request["REQUEST_METHOD"]
        if path == _FAULTS:
            self._fault = (
                json.loads(request["wsgi.input"].read(int(request["CONTENT_LENGTH"]))) if method == "PUT" else {}
            )
            return _answer(start, 200, b"")
        if f"Credential={USER}/" not in request.get("HTTP_AUTHORIZATION", ""):
            return _answer(start, 403, _DENIED)
        if self._hits(request, path, method):
            self._fault["times"] -= 1
            if self._fault["done"]:
                list(self._inner(request, lambda *_: None))
            return _answer(start, self._fault["status"], _BUSY)
        return self._inner(request, start)

    def _hits(self, request: Mapping[str, Any], path: str, method: str) -> bool:
        fault = self._fault
        whole = f"{path}?{request['QUERY_STRING']}"
        return bool(fault) and fault["times"] > 0 and fault["method"] in {method, "*"} and fault["holding"] in whole


def _answer(start: Callable[..., Any], status: int, body: bytes) -> list[bytes]:
    start(f"{status} -", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _main() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - its name there
            """Log nothing."""

    app = _Failing(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=False, request_handler=Quiet)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    _main()
