"""Makes the facts that plugins see of the configuration."""

from __future__ import annotations

from trouter.config.configuration import Configuration
from trouter.config.entities import ListenerEntity
from trouter.hooks import ListenerFacts, RouterFacts


def router_facts(configuration: Configuration) -> RouterFacts:
    """Return the facts about the router and its listeners for plugins."""
    router = configuration.router
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
        sasl_config_dir=router.sasl_config_dir,
        sasl_config_name=router.sasl_config_name,
        secure_defaults=router.secure_defaults,
        listeners=tuple(listener_facts(entity) for entity in configuration.listeners),
    )


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
