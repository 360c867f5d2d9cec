"""octocatalog-diff compares the catalogs of two environments that our master compiled, in the URLs of Puppet 3 and those of 4 and later."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.processes import OurAgent, clean_environment, master, run

TOOL = "/usr/bin/octocatalog-diff"

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which(TOOL) is None, reason="octocatalog-diff is not installed"),
]

PRODUCTION = 'file { "/tmp/same": ensure => directory } file { "/tmp/changed": content => "one ${facts[rack]}" }\n'
TESTING = PRODUCTION.replace("one", "two") + 'notify { "new": }\n'


@pytest.mark.parametrize("version", ["2", "3"])
def test_it_shows_what_another_environment_would_change(tmp_path: Path, version: str) -> None:
    with master(tmp_path / "master", autosign="true") as process:
        process.write({"manifests/site.pp": PRODUCTION, "../testing/manifests/site.pp": TESTING})
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
        assert ("POST /testing/catalog/" if version == "2" else "POST /puppet/v3/catalog/") in process.log
