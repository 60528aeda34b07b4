"""The rotation of logs that the packages install, by Debian's logrotate."""

from __future__ import annotations

from typing import Final

import pytest

from tests.packaging.other_machine import needs_other_machine, typed_with

#: systemctl, where there is no systemd: it sends the signal to the router that the shell has started.
TYPED: Final = r"""
ip link set lo up
useradd --system trouter && install -d -o trouter -g trouter /var/log/trouter
cp packaging/trouter.logrotate /etc/logrotate.d/trouter
cat >/usr/local/bin/systemctl <<'END'
#!/bin/sh
echo "$@" >/asked && kill -"${3#--signal=}" "$(cat /pid)"
END
chmod +x /usr/local/bin/systemctl
cat >/router.conf <<'END'
router { mode: standalone, id: A }
listener { host: 127.0.0.1, port: 5672, saslMechanisms: ANONYMOUS, authenticatePeer: no }
log { module: DEFAULT, enable: info+, outputFile: /var/log/trouter/router.log }
END
.venv/bin/python -m trouter run -c /router.conf & echo $! >/pid
until grep -q Operational /var/log/trouter/router.log 2>/dev/null; do :; done
logrotate --force /etc/logrotate.d/trouter
until grep -q . /var/log/trouter/router.log 2>/dev/null; do :; done
.venv/bin/python -m trouter stat -g -b 127.0.0.1 >/dev/null
until grep -q 'Connection Opened' /var/log/trouter/router.log; do :; done
grep -q 'Connection Opened' /var/log/trouter/router.log.1 && exit 1
grep -c Operational /var/log/trouter/router.log.1
cat /asked
kill "$(cat /pid)"
"""

pytestmark = [pytest.mark.long, needs_other_machine]


def test_the_router_goes_on_in_a_new_file() -> None:
    assert typed_with("logrotate", TYPED).splitlines() == [
        "1",
        "kill --kill-who=main --signal=HUP trouter.service trouter@*.service",
    ]
