"""The configuration that the workers hand to each other in memory."""

from __future__ import annotations

import pickle

import pytest

from trouter.config import Secret, load
from trouter.workers.sealed import seal, unseal

TEXT = """router {
    id: A
    workers: 2
}
connector {
    name: out
    host: 127.0.0.1
    port: 1
    saslUsername: u
    saslPassword: hush-hush
}
"""


def test_the_configuration_arrives_as_it_was_with_its_passwords() -> None:
    configuration = load(text=TEXT)
    arrived = unseal(seal(configuration))
    assert arrived.entities == configuration.entities
    (connector,) = arrived.connectors
    password = connector.sasl_password
    assert password is not None
    assert (password.reveal(), password.in_clear) == ("hush-hush", True)
    assert [dict(each.written) for each in arrived.entities] == [dict(each.written) for each in configuration.entities]


def test_nothing_else_writes_a_password() -> None:
    with pytest.raises(TypeError, match="not written anywhere"):
        pickle.dumps(Secret("hush-hush"))
