"""The files that the configurations of a case name (certificates, passwords, policies), and the clients' logins."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from proton import SSLDomain

from tests.dropin.cases import Login
from tests.tls.pki import Authority

#: The password of each user in the database of Cyrus SASL.
PASSWORD: Final = "wonderland"
SASL_CONF: Final = (
    "pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {}\nmech_list: PLAIN EXTERNAL ANONYMOUS\n"
)
EVERYBODY: Final = {
    "hostname": "$default",
    "allowUnknownUser": True,
    "groups": {
        "$default": {
            "remoteHosts": "*",
            "sources": "*",
            "targets": "*",
            "allowDynamicSource": True,
            "allowAnonymousSender": True,
        }
    },
}


class Folder:
    """A folder with the files that a case names: certificates, a database of users, policies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.authority = Authority(path)
        (path / "ca.pem").write_bytes(self.authority.file.read_bytes())
        for name, subject in (("server", "CN=localhost"), ("client", "C=US,CN=alice")):
            pair = self.authority.issue(subject, "127.0.0.1", "localhost")
            shutil.move(pair.cert, path / f"{name}.crt")
            shutil.move(pair.key, path / f"{name}.key")
        (path / "password.txt").write_text(PASSWORD)
        (path / "password.txt").chmod(0o600)
        (path / "names.json").write_text("{}")
        (path / "vhosts").mkdir()
        (path / "vhosts" / "default.json").write_text(json.dumps([["vhost", EVERYBODY]]))
        (path / "www").mkdir()
        (path / "www" / "index.html").write_text("<p>console</p>")
        self._write_users()

    def _write_users(self) -> None:
        database = self.path / "sasldb2"
        for user in ("alice", "router", "trader-1"):
            command = ["saslpasswd2", "-p", "-c", "-f", str(database), user]
            subprocess.run(command, input=PASSWORD.encode(), check=True)
        (self.path / "qdrouterd.conf").write_text(SASL_CONF.format(database))

    def options(self, login: Login) -> dict[str, Any]:
        """Return the options of python-qpid-proton for a login."""
        options: dict[str, Any] = {"virtual_host": login.vhost} if login.vhost else {}
        if login.tls:
            domain = SSLDomain(SSLDomain.MODE_CLIENT)
            domain.set_trusted_ca_db(str(self.path / "ca.pem"))
            domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
            if login.certificate:
                domain.set_credentials(str(self.path / "client.crt"), str(self.path / "client.key"), None)
            options["ssl_domain"] = domain
        if login.certificate:
            options["allowed_mechs"] = "EXTERNAL"
        elif login.user:
            options |= {"user": login.user, "password": PASSWORD, "allowed_mechs": "PLAIN"}
            options["allow_insecure_mechs"] = True
        else:
            options["allowed_mechs"] = "ANONYMOUS"
        return options
