"""The operation CHECK and the files of this machine: a text that management sends opens none that it may not name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from trouter.app.checking import check_policy, check_text
from trouter.config import load
from trouter.config.conf_form import parse_conf
from trouter.config.nodes import Section
from trouter.config.problems import Findings, Severity

pytestmark = pytest.mark.attack

SECURE = "router { secureDefaults: yes }\n"
WITHHELD = "management may name only files below the secretDir of the router"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder of another program, with a file that is no policy."""
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "tokens.json").write_text("of-another-program")
    return folder


@pytest.mark.parametrize(
    "section",
    [
        "policy {{ policyDir: {} }}",
        "sslProfile {{ name: s, certFile: {}/tokens.json }}",
        "sslProfile {{ name: s, certDb: {}/tokens.json }}",
        "connector {{ name: c, host: 127.0.0.1, port: 1, saslPassword: file:{}/tokens.json }}",
        "listener {{ port: 0, tenantFrom: file:{}/tokens.json }}",
    ],
)
def test_a_text_that_names_files_of_others_is_no_configuration_and_shows_nothing_of_them(
    private: Path, section: str
) -> None:
    report = check_text(load(Path("R.conf"), SECURE), SECURE + section.format(private), "new.conf")
    assert report.plan is None
    (finding,) = report.findings
    assert (str(finding.place).startswith("new.conf:2"), finding.severity) == (True, Severity.PROBLEM)
    assert finding.message.endswith(WITHHELD)
    assert "of-another-program" not in str(finding)


def test_the_json_form_of_a_text_is_judged_too(private: Path) -> None:
    text = f'[["policy", {{"policyDir": "{private}"}}]]'
    report = check_text(load(Path("R.conf"), SECURE), text, "new.json")
    assert [finding.message.endswith(WITHHELD) for finding in report.findings] == [True]


def test_a_file_that_is_null_is_none() -> None:
    text = '[["router", {"secureDefaults": true}], ["sslProfile", {"name": "s", "crlFile": null}]]'
    assert check_text(load(Path("R.conf"), SECURE), text, "new.json").plan is not None


def test_files_that_the_configuration_names_and_those_of_secret_dir_are_read(private: Path) -> None:
    (private / "tokens.json").write_text('[["vhost", {"hostname": "h"}]]')
    named = SECURE + f"policy {{ policyDir: {private} }}\n"
    below = f"router {{ secureDefaults: yes, secretDir: {private.parent} }}\n"
    for present in (named, below):
        report = check_text(load(Path("R.conf"), present), named, "new.conf")
        assert report.plan is not None


USED = (
    "connector {{ name: c, host: 127.0.0.1, port: 1, saslUsername: u, saslPassword: {} }}\n"
    "log {{ module: AGENT, outputFile: {} }}\n"
)


@pytest.mark.parametrize("secure", ["", SECURE])
@pytest.mark.parametrize(
    ("section", "cure"),
    [
        ("policy {{ policyDir: {} }}", "does not use so far"),
        ("sslProfile {{ name: s, certFile: {}/tokens.json }}", "does not use so far"),
        ("sslProfile {{ name: s, password: file:{}/tokens.json }}", "does not use so far"),
        ("sslProfile {{ name: s, password: env:HOME }}", "does not use so far"),
        ("listener {{ port: 0, tenantFrom: file:{}/tokens.json }}", "does not use so far"),
        ("recordLog {{ dir: {} }}", "does not use so far"),
        ("log {{ module: DEFAULT, outputFile: {}/tokens.json }}", "does not use so far"),
        ("log {{ module: DEFAULT, output: {}/tokens.json }}", "does not use so far"),
        ("vhost {{ hostname: h, sampleKeyFile: {}/tokens.json }}", "does not use so far"),
        ("connector {{ name: c, host: 127.0.0.1, port: 1, saslPassword: hunter2 }}", "that is in the text"),
        ("connector {{ name: c, host: 127.0.0.1, port: 1, saslPassword: pass:hunter2 }}", "that is in the text"),
    ],
)
def test_who_may_change_nothing_has_no_other_place_and_no_password_judged(
    private: Path, secure: str, section: str, cure: str
) -> None:
    present = load(Path("R.conf"), secure + USED.format("pass:hunter2", "stderr"))
    report = check_text(present, secure + section.format(private), "new.conf", may_change=False)
    assert report.plan is None
    (finding,) = report.findings
    assert finding.message.endswith(cure)
    assert "of-another-program" not in str(finding)
    assert "hunter2" not in str(finding)


def test_who_may_change_nothing_has_the_places_judged_that_the_router_uses(private: Path) -> None:
    (private / "password").write_text("hunter2")
    used = USED.format(f"file:{private}/password", f"{private}/log")
    report = check_text(load(Path("R.conf"), used), f"{used}address {{ prefix: a }}\n", "new.conf", may_change=False)
    assert report.plan is not None
    assert (report.plan.created, report.plan.updated) == (("address/0",), ())


def test_a_place_of_one_attribute_is_not_judged_as_that_of_another(private: Path) -> None:
    present = load(Path("R.conf"), USED.format("pass:hunter2", f"{private}"))
    report = check_text(present, f"policy {{ policyDir: {private} }}", "new.conf", may_change=False)
    assert report.plan is None


