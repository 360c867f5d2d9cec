"""Rows about the processes that compile: what a hostile pattern costs, and code that changes under a compile."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from master.environments import Environments, EnvironmentSettings
from master.termini.catalog import CompileJob
from master.workers import Workers
from shared.errors import CompileError, PuppetError

pytestmark = pytest.mark.slow


@asynccontextmanager
async def pool(root: Path, *, environment_timeout: float | None = 0, **limits: Any) -> AsyncIterator[Workers]:
    settings = EnvironmentSettings((str(root / "environments"),), environment_timeout=environment_timeout)
    given: dict[str, Any] = {"size": 1, "timeout": 20.0, "memory": 2**28, "queue": 10, "cache": root / "cache"}
    workers = Workers(Environments(settings), **{**given, **limits})
    try:
        yield workers
    finally:
        await workers.close()


def job(environment: str = "production", name: str = "node1", **facts: str) -> CompileJob:
    return CompileJob(name, environment, facts=facts, parameters=facts, trusted={"certname": name}, server_facts={})


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / "environments" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def titles(body: bytes) -> list[str]:
    return [each["title"] for each in json.loads(body)["resources"] if each["type"] == "Notify"]


# --- CMP-04: patterns that try for ever

LONG = "a" * 40 + "!"
RUNAWAYS = {
    "a match": ("\n$y = $facts['x'] =~ /^(a+)+$/", 2),
    "a negated match": ("if $facts['x'] !~ /^(a+)+$/ { }", 1),
    "a substitution": ("\n\n$y = regsubst($facts['x'], '^(a+)+$', '')", 3),
    "the function match": ("$y = $facts['x'].match(/^(a|a)*$/)", 1),
    "a split": ("$y = $facts['x'].split(/(a*)*b/)", 1),
    "a case": ("case $facts['x'] {\n  /^(a|aa)+$/: { }\n  default: { }\n}", -1),
    "a selector": ("$y = $facts['x'] ? { /^(a+)+$/ => 1, default => 2 }", 1),
    "a type": ("function f(Pattern[/^(a+)+$/] $y) { }\nf($facts['x'])", -1),
    "a lambda": ("$y = [$facts['x']].filter |$each| {\n  $each =~ /^(a+)+$/\n}", 2),
    "a node's name": ("node /^(a+)+$/ { }\nnode default { }", 0),
}


@pytest.mark.parametrize("what", RUNAWAYS)
async def test_CMP_04_a_pattern_that_tries_for_ever_costs_its_own_compile_only(tmp_path: Path, what: str) -> None:
    manifest, line = RUNAWAYS[what]
    write(tmp_path, {"bad/manifests/site.pp": manifest, "production/manifests/site.pp": "notify { 'well': }"})
    async with pool(tmp_path, size=2, timeout=1.0) as workers:
        await asyncio.gather(workers(job()), workers(job()))  # both processes are there
        before = {worker.process.pid for worker in workers._all}
        runaway = asyncio.create_task(workers(job("bad", "a" * 40 + "-b", x=LONG)))
        done = 0
        while not runaway.done():
            assert titles(await workers(job())) == ["well"]
            done += 1
        assert done > 3
        with pytest.raises(CompileError, match="compile_timeout") as caught:
            await runaway
        if line:
            assert f"site.pp, line: {line if line > 0 else ''}" in str(caught.value)
        assert titles(await workers(job())) == ["well"]
        assert {worker.process.pid for worker in workers._all} == before


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


async def test_R_23_a_link_that_is_switched_meanwhile_is_seen(tmp_path: Path) -> None:
    version(tmp_path, "v1", "old")
    version(tmp_path, "v2", "new")
    (tmp_path / "environments" / "production").symlink_to("v1")
    swapping(tmp_path, "[ $n = 1 ] && ln -sfn v2 production; true")
    async with pool(tmp_path) as workers:
        assert titles(await workers(job())) == ["new new new new new"]


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
        started = time.monotonic()
        assert titles(await workers(job())) == ["well"]
        assert int((tmp_path / "count").read_text()) == 1
        assert time.monotonic() - started < 20
