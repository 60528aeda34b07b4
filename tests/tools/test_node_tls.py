"""Tools over TLS and SASL: every valid login, and every one that must fail. The test makes its certificates."""

from __future__ import annotations

import argparse
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from tests.tools.support import ManagementServer, reply
from tests.tools.support import serving_node as serving
from trouter.tools.failures import older_text
from trouter.tools.node import open_node
from trouter.tools.options import ConnectionOptions, add_connection_options

PASSWORD = "client-password"
FAILED = "ConnectionException: Connection amqps://{host}:{port} disconnected: "
UNTRUSTED = FAILED + "SSL Failure: certificate verify failed: "


@dataclass(frozen=True)
class Material:
    """Certificate files, and a server's settings."""

    folder: Path
    server: ssl.SSLContext
    strict: ssl.SSLContext


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    folder = tmp_path_factory.mktemp("tls")
    authority, stranger = trustme.CA(), trustme.CA()
    client = authority.issue_cert("ann@example.org", common_name="ann")
    foreign = stranger.issue_cert("eve@example.org", common_name="eve")
    authority.cert_pem.write_to_path(str(folder / "ca"))
    stranger.cert_pem.write_to_path(str(folder / "wrong-ca"))
    for name, each in (("client", client), ("foreign", foreign)):
        each.cert_chain_pems[0].write_to_path(str(folder / name))
        each.private_key_pem.write_to_path(str(folder / f"{name}-key"))
    client.private_key_and_cert_chain_pem.write_to_path(str(folder / "client-both"))
    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    (folder / "client-locked-key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(PASSWORD.encode()),
        )
    )
    (folder / "password").write_text(f"{PASSWORD}\n")
    (folder / "wrong-password").write_text("nonsense")
    contexts = []
    for verify in (ssl.CERT_NONE, ssl.CERT_REQUIRED):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("localhost").configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = verify
        contexts.append(context)
    return Material(folder, contexts[0], contexts[1])


@dataclass(frozen=True)
class Way:
    """A server, a command line, and the expected result."""

    server: str
    arguments: str
    #: The error; "" for a login that succeeds.
    failure: str = ""
    mechanism: str = ""
    secure: bool = False
    peer: str | None = None
    offers: tuple[str, ...] = ("ANONYMOUS",)
    host: str = "localhost"


CA = "--ssl-trustfile {ca}"
CLIENT = CA + " --ssl-certificate {client} --ssl-key {client-key}"
LOCKED = CA + " --ssl-certificate {client} --ssl-key {client-locked-key}"
ANONYMOUS: dict[str, Any] = {"mechanism": "ANONYMOUS", "secure": True}
EXTERNAL: dict[str, Any] = {"mechanism": "EXTERNAL", "secure": True, "peer": "ann", "offers": ("EXTERNAL",)}

