"""octocatalog-diff compares catalogs of two environments that our master compiled, by the URLs of Puppet 3, 4 and of puppetserver 6.3."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.processes import OurAgent, clean_environment, master, run

TOOL = "/usr/bin/octocatalog-diff"

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which(TOOL) is None, reason="octocatalog-diff is not installed"),
]

# Who may ask for catalogs of facts that it gives itself: nobody, unless a site says who.
RULES = "path /puppet/v4/catalog\nallow web1.example.com\n"
ASKED = {"2": "POST /testing/catalog/", "3": "POST /puppet/v3/catalog/", "4": 'POST /puppet/v4/catalog"'}
PRODUCTION = 'file { "/tmp/same": ensure => directory } file { "/tmp/changed": content => "one ${facts[rack]}" }\n'
TESTING = PRODUCTION.replace("one", "two") + 'notify { "new": }\n'


@pytest.mark.parametrize("version", ASKED)
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
