"""Chooses vhosts by the user's domain: a client that logs in as ``name@domain`` gets the vhost ``domain``.

``pluginSettings: {"vhost_policy": {"userDomain": true}}`` switches it on. Then the hostname in a client's open
has no effect, and users without a domain or without authentication are refused.
"""

from __future__ import annotations

from trouter.hooks import ConfigurationRefused, ConnectionRequest, RouterFacts, VhostPolicy, hookimpl

SETTING = "userDomain"


class Plugin:
    def __init__(self) -> None:
        self.by_domain = False

    @hookimpl
    def configure(self, router: RouterFacts) -> None:
        if unknown := sorted(router.settings.keys() - {SETTING}):
            raise ConfigurationRefused(f"unknown setting {unknown[0]}; there is {SETTING}")
        wanted = router.settings.get(SETTING, False)
        if not isinstance(wanted, bool):
            raise ConfigurationRefused(f"{SETTING} must be true or false")
        self.by_domain = wanted

    @hookimpl
    def vhost_policy(self, connection: ConnectionRequest) -> VhostPolicy | None:
        if not self.by_domain or connection.outgoing or connection.role == "inter-router":
            return None
        name, _, domain = connection.user.rpartition("@")
        if not (connection.authenticated and name and domain):
            return VhostPolicy(denied="the user has no domain")
        return VhostPolicy(vhost=domain)
