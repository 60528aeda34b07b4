"""Finds ports with the name of a service that this machine does not know."""

from __future__ import annotations

import socket
from collections.abc import Iterator

from trouter.config import texts
from trouter.config.configuration import Configuration
from trouter.config.entities import Entity
from trouter.config.problems import Problem
from trouter.config.reporting import finding_of


def unknown_services(configuration: Configuration) -> Iterator[Problem]:
    """Yield a problem for each port that has no number on this machine."""
    for entity, written in _ports(configuration):
        service = texts.port_or_service(written)
        if isinstance(service, str) and not configuration.unserved(entity) and not _is_known(service):
            yield finding_of("unknown-service", entity, service=service)


def _ports(configuration: Configuration) -> Iterator[tuple[Entity, str]]:
    for each in (*configuration.listeners, *configuration.connectors):
        yield each, each.port
    for service in configuration.auth_services:
        yield service, service.address[1]


def _is_known(service: str) -> bool:
    try:
        socket.getservbyname(service, "tcp")
    except OSError:
        return False
    return True
