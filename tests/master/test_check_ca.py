"""What `puppet master --check` finds about the CA: what keeps agents from renewing, and what an adopted CA lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from master.checks import certificates, configuration
from master.checks.findings import Finding
from shared.settings import MasterSettings, load
from tests.support.ca_site import Site, empty_site, key

__all__ = ["empty_site"]

# The rules of puppetserver 7 and 8 about the CA, as far as they matter here.
RULE = '{ match-request: { path: "%s", type: path, method: [%s] }, %s, sort-order: 500, name: "%s" }'
OF_7 = RULE % ("/puppet-ca/v1/certificate_request", "get, put", "allow-unauthenticated: true", "csr")
OF_8 = RULE % ("/puppet-ca/v1/certificate_renewal", "post", 'allow: "*"', "renewal")
DENY = '{ match-request: { path: "/", type: path }, deny: "*", sort-order: 999, name: "deny all" }'
FORMS = {
    "puppetserver 7": (f"authorization: {{ version: 1, rules: [{OF_7}, {DENY}] }}", False),
    "puppetserver 8": (f"authorization: {{ version: 1, rules: [{OF_7}, {OF_8}, {DENY}] }}", True),
    "3.8": ("path /\nauth any\n", True),
    "3.8 that denies": ("path /puppet-ca/v1\nauth any\nallow admin.test\n", False),
}


def findings(tmp_path: Path, **flags: str) -> list[Finding]:
    places = {name: str(tmp_path / name) for name in ("confdir", "vardir", "rundir", "logdir")}
    settings = load(MasterSettings, section="master", flags={**places, "certname": "localhost", "store": "none", **flags})
    return configuration.check(settings)


@pytest.mark.parametrize("form", FORMS)
def test_an_auth_conf_that_refuses_renewals_is_named(tmp_path: Path, form: str) -> None:
    text, allows = FORMS[form]
    path = tmp_path / "confdir" / "auth.conf"
    path.parent.mkdir()
    path.write_text(text)
    found = [finding for finding in findings(tmp_path) if "renew" in finding.message]
    assert [finding.message for finding in found] == ([] if allows else [f"{path} does not let agents renew their certificates"])
    assert all("/puppet-ca/v1/certificate_renewal" in finding.hint for finding in found)
    assert not [finding for finding in findings(tmp_path, allow_auto_renewal="false") if "renew" in finding.message]


@pytest.mark.parametrize("folder", ["confdir", "confdir/conf.d", "confdir/puppetserver/conf.d", "puppetserver/conf.d"])
def test_settings_of_puppetservers_ca_that_are_not_read_are_named(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder / "ca.conf"
    path.parent.mkdir(parents=True)
    path.write_text(
        "certificate-authority: {\n  # allow-subject-alt-names: true\n  allow-auto-renewal: false\n  auto-renewal-cert-ttl: 60d\n}\n"
    )
    (tmp_path / "confdir").mkdir(exist_ok=True)
    (tmp_path / "confdir" / "puppet.conf").write_text("[master]\nauto_renewal_cert_ttl = 60d\n")
    found = [finding for finding in findings(tmp_path) if str(path) in finding.message]
    assert [finding.message for finding in found] == [f"The CA's setting allow-auto-renewal in {path} is not read"]
    assert found[0].hint == f"Set allow_auto_renewal in {tmp_path}/confdir/puppet.conf; here it is True."


def settings_of(site: Site, tmp_path: Path) -> MasterSettings:
    places = {name: str(tmp_path / name) for name in ("confdir", "vardir", "rundir", "logdir")}
    flags = {**places, "ssldir": str(site.ssldir.root), "certname": site.ssldir.certname, "store": "none"}
    return load(MasterSettings, section="master", flags=flags)


def test_an_inventory_from_an_old_back_up_is_named(empty_site: Site, tmp_path: Path) -> None:
    authority = empty_site.bootstrap()
    old = empty_site.files.cert_inventory.read_bytes()
    for name in ("web1", "web2"):
        authority.issue(name, key().public_key(), by="t")
    settings = settings_of(empty_site, tmp_path)
    message = f"{empty_site.files.cert_inventory} lacks certificates of signed/: web1, web2"
    assert message not in [finding.message for finding in certificates.check(settings, empty_site.clock())]
    empty_site.files.cert_inventory.write_bytes(old)
    (found,) = [finding for finding in certificates.check(settings, empty_site.clock()) if finding.message == message]
    assert "puppet cert reinventory" in found.hint
    empty_site.registry().reinventory(by="t")
    assert message not in [finding.message for finding in certificates.check(settings, empty_site.clock())]


def test_an_older_revocation_list_is_an_error(empty_site: Site, tmp_path: Path) -> None:
    authority = empty_site.bootstrap()
    old = empty_site.files.cacrl.read_bytes()
    authority.issue("web1", key().public_key(), by="t")
    authority.revoke("web1", by="t")
    empty_site.files.cacrl.write_bytes(old)
    (found,) = [
        finding for finding in certificates.check(settings_of(empty_site, tmp_path), empty_site.clock()) if finding.severity == "error"
    ]
    assert "is older than one that was in use" in found.message and f">> {empty_site.files.cacrl}" in found.hint


def test_a_certificate_of_this_host_without_its_key_is_an_error(empty_site: Site, tmp_path: Path) -> None:
    empty_site.bootstrap()
    settings = settings_of(empty_site, tmp_path)
    for path in (settings.hostcert, settings.hostprivkey):  # as after 'puppet cert adopt'
        path.unlink()
    (found,) = [finding for finding in certificates.check(settings, empty_site.clock()) if finding.severity == "error"]
    assert found.message == f"This host, {settings.certname}, has a certificate, but not its key {settings.hostprivkey}"
    assert f"puppet cert clean --force {settings.certname}" in found.hint
