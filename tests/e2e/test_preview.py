"""A preview of what a node of a real run gets: facts, trusted data and exported resources as its last run had them."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from bunraku.commands.preview import main
from tests.support.pair import NAME, Pair

pytestmark = pytest.mark.slow

MANIFEST = """
node default {
  notify { "${trusted['authenticated']} ${trusted['certname']} ${trusted['extensions']['pp_role']} ${facts['kernel']}": }
  @@notify { "exported by ${trusted['certname']}": }
}
"""
CSR_ATTRIBUTES = "extension_requests:\n  pp_role: db\n"


async def test_a_preview_compiles_with_facts_and_trusted_data_of_the_last_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = Pair(tmp_path, manifest=MANIFEST)
    attributes = tmp_path / "agent" / "csr_attributes.yaml"
    attributes.parent.mkdir(parents=True)
    attributes.write_text(CSR_ATTRIBUTES)
    environments = tmp_path / "master/code/environments"
    async with pair.mastered(store="auto"):
        run = await pair.run()
        assert run.code in (0, 2)
        shutil.copytree(environments / "production", environments / "feature")
        changed = MANIFEST.replace("@@notify", "notify { 'one more': }\n  @@notify")
        (environments / "feature/manifests/site.pp").write_text(changed)
        root = tmp_path / "master"
        folders = [f"--confdir={root}", f"--codedir={root}/code", f"--vardir={root}/var", f"--logdir={root}/log", f"--rundir={root}/run"]
        sides = ["--from", "production", "--to", "feature", "--json", "--workers", "1", "--certname", "localhost"]
        for selection in (["--all"], ["--query", 'nodes[certname] { facts { name = "kernel" and value = "Linux" } }']):
            capsys.readouterr()
            code = await asyncio.to_thread(main, [*sides, *selection, *folders])
            result = json.loads(capsys.readouterr().out)
            assert (code, result["nodes"], result["errors"]) == (2, {NAME: "changed"}, [])
            assert [change["subject"] for change in result["changes"]] == ["Notify[one more]"]
        (environments / "feature/manifests/site.pp").write_text(MANIFEST.replace('notify { "$', 'notify { "changed: $'))
        capsys.readouterr()
        await asyncio.to_thread(main, [*sides, "--all", *folders])
        subjects = {change["subject"] for change in json.loads(capsys.readouterr().out)["changes"]}
        said = f"remote {NAME} db Linux"
        assert subjects == {f"Notify[{said}]", f"Notify[changed: {said}]"}
