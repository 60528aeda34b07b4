"""Every row of security.md's sections 2 and 8.4 in order, and its tests.

A name that ends with `*` is the beginning of several.
"""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

BROKEN = "test_an_unusable_profile_or_listener_is_refused_when_created"
AT_THE_START = "test_unusable_profiles_end_the_start_under_secure_defaults"
AGREED = "test_each_client_agrees_on_tls_or_fails_as_listed"
WHOSE = "test_each_client_certificate_gives_its_mechanisms"
FORMAT = "test_a_format_makes_the_user"
RENEWED = "test_a_broken_renewal_keeps_the_old_pair_and_a_whole_one_replaces_it"

ROWS: dict[str, tuple[str, ...]] = {
    "2.1 name": (BROKEN, "test_an_entity_in_use_cannot_be_deleted"),
    "2.1 caCertFile": (WHOSE, BROKEN),
    "2.1 certFile, privateKeyFile": ("test_an_unusable_profile_is_refused_with_the_attribute", BROKEN),
    "2.1 password": ("test_a_password_in_the_configuration_itself", "test_a_password_from_the_environment"),
    "2.1 passwordFile": ("test_the_password_of_a_key_is_preferred_to_its_file",),
    "2.1 ciphers": (AGREED, BROKEN),
    "2.1 protocols": (AGREED, BROKEN),
    "2.1 uidFormat": (FORMAT, BROKEN),
    "2.1 uidNameMappingFile": ("test_a_mapping_gives_the_user_another_name",),
    "2.1 CREATE, DELETE, READ": ("test_a_profile_is_deleted_when_no_entity_uses_it",),
    "2.1 R-2.1a refused at CREATE and at the start": (BROKEN, AT_THE_START),
    "2.1 R-2.1b UPDATE": ("test_an_update_renews_the_certificate*", "test_an_update_that_cannot_be_used*"),
    "2.1 R-2.1b ordinals": ("test_older_generations_are_closed_when_they_are_valid_no_longer",),
    "2.1 R-2.1c atomic rotation": (RENEWED, "test_an_update_that_cannot_be_used_changes_nothing"),
    "2.2 R-2.2a minimum TLS 1.2": (AGREED,),
    "2.2 R-2.2b only caCertFile": (WHOSE, "test_two_certificates_of_one_serial_and_issuer*"),
    "2.2 R-2.2c suites": (AGREED, "test_a_connector_takes_no_server_without_a_certificate"),
    "2.2 R-2.2c renegotiation": ("test_no_client_renegotiates",),
    "2.2 R-2.2d names": (
        "test_a_connector_accepts_certificates_of_the_host_and_the_trusted_authority",
        "test_a_connector_takes_no_server_of_another_name",
        "test_a_session_is_resumed_only_with_its_own_host",
    ),
    "2.2 R-2.2f requireSsl without a profile": (BROKEN,),
    "2.2 R-2.2g changes of keys": ("test_keys_cannot_be_changed_for_ever",),
    "2.3 letters, rules 1 to 8": (FORMAT, "test_a_digest_is_that_of_the_certificate_in_lower_case"),
    "2.3 rule 8 the subject": ("test_a_subject_is_written_like_openssl_writes_it",),
    "2.3 rule 9 only EXTERNAL": (
        "test_external_makes_the_user_of_the_certificate",
        "test_anonymous_with_a_certificate_stays_anonymous",
    ),
    "2.3 rule 10, R-2.3a": (BROKEN,),
    "2.3 R-2.3b uidMissing, R-2.3c uidEscape": ("test_a_missing_or_doubtful_part_is_treated_as_configured",),
    "2.3 R-2.3c control characters": ("test_a_name_with_control_characters_is_refused",),
    "2.3 R-2.3d mapping followed, no name twice": ("test_other_names_are_followed",),
    "2.3 R-2.3e never unverified": (WHOSE, "test_external_without_a_certificate_stays_out"),
    "2.4 one port for both": ("test_the_same_port_takes_clear_text", "test_amqps_own_header_for_tls_begins_tls"),
    "2.4 requireSsl, requireEncryption": (
        "test_clear_text_where_tls_is_required_is_refused_with_that_reason",
        "test_no_password_mechanism_is_offered_in_clear_where_tls_is_required",
    ),
    "2.4 EXTERNAL": (WHOSE,),
    "2.4 EXTERNAL without authorities": (BROKEN,),
    "2.4 authenticatePeer with http": ("test_without_a_certificate_no_client_comes_in",),
    "2.4 R-2.4 trustedCertsFile": (WHOSE,),
    "2.4 R-2.4b clientCert": (WHOSE, BROKEN),
    "2.5 R-2.5a wss, requireSsl": (
        "test_external_comes_in_where_tls_is_required",
        "test_anonymous_comes_in_where_tls_is_required",
        "test_in_clear_no_client_comes_in_where_tls_is_required",
    ),
    "2.5 wss, only EXTERNAL": ("test_only_external_is_offered",),
    "2.5 R-2.5b origins": ("test_each_origin_is_admitted_or_refused_as_configured", "test_any_other_page_is_not"),
    "2.5 R-2.5c /metrics, /healthz": (
        "test_each_visitor_may_read_the_metrics_as_configured",
        "test_a_token_is_taken_within_tls",
    ),
    "2.5 R-2.5d paths": ("test_no_path_leads_out_of_the_files", "test_a_target_that_could_lead_elsewhere_is_no_path"),
    "2.5 R-2.5e names": ("test_two_of_one_host_have_different_names",),
    "2.5 R-2.5g names of a listener": (
        "test_a_page_whose_name_leads_here_reads_nothing",
        "test_a_page_whose_name_leads_here_opens_no_websocket",
        "test_probes_are_answered_under_every_name",
    ),
    "2.5 R-2.5f 16 KiB": (
        "test_a_head_that_is_too_large_is_refused",
        "test_an_invalid_request_is_answered_with_its_status",
    ),
    "2.5 R-2.5f 10 s": ("test_a_request_that_comes_too_slowly_is_given_up", "test_a_byte_now_and_then_buys_no_time"),
    "8.4 crlFile": (WHOSE, "test_a_certificate_that_is_revoked_by_list_ends_its_connection"),
    "8.4 crlRequired": ("test_open_connections_are_judged_by_the_lists_of_now",),
    "8.4 resumption": (
        "test_a_client_is_verified_whatever_session_it_offers",
        "test_no_session_is_resumed_where_clients_show_certificates",
        "test_a_session_that_is_resumed_all_the_same_is_refused",
        "test_a_server_that_resumes_its_session_is_verified_with_its_issuers",
    ),
    "8.4 the look each ten minutes": (
        "test_a_certificate_that_expires_ends_its_connection",
        "test_a_certificate_that_is_revoked_by_list_ends_its_connection",
        "test_the_removal_of_its_authority_ends_a_connection",
    ),
    "8.4 warnings": (
        "test_ends_are_reported_at_thirty_days_seven_and_one",
        "test_the_expiry_of_the_own_certificate_is_reported*",
    ),
    "8.4 tls_cert_not_after_seconds": ("test_the_end_of_the_certificate_is_a_metric",),
}

HERE = Path(__file__).parent
TESTS = sorted(
    node.name
    for room in ("tls", "http", "config", "plugins")
    for path in (HERE.parent / room).glob("test_*.py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
)
PATTERNS = sorted({name for names in ROWS.values() for name in names})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_test_named_in_the_table_exists(pattern: str) -> None:
    assert any(fnmatchcase(name, pattern) for name in TESTS)


def test_the_rows_stand_in_their_order() -> None:
    numbers = [tuple(map(int, row.split()[0].split("."))) for row in ROWS]
    assert numbers == sorted(numbers)
    assert set(numbers) == {(2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (8, 4)}
