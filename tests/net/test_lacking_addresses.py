"""A host with several addresses of which this machine lacks one: the listener opens on the others."""

from __future__ import annotations

import errno
import socket

import pytest

from trouter.net.sockets import Address, close_all, open_sockets

#: Reserved for documentation (RFC 5737, RFC 3849): no machine has them.
LACKING: tuple[Address, ...] = (socket.AF_INET, ("192.0.2.1", 0)), (socket.AF_INET6, ("2001:db8::1", 0))
LOOPBACK: Address = (socket.AF_INET, ("127.0.0.1", 0))


@pytest.mark.parametrize("lacking", LACKING, ids=["IPv4", "IPv6"])
def test_an_address_that_the_machine_lacks_is_left_out(lacking: Address) -> None:
    for addresses in ([lacking, LOOPBACK], [LOOPBACK, lacking]):
        opened = open_sockets(addresses)
        try:
            assert [sock.getsockname()[0] for sock in opened] == ["127.0.0.1"]
        finally:
            close_all(opened)


def test_a_host_without_any_address_of_the_machine_is_an_error() -> None:
    with pytest.raises(OSError) as failed:  # noqa: PT011 - the number says which
        open_sockets(LACKING)
    assert failed.value.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def test_an_address_in_use_is_an_error_although_another_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        open_sockets([(socket.AF_INET, ("127.0.0.2", 0)), (socket.AF_INET, taken.getsockname())])
