"""A preview of what a node of a real run gets: facts, trusted data and exported resources as its last run had them."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from bunraku.commands.preview import main
from shared.errors import PuppetError
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


async def test_a_preview_has_the_classes_of_the_last_run_although_the_classifier_says_others_now(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = Pair(tmp_path, manifest="node default { }")
    pair.write("auth.conf", RULE)
    modules = {name: f'class {name} {{ notify {{ "{name} ${{team}} ${{kernel}}": MORE }} }}' for name in ("before", "now")}
    for environment, more in (("production", ""), ("feature", "message => 'm'")):
        pair.write(f"code/environments/{environment}/manifests/site.pp", "node default { }")
        for name, text in modules.items():
            pair.write(f"code/environments/{environment}/modules/{name}/manifests/init.pp", text.replace("MORE", more))
    enc = tmp_path / "enc"
    enc.write_text("#!/bin/sh\necho '{classes: {before: {}}, parameters: {team: blue}}'\n")
    enc.chmod(0o755)
    root, agent = tmp_path / "master", tmp_path / "agent"
    async with pair.mastered(store="none", node_terminus="exec", external_nodes=str(enc)):
        assert (await pair.run()).code in (0, 2)
        enc.write_text("#!/bin/sh\necho '{classes: {now: {}}, parameters: {team: red}}'\n")
        here = [f"--confdir={root}", f"--codedir={root}/code", f"--vardir={root}/var", f"--logdir={root}/log", f"--rundir={root}/run"]
        here += ["--certname", "localhost", "--workers", "1", "--node_terminus", "exec", "--external_nodes", str(enc)]
        there = [f"--confdir={agent}", f"--vardir={agent}/var", f"--logdir={agent}/log", f"--rundir={agent}/run", f"--certname={NAME}"]
        there += ["--server", "localhost", "--masterport", str(pair.port)]
        for places in (here, there):
            for words, subject in (([], "Notify[before blue Linux]"), (["--classification", "current"], "Notify[now red Linux]")):
                capsys.readouterr()
                await asyncio.to_thread(main, ["--from", "production", "--to", "feature", "--json", "--all", *words, *places])
                result = json.loads(capsys.readouterr().out)
                assert [change["subject"] for change in result["changes"]] == [subject]
                assert (result["classified_now"], result["elsewhere"]) == ([], [])


RULE = f"path /puppet/v1/preview\nauth yes\nallow {NAME}\n"


async def test_a_machine_without_a_shell_on_the_master_may_ask_it_for_a_preview(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = Pair(tmp_path, manifest="notify { 'same': }")
    pair.write("auth.conf", RULE)
    pair.write("code/environments/feature/manifests/site.pp", "notify { 'same': message => $trusted['certname'] }")
    pair.write("code/environments/broken/manifests/site.pp", "fail('no')")
    root = tmp_path / "agent"
    folders = [f"--confdir={root}", f"--vardir={root}/var", f"--logdir={root}/log", f"--rundir={root}/run", f"--certname={NAME}"]
    async with pair.mastered(store="auto", max_previews="2"):
        assert (await pair.run()).code in (0, 2)
        asking = [*folders, "--server", "localhost", "--masterport", str(pair.port), "--from", "production"]

        async def preview(*words: str) -> tuple[int, str, str]:
            capsys.readouterr()
            try:
                code = await asyncio.to_thread(main, [*asking, *words])
            except PuppetError as err:
                return 1, "", str(err)
            said = capsys.readouterr()
            return code, said.out, said.err

        for selection in (["--all"], ["--nodes", NAME]):
            code, out, _ = await preview("--to", "feature", "--json", *selection)
            result = json.loads(out)
            assert (code, result["nodes"]) == (2, {NAME: "changed"})
            assert [(change["subject"], change["new"]) for change in result["changes"]] == [("Notify[same]", NAME)]
        page = tmp_path / "preview.html"
        code, out, _ = await preview("--to", "broken", "--all", "--html", str(page))
        assert (code, "new error: Evaluation Error" in out, page.exists()) == (4, True, True)
        code, _, error = await preview("--to", "nowhere", "--all")
        assert code == 1 and "with 404" in error and "Could not find environment" in error
        code, _, error = await preview("--to", "feature", "--all", "--repo", "/srv/control")
        assert code == 1 and "A preview by --server takes no --repo" in error