WAYS = {
    "nothing to nothing": Way("plain", ""),
    "SASL to nothing": Way("plain", "--sasl-mechanisms ANONYMOUS", mechanism="ANONYMOUS"),
    "a password without TLS": Way(
        "plain", "--sasl-username u --sasl-password p", mechanism="PLAIN", offers=("PLAIN", "ANONYMOUS")
    ),
    "a user is not admitted as anonymous": Way(
        "plain", "--sasl-username u --sasl-password p", FAILED.replace("amqps", "amqp") + "Authentication failed: "
    ),
    "nothing where SASL is required": Way("sasl", "", FAILED.replace("amqps", "amqp")),
    "nothing where TLS is required": Way("tls", "", FAILED.replace("amqps", "amqp")),
    "nothing where TLS is possible": Way("either", ""),
    "a trust file where TLS is possible": Way("either", CA, **ANONYMOUS),
    "a trust file where TLS is required": Way("tls", CA, **ANONYMOUS),
    "amqps and a trust file": Way("tls", CA + " -b amqps://localhost:{port}", **ANONYMOUS),
    "amqps and nothing to trust": Way("tls", "-b amqps://localhost:{port}", UNTRUSTED),
    "amqps to a server without TLS": Way("plain", CA, FAILED),
    "the wrong authority": Way("tls", "--ssl-trustfile {wrong-ca}", UNTRUSTED),
    "another name": Way("tls", CA, UNTRUSTED, host="127.0.0.1"),
    "another name that does not matter": Way(
        "tls", CA + " --ssl-disable-peer-name-verify", **ANONYMOUS, host="127.0.0.1"
    ),
    "the wrong authority where names do not matter": Way(
        "tls", "--ssl-trustfile {wrong-ca} --ssl-disable-peer-name-verify", UNTRUSTED, host="127.0.0.1"
    ),
    "no certificate where one is required": Way("strict", CA, FAILED),
    "a certificate where it is required": Way("strict", CLIENT, **ANONYMOUS, peer="ann"),
    "a certificate where it is not": Way("tls", CLIENT, **ANONYMOUS),
    "a certificate and its key in one file": Way(
        "strict", CA + " --ssl-certificate {client-both}", **ANONYMOUS, peer="ann"
    ),
    "a certificate of the wrong authority": Way(
        "strict", CA + " --ssl-certificate {foreign} --ssl-key {foreign-key}", FAILED
    ),
    "a certificate without anybody to trust": Way(
        "strict", "--ssl-certificate {client} --ssl-key {client-key}", UNTRUSTED
    ),
    "a key with its password": Way("strict", LOCKED + " --ssl-password " + PASSWORD, **ANONYMOUS, peer="ann"),
    "a key with its password in a file": Way(
        "strict", LOCKED + " --ssl-password-file {password}", **ANONYMOUS, peer="ann"
    ),
    "a key with the wrong password": Way("strict", LOCKED + " --ssl-password-file {wrong-password}", "SSLException: "),
    "a key without its password": Way("strict", LOCKED, "ValueError: password of "),
    "the key of another certificate": Way(
        "strict", CA + " --ssl-certificate {client} --ssl-key {foreign-key}", "SSLException: "
    ),
    "who we are by our certificate": Way("strict", CLIENT + " --sasl-mechanisms EXTERNAL", **EXTERNAL),
    "who we are by our certificate, unasked": Way("strict", CLIENT, **EXTERNAL),
    "who we are by nothing": Way("strict", CLIENT + " --sasl-mechanisms EXTERNAL", FAILED + "Authentication failed: "),
    "a password over TLS": Way(
        "tls",
        CA + " --sasl-username u --sasl-password-file {password}",
        mechanism="PLAIN",
        secure=True,
        offers=("PLAIN", "ANONYMOUS"),
    ),
    "a password over TLS in the bus": Way(
        "tls", CA + " -b amqps://u:p@localhost:{port}", mechanism="PLAIN", secure=True, offers=("PLAIN",)
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_each_way_of_connecting_is_admitted_or_refused_as_listed(way: Way, material: Material) -> None:
    contexts = {"either": material.server, "tls": material.server, "strict": material.strict}
    server = ManagementServer(
        lambda request: [reply(request, ["amqp:/_topo/0/R/$management"])],
        mechanisms=way.offers,
        sasl_required=way.server == "sasl",
        tls=contexts.get(way.server),
        tls_required=way.server != "either",
    )
    async with serving(server):
        found = await result(server, way, material)
    if way.failure:
        assert found.startswith(way.failure.format(host=way.host, port=server.port))
        assert server.requests == []
    else:
        assert found == "['amqp:/_topo/0/R/$management']"
        assert (server.secure, server.sasl.mechanism, server.peer) == (way.secure, way.mechanism, way.peer)
    assert PASSWORD not in found


async def result(server: ManagementServer, way: Way, material: Material) -> str:
    """Return the output of a tool."""
    files = {path.name: path for path in material.folder.iterdir()}
    arguments = way.arguments.format(**files, port=server.port).split()
    if "-b" not in arguments:
        arguments += ["-b", f"{way.host}:{server.port}"]
    parser = argparse.ArgumentParser()
    add_connection_options(parser)
    try:
        async with open_node(ConnectionOptions.of(parser.parse_args(arguments), {})) as node:
            return str(await node.nodes())
    except Exception as failure:  # noqa: BLE001 - every failure is a line of text
        return older_text(failure)
