"""A preview of what a node of a real run gets: facts, trusted data and exported resources as its last run had them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bunraku.commands.preview import main
from master.pools.worker_process import Worker
from master.wiring import running
from shared.errors import PuppetError
from shared.settings import MasterSettings, load
from tests.support.pair import NAME, Pair
from tests.support.waiting import until
from tests.support.wired_site import WiredSite

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

        async def preview(*words: str) -> tuple[int, dict[str, Any]]:
            capsys.readouterr()
            code = await asyncio.to_thread(main, [*sides, *words, *folders])
            return code, json.loads(capsys.readouterr().out)

        async with asyncio.timeout(60):
            while not (await preview("--all"))[1]["nodes"]:
                pass  # the store takes commands behind the answers to agents
        for selection in (["--all"], ["--query", 'nodes[certname] { facts { name = "kernel" and value = "Linux" } }']):
            code, result = await preview(*selection)
            assert (code, result["nodes"], result["errors"]) == (2, {NAME: "changed"}, [])
            assert [change["subject"] for change in result["changes"]] == ["Notify[one more]"]
        (environments / "feature/manifests/site.pp").write_text(MANIFEST.replace('notify { "$', 'notify { "changed: $'))
        subjects = {change["subject"] for change in (await preview("--all"))[1]["changes"]}
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
    async with pair.mastered(store="none", node_terminus="exec", external_nodes=str(enc), node_cache_terminus="write_only_yaml"):
        assert (await pair.run()).code in (0, 2)
        enc.write_text("#!/bin/sh\necho '{classes: {now: {}}, parameters: {team: red}}'\n")
        here = [f"--confdir={root}", f"--codedir={root}/code", f"--vardir={root}/var", f"--logdir={root}/log", f"--rundir={root}/run"]
        here += ["--certname", "localhost", "--workers", "1", "--node_terminus", "exec", "--external_nodes", str(enc)]
        here += ["--node_cache_terminus", "write_only_yaml"]
        there = [f"--confdir={agent}", f"--vardir={agent}/var", f"--logdir={agent}/log", f"--rundir={agent}/run", f"--certname={NAME}"]
        there += ["--server", "localhost", "--masterport", str(pair.port)]
        for places in (here, there):
            for words, subject in (([], "Notify[before blue Linux]"), (["--classification", "current"], "Notify[now red Linux]")):
                capsys.readouterr()
                await asyncio.to_thread(main, ["--from", "production", "--to", "feature", "--json", "--all", *words, *places])
                result = json.loads(capsys.readouterr().out)
                assert [change["subject"] for change in result["changes"]] == [subject]
                assert (result["classified_now"], result["elsewhere"]) == ([], [])


@asynccontextmanager
async def site(root: Path, **settings: str) -> AsyncIterator[WiredSite]:
    """A master that makes previews for agent1, with two environments; catalogs of `feature` wait until there is a file `go_on`."""
    program = root / "wait"
    program.write_text(f"#!/bin/sh\nnice >> {root}/niceness\nwhile [ ! -e {root}/go_on ]; do sleep 0.05; done\n")
    program.chmod(0o755)
    for name, text in (("production", "notify { 'a': }"), ("feature", f"generate('{program}')\nnotify {{ 'b': }}")):
        path = root / "conf/code/environments" / name / "manifests/site.pp"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (root / "conf/auth.conf").write_text(RULE.replace(NAME, "agent1"))
    flags = {
        "confdir": str(root / "conf"), "vardir": str(root / "var"), "rundir": str(root / "run"), "logdir": str(root / "log"),
        "certname": "localhost", "autosign": "true", "key_type": "ec", "bindaddress": "127.0.0.1", "masterport": "0", "store": "none",
        **dict.fromkeys(("idle_timeout", "header_timeout", "handshake_timeout", "body_timeout", "write_timeout"), "1h"), **settings,
    }  # fmt: skip
    loaded = load(MasterSettings, section="master", flags=flags)
    async with running(loaded) as master:
        wired = WiredSite(root, loaded, master)
        try:
            yield wired
        finally:
            for client in wired.open:
                await client.close()


def compiling(title: str) -> dict[int, int]:
    """Return the niceness of the processes of this one that have a title, by their number."""
    processes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid() and (folder / "cmdline").read_bytes().rstrip(b"\0").decode() == title:
                processes[int(folder.name)] = int(fields[16])
    return processes


AGENTS = 6


async def test_the_next_preview_may_be_asked_for_when_the_result_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish = Worker.finish

    async def finish_slowly(worker: Worker) -> None:
        await asyncio.sleep(1)
        await finish(worker)

    monkeypatch.setattr(Worker, "finish", finish_slowly)
    async with site(tmp_path, preview_workers="1", max_previews="1") as wired:
        (tmp_path / "go_on").touch()
        client, other = [await wired.client("agent1") for _ in range(2)]
        assert (await wired.catalog(client, "agent1", {})).status == 200
        body = b'{"from": "production", "to": "feature", "all": true}'
        head = (
            f"POST /puppet/v1/preview HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        client.writer.write(head.encode() + body)
        async with asyncio.timeout(120):
            await client.reader.readuntil(b'"result"')  # as `puppet preview --server`, which does not wait for the end of the answer
        other.timeout = 120.0
        answer = await other.ask("POST", "/puppet/v1/preview", body, Content_Type="application/json")
        assert answer.status == 200, answer.text


async def test_a_preview_takes_only_processes_of_its_own_which_have_a_lower_priority_than_those_of_agents(tmp_path: Path) -> None:
    async with site(tmp_path, compile_workers="2", preview_workers="2", max_previews="1") as wired:
        agents = {f"agent{number}": await wired.client(f"agent{number}") for number in range(1, AGENTS + 1)}
        for client in agents.values():
            client.timeout = 120.0

        async def run_all() -> None:
            """Let all agents get a catalog at the same time."""
            answers = await asyncio.gather(*(wired.catalog(client, name, {"n": name}) for name, client in agents.items()))
            assert {answer.status for answer in answers} == {200}

        await run_all()
        body = b'{"from": "production", "to": "feature", "all": true}'
        asking = [await wired.client("agent1") for _ in range(2)]
        for client in asking:
            client.timeout = 300.0
        preview = asyncio.create_task(asking[0].ask("POST", "/puppet/v1/preview", body, Content_Type="application/json"))
        try:
            async with asyncio.timeout(120):
                await until(lambda: len(read_lines(tmp_path / "niceness")) == 2)
                # Its two processes are at work. Agents wait for none of them, and it gets no third one.
                for _ in range(3):
                    await run_all()
                refused = await asking[1].ask("POST", "/puppet/v1/preview", body, Content_Type="application/json")
            assert refused.status == 503
            of_the_preview, of_agents = compiling("puppet master: compiling for a preview"), compiling("puppet master: compiling")
            own = os.getpriority(os.PRIO_PROCESS, 0)
            assert (list(of_the_preview.values()), list(of_agents.values())) == ([own + 10] * 2, [own] * 2)
            assert {os.getsid(pid) for pid in of_the_preview} == set(of_the_preview)
            autogroups = [Path(f"/proc/{pid}/autogroup") for pid in of_the_preview]
            assert all(path.read_text().endswith("nice 10\n") for path in autogroups if path.exists())
            assert not preview.done()
        finally:
            (tmp_path / "go_on").touch()
            answer = await preview
        result = json.loads(answer.body.splitlines()[-1])["result"]
        assert result["counts"]["changed"] == AGENTS
        assert {int(line) for line in read_lines(tmp_path / "niceness")} == {own + 10}  # also of what they start
        await until(lambda: not compiling("puppet master: compiling for a preview"))


def read_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


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

        async with asyncio.timeout(120):
            nodes: dict[str, str] = {}
            while not nodes:  # the store acknowledges what it has yet to write
                nodes = json.loads((await preview("--to", "feature", "--json", "--all"))[1])["nodes"]
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


@pytest.mark.parametrize("store", ["auto", pytest.param("none", marks=pytest.mark.full)])
async def test_the_first_preview_after_a_run_compiles_only_nodes_that_can_be_affected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str
) -> None:
    pair = Pair(tmp_path, manifest=MANIFEST)
    root = tmp_path / "master"
    folders = [f"--confdir={root}", f"--codedir={root}/code", f"--vardir={root}/var", f"--logdir={root}/log", f"--rundir={root}/run"]
    words = ["--from", "production", "--all", "--json", "--workers", "1", "--certname", "localhost", *folders]
    words += [] if store == "auto" else ["--store", "none"]
    environments = root / "code/environments"
    async with pair.mastered(store=store):
        assert (await pair.run()).code in (0, 2)
        await until((root / "var/preview" / NAME).exists)
        for side, text in (("same", MANIFEST), ("unused", MANIFEST), ("feature", MANIFEST.replace("exported by", "from"))):
            shutil.copytree(environments / "production", environments / side)
            (environments / side / "manifests/site.pp").write_text(text)
        (environments / "unused/modules/unused/manifests").mkdir(parents=True)
        (environments / "unused/modules/unused/manifests/init.pp").write_text("class unused { }\n")
        for side, state, compilations in (("same", "unaffected", 0), ("unused", "unaffected", 0), ("feature", "unchanged", 2)):
            capsys.readouterr()
            await asyncio.to_thread(main, [*words, "--to", side])
            result = json.loads(capsys.readouterr().out)
            assert (result["nodes"], result["counts"]["compilations"]) == ({NAME: state}, compilations)