@pytest.mark.parametrize(
    "attribute",
    ["oauthJwks: {}/tokens.json", "oauth-jwks: {}/tokens.json", "saslConfigName: other", "pamService: sshd",
     "plugins: p", "usersFile: {}/tokens.json"],
)  # fmt: skip
def test_who_may_change_nothing_has_no_other_file_of_the_logins_judged(private: Path, attribute: str) -> None:
    text = f"router {{ {attribute.format(private)} }}"
    report = check_text(load(Path("R.conf"), ""), text, "new.conf", may_change=False)
    assert report.plan is None
    (finding,) = report.findings
    assert finding.message.endswith("does not use so far")


def test_who_may_change_nothing_has_names_judged_that_name_no_file_and_those_in_use() -> None:
    used = "router { pamService: shop, saslConfigName: shop }"
    text = (
        "router { pamService: shop, saslConfigName: shop, oauthIssuer: i, oauthAudience: a, "
        "oauthJwks: 'https://login.example/keys' }\nlog { module: DEFAULT, outputFile: stdout }"
    )
    assert check_text(load(Path("R.conf"), used), text, "new.conf", may_change=False).plan is not None
    default = "router { saslConfigName: qdrouterd }"
    assert check_text(load(Path("R.conf"), ""), default, "new.conf", may_change=False).plan is not None


@pytest.mark.parametrize("may_change", [True, False])
def test_the_name_of_a_text_is_no_file(private: Path, *, may_change: bool) -> None:
    file = private / "tokens.json"
    file.chmod(0o660)
    texts = [
        [
            finding.message
            for finding in check_text(load(Path("R.conf"), ""), "[]", str(name), may_change=may_change).findings
        ]
        for name in (file, private / "absent.json")
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("mode", [0o606, 0o660])
@pytest.mark.parametrize("secure", ["", "yes"])
def test_who_may_change_nothing_is_told_no_rights_of_files(private: Path, mode: int, secure: str) -> None:
    file = private / "users"
    file.write_text("")
    head = f"router {{ usersFile: {file}, secureDefaults: {secure or 'no'} }}\n"
    accepts = "# trouter: accept writable-by-others: all of them may\nlog { module: AGENT }\n"
    present = load(Path("R.conf"), head + accepts)

    def found(*, may_change: bool) -> list[str]:
        return [str(each) for each in check_text(present, head + accepts, "new.conf", may_change=may_change).findings]

    file.chmod(0o600)
    told = found(may_change=False)
    assert not [text for text in told if "accepts writable-by-others" in text]
    file.chmod(mode)
    assert found(may_change=False) == told
    assert [text for text in found(may_change=True) if str(file) in text]


@pytest.mark.parametrize("secure", ["", SECURE])
def test_the_name_of_a_service_of_pam_is_no_path(private: Path, secure: str) -> None:
    report = check_text(load(Path("R.conf"), secure), f"router {{ pamService: {private}/leak }}\n", "new.conf")
    assert report.plan is None
    assert [(each.key, each.message) for each in report.findings] == [("pamService", "is a path, not a name")]


def test_who_may_change_nothing_has_no_file_of_cyrus_sasl_read(private: Path) -> None:
    (private / "leak.conf").write_text("sasldb_path: /of-another-program\n")
    text = f"router {{ saslConfigName: {private}/leak }}\n"
    report = check_text(load(Path("R.conf"), ""), text, "new.conf", may_change=False)
    assert report.plan is None
    assert "of-another-program" not in str(report)


@pytest.mark.parametrize("attribute", ["trustedCertsFile", "httpRootDir"])
def test_an_attribute_that_is_not_given_uses_no_file_called_none(attribute: str) -> None:
    present = load(Path("R.conf"), "listener { port: 0 }")
    report = check_text(present, f"listener {{ port: 0, {attribute}: None }}", "new.conf", may_change=False)
    assert [finding.message.partition(": the")[0] for finding in report.findings] == [attribute]
    null = f'[["listener", {{"port": 0, "{attribute}": null}}]]'
    assert check_text(present, null, "new.json", may_change=False).plan is not None


def test_a_text_is_read_once_also_to_hold_its_policy_to_expectations(monkeypatch: pytest.MonkeyPatch) -> None:
    present, texts = load(text="# none\n"), []

    def read(text: str, file: str, findings: Findings) -> list[Section]:
        texts.append(text)
        return parse_conf(text, file, findings)

    monkeypatch.setattr(import_module("trouter.config.load"), "parse_conf", read)
    assert check_text(present, "# one\n", "new.conf").plan is not None
    assert check_policy(present, "# two\n", "new.conf", '{"enforce": false, "expectations": []}').plan is not None
    assert texts == ["# one\n", "# two\n"]


@pytest.mark.parametrize("attribute", ["saslConfigName: {}/leak", "pamService: sshd", "oauthJwks: {}/tokens.json"])
def test_a_change_over_the_network_chooses_no_other_users(private: Path, attribute: str) -> None:
    (private / "leak.conf").write_text("sasldb_path: /of-another-program\n")
    text = SECURE.replace(" }", f", oauthIssuer: i, oauthAudience: a, {attribute.format(private)} }}")
    report = check_text(load(Path("R.conf"), SECURE), text, "new.conf")
    name = attribute.partition(":")[0]
    assert [f"router.{name}: management may not change it" in refusal for refusal in report.refusals] == [True]
    assert "of-another-program" not in str(report)
