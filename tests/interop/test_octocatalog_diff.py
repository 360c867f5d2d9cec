"""octocatalog-diff compares catalogs that our master compiled, by three versions of its URLs, and takes facts from our store."""

from __future__ import annotations

import shutil
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.support.ports import reserved_port
from tests.support.processes import OurAgent, clean_environment, master, run
from tests.support.smoke import with_smoke

TOOL = "/usr/bin/octocatalog-diff"
STORED = 30.0  # seconds until what an agent sent is stored

pytestmark = [
    pytest.mark.works_with("Deployment and tools for code", "octocatalog-diff 2.1, also with facts and catalogs from the store"),
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which(TOOL) is None, reason="octocatalog-diff is not installed"),
]

# Who may ask for catalogs of facts that it gives itself: nobody, unless a site says who.
RULES = "path /puppet/v4/catalog\nallow web1.example.com\n"
ASKED = {"2": "POST /testing/catalog/", "3": "POST /puppet/v3/catalog/", "4": 'POST /puppet/v4/catalog"'}
PRODUCTION = 'file { "/tmp/same": ensure => directory } file { "/tmp/changed": content => "one ${facts[rack]}" }\n'
TESTING = PRODUCTION.replace("one", "two") + 'notify { "new": }\n'


@pytest.mark.parametrize("version", with_smoke(ASKED, "4"))
def test_it_shows_what_another_environment_would_change(tmp_path: Path, version: str) -> None:
    with master(tmp_path / "master", autosign="true") as process:
        process.write({"manifests/site.pp": PRODUCTION, "../testing/manifests/site.pp": TESTING})
        (tmp_path / "master/conf/auth.conf").write_text(RULES)
        process.start()
        (tmp_path / "web1").mkdir()
        agent = OurAgent(tmp_path / "web1", process.port, "web1.example.com", {"key_type": "rsa", "keylength": "2048"})
        assert agent.puppet("ssl", "bootstrap").code == 0
        (tmp_path / "facts.yaml").write_text("---\nname: web1.example.com\nvalues:\n  rack: r7\n")
        options = {
            "hostname": "web1.example.com", "from": "production", "to": "testing", "basedir": tmp_path,
            "fact-file": tmp_path / "facts.yaml", "puppet-master": f"localhost:{process.port}", "puppet-master-api-version": version,
            "puppet-master-ssl-ca": agent.ssl / "certs/ca.pem", "puppet-master-ssl-client-cert": agent.certificate,
            "puppet-master-ssl-client-key": agent.key,
        }  # fmt: skip
        words = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        compared = run([TOOL, "--no-color", "--quiet", *words], clean_environment(HOME=str(tmp_path)))
        assert compared.code == 2, compared.text  # 2: there are differences
        assert "File[/tmp/changed]" in compared and "- one r7" in compared and "+ two r7" in compared, compared.text
        assert "+ Notify[new]" in compared and "/tmp/same" not in compared
        assert ASKED[version] in process.log


@pytest.mark.skipif(shutil.which("puppet", path="/usr/bin") is None, reason="Debian's puppet is not installed")
def test_it_takes_facts_and_catalogs_from_the_store(tmp_path: Path) -> None:
    store = {"store": "sqlite", "store_bindaddress": "127.0.0.1", "store_socket": str(tmp_path / "s")}
    with reserved_port() as port, master(tmp_path / "master", autosign="true", store_port=str(port), **store) as process:
        process.write({"manifests/site.pp": 'notify { "kept": } notify { "changed": message => "zero ${facts[rack]}" }'})
        process.start()
        (tmp_path / "web1").mkdir()
        rsa = {"key_type": "rsa", "keylength": "2048"}
        agent = OurAgent(tmp_path / "web1", process.port, "web1.example.com", rsa, {"rack": "r7"})
        ran = agent.test()
        assert ran.code == 2, ran.text
        wait_until_stored(port, agent, "catalogs/web1.example.com", b"zero r7")
        for name, text in {"from": PRODUCTION, "to": TESTING}.items():
            (tmp_path / name / "manifests").mkdir(parents=True)
            (tmp_path / name / "manifests/site.pp").write_text(text)
        options = {
            "hostname": "web1.example.com", "bootstrapped-from-dir": tmp_path / "from", "bootstrapped-to-dir": tmp_path / "to",
            "basedir": tmp_path, "puppet-binary": "/usr/bin/puppet", "puppetdb-url": f"https://localhost:{port}",
            "puppetdb-ssl-ca": agent.ssl / "certs/ca.pem", "puppetdb-ssl-client-cert": agent.certificate,
            "puppetdb-ssl-client-key": agent.key,
        }  # fmt: skip
        words = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        folders = run([TOOL, "--no-color", "--quiet", "--no-enc", *words], clean_environment(HOME=str(tmp_path)))
        (tmp_path / "to/manifests/site.pp").write_text('notify { "kept": } notify { "changed": message => "two ${facts[rack]}" }')
        stored = ["--from-puppetdb", "--ignore-attr", "kind,parameters::alias"]  # what a PuppetDB does not keep, and what it adds
        with_stored = run([TOOL, "--no-color", "--quiet", "--no-enc", *stored, *words], clean_environment(HOME=str(tmp_path)))
    assert folders.code == 2, folders.text
    assert "- one r7" in folders and "+ two r7" in folders and "+ Notify[new]" in folders, folders.text
    assert with_stored.code == 2, with_stored.text
    assert "- zero r7" in with_stored and "+ two r7" in with_stored and "kept" not in with_stored, with_stored.text


def wait_until_stored(port: int, agent: OurAgent, path: str, text: bytes) -> None:
    """Ask the store until an answer has a text: a command is acknowledged before it is stored."""
    context = ssl.create_default_context(cafile=agent.ssl / "certs/ca.pem")
    context.load_cert_chain(agent.certificate, agent.key)
    deadline = time.monotonic() + STORED
    while True:
        try:
            with urllib.request.urlopen(f"https://localhost:{port}/pdb/query/v4/{path}", timeout=30, context=context) as answer:
                if text in answer.read():
                    return
        except urllib.error.HTTPError as err:
            assert err.code == 404, err
        assert time.monotonic() < deadline, f"the store does not have {path}"
        time.sleep(0.1)
