"""Finds and reads the configuration of Cyrus SASL as its library does, so that the router knows what it will offer."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from trouter.config.entities import RouterEntity
from trouter.config.files import opened, reason

#: Variables that name folders, as saslConfigDir does: the first is that of Proton, the second the library's own.
VARIABLES: Final = ("PN_SASL_CONFIG_PATH", "SASL_CONF_PATH")
#: The folders in which builds of the library look otherwise, in their order.
PLACES: Final = (
    "/etc/sasl2",
    "/etc/sasl",
    f"/usr/lib/{sysconfig.get_config_var('MULTIARCH') or 'lib'}/sasl2",
    "/usr/lib64/sasl2",
    "/usr/lib/sasl2",
)
#: The database of users that the library opens if its configuration names none.
DEFAULT_SASLDB: Final = "/etc/sasldb2"
#: Attributes of the router for users of another kind: with one of them the library's own places do not count.
OTHER_USERS: Final = ("users_file", "pam_service", "oauth_issuer", "plugins")
#: More of the file is not read.
MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class CyrusSite:
    """The configuration of Cyrus SASL that a router uses."""

    folder: str
    path: Path
    #: Whether saslConfigDir names the folder; else it was found where the library looks.
    written: bool
    #: Why the file cannot be read; empty if it can.
    fault: str = ""
    #: The options in the file, by their names in lower case.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def mech_list(self) -> tuple[str, ...] | None:
        """The mechanisms that the file allows, in upper case; None if it allows all that are installed."""
        listed = self.options.get("mech_list")
        return None if listed is None else tuple(dict.fromkeys(listed.upper().split()))

    @property
    def sasldb(self) -> str:
        """The database in which the library looks up users; empty if it uses another way."""
        methods = self.options.get("pwcheck_method", "auxprop").split()
        plugins = self.options.get("auxprop_plugin", "sasldb").split()
        if self.fault or "auxprop" not in methods or "sasldb" not in plugins:
            return ""
        return self.options.get("sasldb_path", DEFAULT_SASLDB)


def cyrus_site(router: RouterEntity) -> CyrusSite | None:
    """Return the configuration of Cyrus SASL that the router uses; None for none.

    Without saslConfigDir the library's own places count, unless the router has users or plugins of another kind, or
    secureDefaults: then it uses nothing that its file does not name.
    """
    others = router.secure_defaults or any(getattr(router, name) for name in OTHER_USERS)
    return cyrus_site_of(router.sasl_config_dir, router.sasl_config_name, others=others)


def cyrus_site_of(folders: str | None, name: str, *, others: bool) -> CyrusSite | None:
    """Return the configuration in ``folders``, else the library's own unless the router has ``others``; None."""
    if folders:
        return first_site(folders.split(os.pathsep), name, written=True)
    return None if others else found_site(name)


def found_site(name: str) -> CyrusSite | None:
    """Return the configuration that the library finds where it looks without a folder; None if there is none."""
    variable = next((os.environ[each] for each in VARIABLES if os.environ.get(each)), None)
    site = first_site(PLACES if variable is None else variable.split(os.pathsep), name, written=False)
    return site if site.path.exists() else None


def first_site(folders: Iterable[str], name: str, *, written: bool) -> CyrusSite:
    """Return the site of the first folder whose file can be read; else of the first with a file, or of the first."""
    sites: list[CyrusSite] = []
    for folder in folders:
        path = Path(folder, f"{name}.conf")
        try:
            with opened(str(path)) as file:
                return CyrusSite(folder, path, written, options=_options(file.read(MAX_BYTES)))
        except (OSError, ValueError) as failure:
            sites.append(CyrusSite(folder, path, written, f"this file cannot be read: {path}: {reason(failure)}"))
    return next((site for site in sites if os.path.lexists(site.path)), sites[0])


def _options(content: bytes) -> Mapping[str, str]:
    """Return the options of a file of the library; of one that is given twice the first counts."""
    options: dict[str, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        name, colon, value = line.strip().partition(":")
        if colon and not name.startswith("#"):
            options.setdefault(name.rstrip().lower(), value.strip())
    return MappingProxyType(options)
