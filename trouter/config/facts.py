"""Makes the facts that plugins see of the configuration."""

from __future__ import annotations

from functools import partial

from trouter.config.configuration import Configuration
from trouter.config.cyrus import cyrus_site
from trouter.config.entities import ListenerEntity
from trouter.config.keepers import Keepers, keepers_of_process
from trouter.config.problems import Problem
from trouter.config.trusted import POINT, refusal_of_file
from trouter.hooks import ListenerFacts, RouterFacts


def router_facts(configuration: Configuration, keepers: Keepers | None = None) -> RouterFacts:
    """Return the facts about the router and its listeners for plugins.

    ``keepers`` may change its files; None for those of this process.
    """
    router = configuration.router
    keepers = keepers or keepers_of_process()
    judges = router.secure_defaults and not _accepts_danger(configuration)
    site = cyrus_site(router)
    return RouterFacts(
        id=router.id,
        mode=router.mode,
        sasl_users_file=router.users_file,
        pam_service=router.pam_service,
        oauth_issuer=router.oauth_issuer,
        oauth_audience=router.oauth_audience,
        oauth_jwks=router.oauth_jwks,
        oauth_user_claim=router.oauth_user_claim,
        oauth_plain=router.oauth_plain,
        oauth_scopes_claim=router.oauth_scopes_claim,
        oauth_scope_prefix=router.oauth_scope_prefix,
        oauth_tenant_claim=router.oauth_tenant_claim,
        sasl_config_dir=None if site is None else site.folder,
        sasl_config_name=router.sasl_config_name,
        sasl_config_named=site is None or site.written,
        sasl_mech_list=None if site is None else site.mech_list,
        secure_defaults=router.secure_defaults,
        file_judge=partial(refusal_of_file, keepers) if judges else None,
        secret_mode=keepers.secret_mode,
        listeners=tuple(listener_facts(entity) for entity in configuration.listeners),
    )


def _accepts_danger(configuration: Configuration) -> bool:
    """Return whether strangers may change the files that the router section names."""
    found = Problem(configuration.router.place, "", point=POINT.name)
    return any(each.covers(found) for each in configuration.acceptances)


def listener_facts(entity: ListenerEntity) -> ListenerFacts:
    """Return the facts about a listener for plugins."""
    return ListenerFacts(
        name=entity.name,
        host=entity.host,
        port=entity.port,
        role=entity.role,
        sasl_mechanisms=entity.sasl_mechanisms,
        authenticate_peer=entity.authenticate_peer,
        allow_insecure_plain=entity.allow_insecure_plain,
        strip_annotations=entity.strip_annotations,
        auth_service=entity.sasl_plugin or "",
    )
