"""The puppet agents 7.23 and 8.10 with a static catalog of our master."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interop.stage import AgentOf
from tests.support.processes import master

pytestmark = [
    pytest.mark.works_with("Agents of Puppet with this master", "7.23 and 8.10: static catalogs"),
    pytest.mark.interop,
    pytest.mark.slow,
]

MANIFEST = """
file { "${facts['stage_root']}": ensure => directory }
file { "${facts['stage_root']}/plain": source => 'puppet:///modules/stage/plain.txt' }
file { "${facts['stage_root']}/tree": ensure => directory, source => 'puppet:///modules/stage/tree', recurse => true }
file { "${facts['stage_root']}/outside": source => 'puppet:///modules/elsewhere/f' }
"""
SITE = {
    "manifests/site.pp": MANIFEST,
    "modules/stage/files/plain.txt": "plain text\n",
    "modules/stage/files/tree/a b": "a\n",
    "modules/stage/files/tree/deep/b": "b\n",
}
ASKED = [
    "/puppet/v3/static_file_content/modules/stage/files/plain.txt",
    "/puppet/v3/static_file_content/modules/stage/files/tree/a%20b",
    "/puppet/v3/static_file_content/modules/stage/files/tree/deep/b",
    "/puppet/v3/file_metadata/modules/elsewhere/f",
    "/puppet/v3/file_content/modules/elsewhere/f",
]


def test_a_real_agent_asks_for_no_metadata_of_what_is_inlined(tmp_path: Path, agent_of: AgentOf) -> None:
    commands = {"code_id_command": tmp_path / "id", "code_content_command": tmp_path / "content"}
    (tmp_path / "id").write_text("#!/bin/sh\necho v1\n")
    (tmp_path / "content").write_text(f'#!/bin/sh\ntest "$2" = v1 && exec cat "{tmp_path}/v1/$3"\n')
    for program in commands.values():
        program.chmod(0o755)
    with master(tmp_path / "master", autosign="true", **{name: str(path) for name, path in commands.items()}) as process:
        process.write(SITE)
        process.write({"../../modules/elsewhere/files/f": "no version\n"})
        for name, text in SITE.items():
            (tmp_path / "v1" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "v1" / name).write_text(text)
        process.start()
        agent = agent_of(process)
        root = agent.root
        first = agent.test()
        assert first.code == 2, first.text + process.log
        process.until_logged("Compiled static catalog for web1.example.com")
        asked = re.findall(r'"GET (/puppet/v3/(?:static_file_content|file_\w+)/modules[^?" ]*)', process.log)
        assert asked == ASKED
        assert (root / "stage/plain").read_text() == "plain text\n"
        assert (root / "stage/tree/a b").read_text() == "a\n"
        assert (root / "stage/tree/deep/b").read_text() == "b\n"
        assert (root / "stage/outside").read_text() == "no version\n"
        second = agent.test()
        assert second.code == 0, second.text
        assert len(re.findall(r'"GET /puppet/v3/file_metadata/modules/stage', process.log)) == 0
