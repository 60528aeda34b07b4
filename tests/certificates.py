"""Make certificate authorities and certificates for a test with openssl."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """A certificate authority for servers; ``certificate`` is its own certificate."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.certificate = folder / "ca.pem"
        self._key = folder / "ca.key"
        made = ("-keyout", self._key, "-out", self.certificate)
        _openssl("req", "-x509", *_KEY, "-days", "2", "-subj", f"/CN={name}", *made)

    def pair(self, address: str) -> tuple[Path, Path]:
        """Return the files with the certificate and the key of a server at this IP address."""
        stem = address.replace(".", "-")
        certificate, key = self._folder / f"{stem}.pem", self._folder / f"{stem}.key"
        extension = f"subjectAltName=IP:{address}"
        signing = ("-CA", self.certificate, "-CAkey", self._key, "-days", "2", "-subj", "/CN=service")
        _openssl("req", "-x509", *_KEY, *signing, "-addext", extension, "-keyout", key, "-out", certificate)
        return certificate, key

    def server(self, address: str) -> ssl.SSLContext:
        """Return the TLS settings of a server at this IP address."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.pair(address))
        return context


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
