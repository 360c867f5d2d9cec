"""puppetdb.conf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from master.puppetdb.configuration import PuppetDbConfiguration, read_puppetdb_conf
from master.puppetdb.configured import puppetdb_client
from shared.errors import ConfigError
from shared.settings import Conf, MasterSettings, load


def read(folder: Path, text: str) -> PuppetDbConfiguration:
    path = folder / "puppetdb.conf"
    path.write_text(text)
    return read_puppetdb_conf(path)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", {}),
        ("[main]\n# server_urls = https://no\n; x\n\nunknown = 1\n", {}),
        ("[other]\nserver_urls = https://no\n", {}),
        ("[main]\nserver_urls = https://a:1/, https://b:2\n", {"server_urls": ("https://a:1", "https://b:2")}),
        ("[main ]\n  server_urls=https://[::1]:8081\n", {"server_urls": ("https://[::1]:8081",)}),
        ("[main]\nserver_url_timeout = 5\nsoft_write_failure = true\n", {"server_url_timeout": 5, "soft_write_failure": True}),
        ("[main]\ninclude_unchanged_resources = true\nsticky_read_failover = true\nverify_client_certificate = false\n",
         {"include_unchanged_resources": True, "sticky_read_failover": True, "verify_client_certificate": False}),
        ("[main]\nserver_urls = https://a,https://b\ncommand_broadcast = true\nmin_successful_submissions = 2\n",
         {"server_urls": ("https://a", "https://b"), "command_broadcast": True, "min_successful_submissions": 2}),
        ("[main]\nsubmit_only_server_urls = https://c:8081\n", {"submit_only_server_urls": ("https://c:8081",)}),
    ],
)  # fmt: skip
def test_a_configuration_is_read(tmp_path: Path, text: str, options: dict[str, Any]) -> None:
    assert read(tmp_path, text) == PuppetDbConfiguration(**options)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    configuration = read_puppetdb_conf(tmp_path / "puppetdb.conf")
    assert configuration.server_urls == ("https://puppetdb:8081",)
    assert configuration.server_url_timeout == configuration.longest_request == 30


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("server_urls = https://a\n", "Setting 'server_urls = https://a' is illegal outside of section in PuppetDB config FILE:1"),
        ("[main]\nwhat\n", "Unparseable line 'what' in PuppetDB config FILE:2"),
        ("[main]\nserver_urls = http://a\n", "PuppetDB 'server_urls' must be https, found 'http://a'"),
        ("[main]\nserver_urls = https://a/pdb\n", "PuppetDB 'server_urls' cannot contain URL paths, found 'https://a/pdb'"),
        ("[main]\nserver_urls = https://a:port\n", "Error parsing URL 'https://a:port' in PuppetDB 'server_urls', error message was "),
        ("[main]\nsoft_write_failure = yes\n", 'invalid value for Boolean: "yes" (soft_write_failure)'),
        ("[main]\nserver_url_timeout = soon\n", 'invalid value for server_url_timeout: "soon"'),
        ("[main]\nserver_urls = https://a,https://b\ncommand_broadcast = true\nmin_successful_submissions = 2\nsoft_write_failure = true",
         "soft_write_failure cannot be enabled when min_successful_submissions is greater than 1"),
        ("[main]\nserver_urls = https://a,https://b\nmin_successful_submissions = 2\n",
         "command_broadcast must be set to true to use min_successful_submissions"),
        ("[main]\ncommand_broadcast = true\nmin_successful_submissions = 2\n",
         "min_successful_submissions (2) must be less than or equal to the number of server_urls (1)"),
        ("[main]\nserver_urls = https://a\nsubmit_only_server_urls = https://a/\n",
         'Server URLs must be in either server_urls or submit_only_server_urls, not both. (["https://a"] are in both)'),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_file_is_said(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as failed:
        read(tmp_path, text)
    assert failed.value.message.startswith(
        f"Could not configure PuppetDB terminuses: {problem.replace('FILE', f'{tmp_path}/puppetdb.conf')}"
    )
    assert failed.value.where is not None and failed.value.where.file == f"{tmp_path}/puppetdb.conf"


def test_retired_settings_are_warned_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path, "[main]\nserver = puppetdb\nport = 8081\n")
    assert [record.getMessage() for record in caplog.records] == [
        f"Setting '{line}' is retired: use 'server_urls' instead. Defaulting to 'server_urls=https://puppetdb:8081'."
        for line in ("server = puppetdb", "port = 8081")
    ]


def test_another_backend_of_storeconfigs_is_refused_by_name(tmp_path: Path) -> None:
    flags = {"confdir": str(tmp_path), "storeconfigs": "true", "storeconfigs_backend": "active_record"}
    settings = load(MasterSettings, section="master", flags=flags, conf=Conf())
    with pytest.raises(ConfigError, match="Could not set storeconfigs_backend to 'active_record': that is not supported here"):
        puppetdb_client(settings)
