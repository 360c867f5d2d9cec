"""Our agent against Debian's puppetserver 7.9.5 and 8.7, each unmodified."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from shared.data import plainyaml
from shared.ruby import find_ruby
from tests.interop.expected import (
    a_file_goes_to_the_bucket_and_comes_back,
    environments_are_chosen,
    report_of,
    stage_is_complete,
    tags_choose,
)
from tests.interop.pairs import older
from tests.interop.puppetserver import PUPPETSERVER_7, PUPPETSERVERS, RealServer, started
from tests.interop.stage import SITE
from tests.interop.test_real_agent_certificates import expire, serial_of, serials_in
from tests.support.processes import OurAgent, master
from tests.support.smoke import with_smoke

SHELF = Path(__file__).parents[1] / "bunraku" / "ruby_modules" / "shelf"

pytestmark = [
    pytest.mark.works_with("Servers of Puppet with this agent", "puppetserver 7.9.5 and 8.7, also with types in Ruby"),
    pytest.mark.interop,
    pytest.mark.slow,
]
SMOKE = pytest.mark.parametrize("server", with_smoke(PUPPETSERVERS, PUPPETSERVER_7), ids=lambda each: each.version, indirect=True)


@pytest.fixture(scope="module", params=PUPPETSERVERS, ids=lambda each: each.version)
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    if reason := request.param.why_not():
        pytest.skip(reason)
    # Not below pytest's own folder, which only root may enter: the server runs as its own user.
    root = Path(tempfile.mkdtemp(prefix="puppetserver-"))
    try:
        with started(root, request.param) as running:
            yield running
    finally:
        shutil.rmtree(root)


def certificate_of(agent: OurAgent) -> x509.Certificate:
    return x509.load_pem_x509_certificate(agent.certificate.read_bytes())


@SMOKE
def test_a_first_run_changes_and_a_second_has_nothing_to_do(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "web1")
    agent.settings["environment"] = "plain"
    before = len(server.asked)
    first = agent.test()
    assert first.code == 2, first.text
    stage = agent.root / "stage"
    stage_is_complete(stage, "ruby says Linux\n")
    assert "GET /puppet/v3/file_content/modules/stage/plain.txt 200" in server.asked[before:]
    second = agent.test()
    assert second.code == 0, second.text
    stored = report_of(server, agent)
    assert stored["host"] == "web1.example.com" and stored["report_format"] == 12 and stored["environment"] == "plain"


def test_types_and_providers_that_a_module_has_in_ruby_are_applied(server: RealServer, tmp_path: Path) -> None:
    if not find_ruby("auto"):
        pytest.skip("no ruby is installed")
    environment, shelf = server.root / "code/environments/with_ruby", tmp_path / "shelf"
    shutil.copytree(SHELF, environment / "modules/shelf")
    (environment / "manifests").mkdir()
    (environment / "manifests/site.pp").write_text(
        f"file {{ '{shelf}': ensure => directory }} jar {{ '{shelf}:plums': content => 'plums', colour => 'red', parts => ['b', 'a'] }}\n"
    )
    agent = server.agent(tmp_path, "ruby1")
    agent.settings["environment"] = "with_ruby"
    first = agent.test()
    assert first.code == 2 and "Jar[" in first, first.text
    assert plainyaml.loads((shelf / "plums").read_bytes()) == {"content": "PLUMS", "colour": "red", "parts": ["b", "a"]}
    second = agent.test()
    assert second.code == 0, second.text


@SMOKE
def test_a_static_catalogs_files_are_fetched_by_version_and_without_metadata(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "static1")
    before = len(server.asked)
    assert agent.test().code == 2
    asked = server.asked[before:]
    assert "GET /puppet/v3/static_file_content/modules/stage/files/plain.txt 200" in asked
    assert "GET /puppet/v3/static_file_content/modules/stage/files/tree/deep/b 200" in asked
    assert [each for each in asked if "/file_metadata" in each and "/plugin" not in each] == []
    assert (agent.root / "stage/tree/deep/b").read_text() == "b\n"
    assert agent.test().code == 0


def test_noop_says_what_would_change_and_changes_nothing(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "noop1")
    ran = agent.test("--noop")
    assert ran.code == 0 and "(noop)" in ran, ran.text
    assert not (agent.root / "stage").exists()
    report = report_of(server, agent)
    assert (report["noop"], report["noop_pending"], report["status"]) == (True, True, "unchanged")


def test_tags_choose_what_is_applied(server: RealServer, tmp_path: Path) -> None:
    tags_choose(server.agent(tmp_path, "tagged1"))


def test_agent_and_classifier_choose_environments(server: RealServer, tmp_path: Path) -> None:
    environments_are_chosen(server, tmp_path)


def test_an_agent_in_an_unknown_environment_is_sent_to_the_servers_own(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "reader2")
    ran = agent.test("--environment", "nowhere")
    assert ran.code == 2, ran.text
    assert "Environment 'nowhere' not found on server" in ran
    assert "restarting agent run with environment 'production'" in ran and "here is production" in ran
    assert report_of(server, agent)["environment"] == "production"


def test_a_compile_error_is_shown_with_its_place_and_ends_the_run(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "failing1")
    failed = agent.test()
    assert failed.code == 1, failed.text
    assert "Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation Error" in failed
    assert "not today (file: " in failed and "on node failing1.example.com" in failed
    assert report_of(server, agent)["status"] == "failed"


def test_a_run_without_a_new_catalog_applies_the_one_it_has(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "breaking1")
    assert agent.test().code == 2
    kept = agent.root / "stage" / "kept"
    kept.unlink()
    agent.facts["broken"] = "yes"
    failed = agent.test("--no-usecacheonfailure")
    assert failed.code == 1 and "broken by a fact" in failed and not kept.exists(), failed.text
    ran = agent.test("--usecacheonfailure")
    assert ran.code == 2 and "broken by a fact" in ran, ran.text
    assert kept.read_text() == "kept"
    assert report_of(server, agent)["cached_catalog_status"] == "on_failure"
    kept.unlink()
    assert agent.test("--use_cached_catalog").code == 2
    assert report_of(server, agent)["cached_catalog_status"] == "explicitly_requested"


def test_a_file_is_backed_up_fetched_compared_and_restored(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "reader3")
    assert agent.test().code == 2
    a_file_goes_to_the_bucket_and_comes_back(agent)


def test_facts_are_uploaded(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "reader4", {"rack": "r9"})
    assert agent.test().code == 2
    stored = server.root / "var/server_data/facts/reader4.example.com.json"
    stored.unlink()
    done = agent.puppet("facts", "upload")
    assert done.code == 0, done.text
    assert '"rack":"r9"' in stored.read_text()


def test_plugins_are_downloaded_with_their_content(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "reader8")
    missing = agent.puppet("plugin", "download")
    assert missing.code == 1 and "The CA certificates are missing from" in missing, missing.text
    assert agent.puppet("ssl", "bootstrap").code == 0
    first = agent.puppet("plugin", "download")
    assert first.code == 0 and "Downloaded these plugins: " in first and "facter/from_ruby.rb" in first, first.text
    assert (agent.root / "vardir/lib/facter/from_ruby.rb").read_text() == SITE["modules/stage/lib/facter/from_ruby.rb"]
    assert (agent.root / "vardir/facts.d/external.txt").read_text() == SITE["modules/stage/facts.d/external.txt"]
    second = agent.puppet("plugin", "download")
    assert second.code == 0 and "No plugins downloaded." in second, second.text
    elsewhere = agent.puppet("plugin", "download", "--environment", "nowhere")
    assert elsewhere.code == 1 and "Not all plugins could be downloaded" in elsewhere, elsewhere.text


def test_an_agent_waits_until_the_administrator_signs(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "manual1")
    waiting = agent.test("--waitforcert", "0")
    assert waiting.code == 1, waiting.text
    listed = server.ca("list")
    assert "manual1.example.com" in listed, listed.text
    signed = server.ca("sign", "--certname", "manual1.example.com")
    assert signed.code == 0, signed.text
    assert agent.test().code == 2


def test_ssl_submits_downloads_verifies_shows_and_cleans(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "manual2")
    missing = agent.puppet("ssl", "verify")
    assert missing.code == 1 and f"The CA certificates are missing from '{agent.ssl}/certs/ca.pem'" in missing, missing.text
    submitted = agent.puppet("ssl", "submit_request")
    assert submitted.code == 0 and "Submitted certificate request for 'manual2.example.com'" in submitted, submitted.text
    early = agent.puppet("ssl", "download_cert")
    assert early.code == 1 and "The certificate for 'manual2.example.com' has not yet been signed" in early, early.text
    assert server.ca("sign", "--certname", "manual2.example.com").code == 0
    assert "Downloaded certificate 'manual2.example.com' with fingerprint (SHA256)" in agent.puppet("ssl", "download_cert")
    verified = agent.puppet("ssl", "verify")
    assert verified.code == 0 and "Verified client certificate 'CN=manual2.example.com' fingerprint (SHA256)" in verified, verified.text
    assert verified.text.index("Verified CA certificate") < verified.text.index("Verified client certificate")
    assert "Subject: CN = manual2.example.com" in agent.puppet("ssl", "show").text.replace("CN=", "CN = ")
    again = agent.puppet("ssl", "bootstrap")
    assert again.code == 0 and "Completed SSL initialization" in again, again.text

    cleaned = agent.puppet("ssl", "clean", "--localca")
    assert cleaned.code == 0 and f"Removed private key {agent.key}" in cleaned, cleaned.text
    assert not agent.key.exists() and not agent.certificate.exists() and not (agent.ssl / "certs/ca.pem").exists()


def test_a_revoked_agent_is_refused_and_others_learn_of_it(server: RealServer, tmp_path: Path) -> None:
    agent, other = server.agent(tmp_path, "reader5"), server.agent(tmp_path, "reader6")
    assert agent.test().code == 2 and other.test().code == 2
    gone = serial_of(agent.certificate)
    revoked = server.ca("revoke", "--certname", "reader5.example.com")
    assert revoked.code == 0, revoked.text
    deadline = time.monotonic() + 60  # the server looks at its files every few seconds
    while (refused := agent.test()).code != 1 and time.monotonic() < deadline:
        time.sleep(2)
    assert refused.code == 1, refused.text
    assert "revoked" in refused.text or "certificate unknown" in refused.text.replace("_", " ").lower(), refused.text

    assert gone not in serials_in(other.ssl / "crl.pem")
    older(other.ssl / "crl.pem", 10)
    assert other.test("--crl_refresh_interval", "1").code == 2
    assert gone in serials_in(other.ssl / "crl.pem")


def test_our_master_below_the_real_ca_keeps_its_revocations_fresh(server: RealServer, tmp_path: Path) -> None:
    beside, gone = server.agent(tmp_path, "master3"), server.agent(tmp_path, "reader10")
    assert beside.test().code == 2 and gone.test().code == 2
    names = {"certname": beside.certname, "ssldir": str(beside.ssl), "hostcrl": str(tmp_path / "crl.pem")}
    with master(tmp_path / "ours", **names) as ours:
        ours.write({"manifests/site.pp": ""})
        conf = f"[master]\nca = false\nca_server = localhost\nca_port = {server.port}\ncrl_refresh_interval = 1s\n"
        (ours.root / "conf/puppet.conf").write_text(conf)
        ours.start()  # which it does not without a list
        serial = serial_of(gone.certificate)
        assert serial not in serials_in(tmp_path / "crl.pem")
        assert server.ca("revoke", "--certname", gone.certname).code == 0
        deadline = time.monotonic() + 60
        while serial not in serials_in(tmp_path / "crl.pem"):
            assert time.monotonic() < deadline, ours.log
            time.sleep(0.2)
        assert "Could not refresh" not in ours.log


def test_an_expired_certificate_is_named(server: RealServer, tmp_path: Path) -> None:
    agent = server.agent(tmp_path, "reader7")
    assert agent.test().code == 2
    expire(agent.certificate, server.root / "ca")
    ran = agent.test()
    assert ran.code == 1 and "expired" in ran, ran.text


RENEWAL = "POST /puppet-ca/v1/certificate_renewal"
SOON = ("--hostcert_renewal_interval", "70d")  # the server makes certificates for 60 days for those who say that they renew them


def test_a_certificate_is_renewed_before_it_ends(server: RealServer, tmp_path: Path) -> None:
    if server.installed is PUPPETSERVER_7:
        pytest.skip("puppetserver 7 renews no certificates")
    agent = server.agent(tmp_path, "reader9")
    assert agent.test().code == 2
    first = certificate_of(agent)
    assert first.not_valid_after_utc - datetime.now(UTC) < timedelta(days=61)
    before = len(server.asked)
    renewing = agent.test(*SOON)
    assert renewing.code == 2 and "Renewed the certificate of reader9.example.com" in renewing, renewing.text
    assert f"{RENEWAL} 200" in server.asked[before:]
    second = certificate_of(agent)
    assert second.serial_number > first.serial_number and second.public_key() == first.public_key()
    assert second.not_valid_after_utc >= first.not_valid_after_utc  # whole seconds
    before = len(server.asked)
    last = agent.test()
    assert last.code == 2 and "expire" not in last, last.text
    assert not [each for each in server.asked[before:] if RENEWAL in each]


def test_a_server_that_renews_nothing_keeps_no_run_from_going_on(server: RealServer, tmp_path: Path) -> None:
    if server.installed is not PUPPETSERVER_7:
        pytest.skip("this one renews certificates")
    agent = server.agent(tmp_path, "reader9")
    assert agent.test().code == 2
    first = certificate_of(agent)
    ran = agent.test("--hostcert_renewal_interval", "10y")
    assert ran.code == 2 and "Could not renew the certificate, going on with the old one" in ran, ran.text
    assert f"{RENEWAL} 403" in server.asked
    assert certificate_of(agent) == first
