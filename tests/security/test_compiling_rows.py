"""Rows about the processes that compile: what a hostile pattern costs, and code that changes under a compile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environments, EnvironmentSettings
from master.pools.compile_pool import CompilePool
from master.pools.compiled_catalog import CompiledCatalog
from master.pools.jobs import CompileJob
from shared.errors import CompileError, PuppetError
from tests.support.compile_jobs import compile_pool

pytestmark = pytest.mark.slow


@asynccontextmanager
async def pool(
    root: Path, *, environment_timeout: float | None = 0, pattern_timeout: float = 5.0, **limits: Any
) -> AsyncIterator[CompilePool]:
    folders = (str(root / "environments"),)
    settings = EnvironmentSettings(folders, environment_timeout=environment_timeout, pattern_timeout=pattern_timeout)
    given: dict[str, Any] = {"size": 1, "timeout": 20.0, "memory": 2**28, "queue": 10, "cache": root / "cache"}
    workers = compile_pool(Environments(settings), **{**given, **limits})
    try:
        yield workers
    finally:
        await workers.processes.close()


def job(environment: str = "production", name: str = "node1", **facts: str) -> CompileJob:
    return CompileJob(name, environment, facts=facts, parameters=facts, trusted={"certname": name}, server_facts={})


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / "environments" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def titles(catalog: CompiledCatalog) -> list[str]:
    return [each["title"] for each in json.loads(catalog.body)["resources"] if each["type"] == "Notify"]


# --- CMP-04: patterns that try for ever

LONG = "a" * 60 + "!"
RUNAWAYS = {
    "a match": ("\n$y = $facts['x'] =~ /^(a|aa)+$/", 2),
    "a negated match": ("if $facts['x'] !~ /^(a|aa)+$/ { }", 1),
    "a substitution": ("\n\n$y = regsubst($facts['x'], '^(a|aa)+$', '')", 3),
    "a substitution everywhere": ("$y = regsubst($facts['x'], /^(a|aa)+$/, '', 'G')", 1),
    "the function match": ("$y = $facts['x'].match(/^(a|aa)*$/)", 1),
    "the function index": ("$y = $facts['x'].index(/^(a|aa)*$/)", 1),
    "a split": ("$y = $facts['x'].split(/^(a|aa)+$/)", 1),
    "a case": ("case $facts['x'] {\n  /^(a|aa)+$/: { }\n  default: { }\n}", -1),
    "a selector": ("$y = $facts['x'] ? { /^(a|aa)+$/ => 1, default => 2 }", 1),
    "a member": ("$y = /^(a|aa)+$/ in [$facts['x']]", 1),
    "a type": ("function f(Pattern[/^(a|aa)+$/] $y) { }\nf($facts['x'])", -1),
    "a type's match": ("$y = $facts['x'] =~ Pattern[/^(a|aa)+$/]", 1),
    "a lambda": ("$y = [$facts['x']].filter |$each| {\n  $each =~ /^(a|aa)+$/\n}", 2),
    "a function of stdlib": ("$y = grep([$facts['x']], '^(a|aa)+$')", 1),
    "a deletion": ("$y = delete_regex([$facts['x']], '^(a|aa)+$')", 1),
    "a node's name": ("node /^(a|aa)+$/ { }\nnode default { }", 0),
    "a key of lookup_options": (f"\n$y = lookup('{'a' * 60}_b')", 2),
}
DATA = {
    "bad/hiera.yaml": "version: 5\n",
    "bad/data/common.yaml": f"lookup_options: {{'^(a|aa)+$': {{merge: unique}}}}\n{'a' * 60}_b: [1]\n",
}


def write_runaway(root: Path, what: str) -> CompileJob:
    """Write an environment whose manifest has that pattern, and return the catalog to ask for."""
    data = DATA if "lookup_options" in what else {}
    write(root, {"bad/manifests/site.pp": RUNAWAYS[what][0], "production/manifests/site.pp": "notify { 'well': }", **data})
    return job("bad", "a" * 60 + "-b", x=LONG)


@pytest.mark.parametrize("what", RUNAWAYS)
async def test_PAT_01_a_pattern_that_tries_for_ever_is_named_with_its_place(tmp_path: Path, what: str) -> None:
    runaway = write_runaway(tmp_path, what)
    async with pool(tmp_path, pattern_timeout=0.05) as workers:
        with pytest.raises(PuppetError, match=r"takes longer than pattern_timeout \(0.05 seconds\)") as caught:
            await workers(runaway)
        line = RUNAWAYS[what][1]
        if line:
            assert f"site.pp, line: {line if line > 0 else ''}" in str(caught.value)
        assert LONG not in str(caught.value)
        before = {worker.process.pid for worker in workers.processes._all}
        assert titles(await workers(job())) == ["well"]
        assert {worker.process.pid for worker in workers.processes._all} == before


@pytest.mark.parametrize("what", ["a match", "a substitution", "a type"])
async def test_CMP_04_a_pattern_that_tries_for_ever_costs_its_own_compile_only(tmp_path: Path, what: str) -> None:
    runaway_job = write_runaway(tmp_path, what)
    line = RUNAWAYS[what][1]
    async with pool(tmp_path, pattern_timeout=60.0, size=2, timeout=1.0) as workers:
        await asyncio.gather(workers(job()), workers(job()))  # both processes are there
        before = {worker.process.pid for worker in workers.processes._all}
        runaway = asyncio.create_task(workers(runaway_job))
        done = 0
        while not runaway.done():
            assert titles(await workers(job())) == ["well"]
            done += 1
        assert done > 3
        with pytest.raises(CompileError, match="compile_timeout") as caught:
            await runaway
        assert f"site.pp, line: {line if line > 0 else ''}" in str(caught.value)
        assert titles(await workers(job())) == ["well"]
        assert {worker.process.pid for worker in workers.processes._all} == before


# --- code that is deployed while a catalog is compiled

VERSION = {
    "manifests/site.pp": "$site = 'NEW'\n$swapped = generate('SWAP')\ninclude m\n",
    "modules/m/manifests/init.pp": "class m { notify { \"${site} NEW ${epp('m/t.epp')} ${lookup('k')} ${file('m/f')}\": } }\n",
    "modules/m/templates/t.epp": "NEW",
    "modules/m/files/f": "NEW",
    "hiera.yaml": "version: 5\nhierarchy: [{name: common, path: common.yaml}]\n",
    "data/common.yaml": "k: NEW\n",
}


def version(root: Path, folder: str, word: str) -> None:
    swap = str(root / "swap")
    write(root, {f"{folder}/{name}": text.replace("NEW", word).replace("SWAP", swap) for name, text in VERSION.items()})


def swapping(root: Path, script: str) -> None:
    """What happens while a catalog is compiled: `$n` counts the compiles."""
    (root / "count").write_text("0")
    program = root / "swap"
    program.write_text(f"#!/bin/sh\ncd {root}/environments\nn=$(($(cat {root}/count) + 1)); echo $n > {root}/count\n{script}\n")
    program.chmod(0o755)


DEPLOYS = {
    "file by file": '[ $n = 1 ] && for f in $(cd v2 && find . -type f); do cp "v2/$f" "production/$f"; done; true',
    "a module and its data": "[ $n = 1 ] && cp -r v2/. production/; true",
    "first a part of a file": (
        "[ $n = 1 ] && echo >> production/manifests/site.pp && printf 'class m {' > production/modules/m/manifests/init.pp; "
        "[ $n = 2 ] && cp -r v2/. production/; true"
    ),
    "by a module that is missing for a while": "[ $n = 1 ] && rm -r production/modules/m; [ $n = 2 ] && cp -r v2/. production/; true",
}


@pytest.mark.parametrize("how", DEPLOYS)
async def test_R_23_a_catalog_is_made_of_one_version_of_the_code(tmp_path: Path, how: str) -> None:
    version(tmp_path, "production", "old")
    version(tmp_path, "v2", "new")
    swapping(tmp_path, DEPLOYS[how])
    async with pool(tmp_path) as workers:
        assert titles(await workers(job())) == ["new new new new new"]
        assert int((tmp_path / "count").read_text()) in (2, 3)


async def test_R_23_a_link_that_is_switched_meanwhile_counts_for_the_next_catalog(tmp_path: Path) -> None:
    version(tmp_path, "v1", "old")
    version(tmp_path, "v2", "new")
    (tmp_path / "environments" / "production").symlink_to("v1")
    swapping(tmp_path, "[ $n = 1 ] && ln -sfn v2 production; true")
    async with pool(tmp_path) as workers:
        assert titles(await workers(job())) == ["old old old old old"]
        assert (tmp_path / "count").read_text() == "1\n"
        assert titles(await workers(job())) == ["new new new new new"]


async def test_R_23_a_link_that_is_switched_counts_however_long_an_environment_is_kept(tmp_path: Path) -> None:
    version(tmp_path, "v1", "old")
    version(tmp_path, "v2", "new")
    (tmp_path / "environments" / "production").symlink_to("v1")
    swapping(tmp_path, "true")
    async with pool(tmp_path, environment_timeout=None) as workers:
        for folder, text in (("v1", "old"), ("v2", "new"), ("v1", "old")):
            link = tmp_path / "environments" / "production"
            link.with_name("link").symlink_to(folder)
            link.with_name("link").replace(link)
            assert titles(await workers(job())) == [" ".join([text] * 5)]


async def test_R_23_code_that_never_stands_still_is_an_error_that_names_a_file(tmp_path: Path) -> None:
    version(tmp_path, "production", "old")
    swapping(tmp_path, 'echo "# $n" >> production/manifests/site.pp')
    async with pool(tmp_path) as workers:
        with pytest.raises(CompileError, match=r"site\.pp or others changed each of the 3 times"):
            await workers(job())
        swapping(tmp_path, "true")
        assert titles(await workers(job())) == ["old old old old old"]


async def test_R_23_a_broken_deploy_fails_its_own_environment_until_it_is_repaired(tmp_path: Path) -> None:
    for name in ("production", "other"):
        version(tmp_path, name, "old")
    swapping(tmp_path, "true")
    async with pool(tmp_path) as workers:
        assert titles(await workers(job())) == ["old old old old old"]
        write(tmp_path, {"production/modules/m/manifests/init.pp": "class m {"})
        with pytest.raises(PuppetError, match=r"init\.pp"):
            await workers(job())
        assert titles(await workers(job("other"))) == ["old old old old old"]
        version(tmp_path, "production", "new")
        assert titles(await workers(job())) == ["new new new new new"]


async def test_R_23_a_kept_environment_stays_as_it_is_and_is_not_compiled_twice(tmp_path: Path) -> None:
    version(tmp_path, "production", "old")
    version(tmp_path, "v2", "new")
    swapping(tmp_path, "true")
    async with pool(tmp_path, environment_timeout=None) as workers:
        assert titles(await workers(job())) == ["old old old old old"]
        write(tmp_path, {"production/modules/m/manifests/init.pp": "class m { notify { 'changed': } }\n"})
        assert titles(await workers(job())) == ["old old old old old"]
        assert int((tmp_path / "count").read_text()) == 2


async def test_R_23_what_changes_outside_the_code_does_not_matter(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x")
    write(tmp_path, {"production/manifests/site.pp": f"$x = file('{log}')\n$y = generate('{tmp_path}/swap')\nnotify {{ 'well': }}"})
    swapping(tmp_path, f"echo $n >> {log}")
    async with pool(tmp_path) as workers:
        assert titles(await workers(job())) == ["well"]
        assert int((tmp_path / "count").read_text()) == 1
