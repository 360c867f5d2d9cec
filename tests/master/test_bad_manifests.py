"""Manifests that would never end, or take everything: one error, with the place where there is one, and the next catalog is made."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from environments.directories import Environments, EnvironmentSettings
from master.pools.compile_pool import CompilePool
from master.pools.jobs import CompileJob
from shared.errors import PuppetError
from tests.support.compile_jobs import compile_pool

pytestmark = pytest.mark.slow

BIG = 256 * 2**20


@asynccontextmanager
async def pool(root: Path, **limits: Any) -> AsyncIterator[CompilePool]:
    environments = Environments(EnvironmentSettings((str(root / "environments"),)))
    settings: dict[str, Any] = {"size": 1, "timeout": 2.0, "memory": BIG, "queue": 10, "cache": root / "cache"}
    workers = compile_pool(environments, **{**settings, **limits})
    try:
        yield workers
    finally:
        await workers.processes.close()


def write(root: Path, name: str, content: str | bytes) -> Path:
    path = root / "environments" / "production" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


JOB = CompileJob("n", "production", facts={}, parameters={}, trusted={"certname": "n"}, server_facts={})
DEPTH = "$x = Integer[1, 50000].reduce([]) |$a, $i| { [$a] }\n"

# What is wrong: the manifest, what the error says, and the line that it or its hint names (0: none, -1: any).
CASES: dict[str, tuple[str, str, int]] = {
    "a regular expression that runs away": (f"$x = '{'a' * 70}b' =~ /^(a|aa)+$/", "compile_timeout|pattern_timeout", 1),
    "a program that does not end": ("\n$x = generate('/bin/sleep', '100')", "compile_timeout", 2),
    "a loop that does not end": ("Integer[1, 100000000000].each |$i| {\n  $x = $i\n}", "compile_timeout", -1),
    "more resources than fit": ('Integer[1, 30000000].each |$i| {\n  notify { "n${i}": }\n}', "compile_timeout|compile_memory", 0),
    "text that doubles": ("$x = Integer[1, 60].reduce('x') |$a, $i| {\n  \"${a}${a}\"\n}", "compile_memory", 2),
    "an array that doubles": ("$x = Integer[1, 60].reduce([1]) |$a, $i| {\n  $a + $a\n}", "compile_memory", 2),
    "an array of a range": ("\n\n$x = Array(Integer[1, 100000000000])", "compile_memory", 3),
    "a function that calls itself": (
        "function f($x) {\n  f($x + 1)\n}\nf(1)",
        "stack level too deep",
        -1,
    ),  # of its frames any may be the last
    "the same by lambdas": (
        "function f($x) {\n  [1].map |$i| { f($x) }\n}\nf(1)",
        "stack level too deep",
        -1,
    ),  # any frame of it may be the last
    "a template that renders itself": ("notice(epp('m/self.epp'))", "stack level too deep", 1),
    "a define that declares itself": ("define d {\n  d { \"${title}x\": }\n}\nd { 'a': }", "looped more than 1000 times", 0),
    "a class that inherits from itself": ("include m::one", "stack level too deep", 1),
    "a value nested too deeply to be shown": (DEPTH + 'notify { "${x}": }', "stack level too deep", 0),
    "a value nested too deeply for a catalog": (DEPTH + "notify { 'a': message => $x }", "(nested|stack level) too deep", 0),
    "an expression nested too deeply": ("\n$x = " + "(" * 5000 + "1" + ")" * 5000, "Nested too deeply", 2),
    "a sum of very many": ("$x = " + " + ".join(["1"] * 20000), "too deep", 0),
    "a manifest of a module that is not UTF-8": ("\ninclude m::octets", "octets.pp is not valid UTF-8", 2),
    "a module file that is a folder": ("include m::folder", "Could not find class ::m::folder", 1),
    "a module file that links to itself": ("include m::loop", "Could not read .*/loop.pp", 1),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    write(root, "modules/m/templates/self.epp", "<%= epp('m/self.epp') %>")
    write(root, "modules/m/manifests/one.pp", "class m::one inherits m::two { }")
    write(root, "modules/m/manifests/two.pp", "class m::two inherits m::one { }")
    write(root, "modules/m/manifests/octets.pp", b"class m::octets { notify { '\xff': } }")
    (root / "environments/production/modules/m/manifests/folder.pp").mkdir()
    (root / "environments/production/modules/m/manifests/loop.pp").symlink_to("loop.pp")
    return root


@pytest.mark.parametrize("what", CASES)
async def test_ends_in_one_error_and_the_next_catalog_is_made(root: Path, what: str) -> None:
    manifest, message, line = CASES[what]
    path = write(root, "manifests/site.pp", manifest)
    async with pool(root) as workers:
        with pytest.raises(PuppetError, match=message) as caught:
            await workers(JOB)
        told = f"{caught.value} {caught.value.hint}"
        if line:
            file = "self.epp" if "epp" in manifest else str(path)
            assert f"{file}, line: {line if line > 0 else ''}" in told
        write(root, "manifests/site.pp", "notify { 'well': }")
        workers.processes.timeout = 60.0  # a new process may have to start, on a busy machine
        catalog = json.loads((await workers(JOB)).body)
        assert catalog["resources"][-1]["title"] == "well"


@pytest.mark.parametrize("what", ["a regular expression that runs away", "a program that does not end", "a function that calls itself"])
async def test_the_same_process_goes_on(root: Path, what: str) -> None:
    write(root, "manifests/site.pp", CASES[what][0])
    async with pool(root, timeout=1.0) as workers:
        with pytest.raises(PuppetError):
            await workers(JOB)
        before = {worker.process.pid for worker in workers.processes._all}
        write(root, "manifests/site.pp", "notify { 'well': }")
        workers.processes.timeout = 60.0
        await workers(JOB)
        assert {worker.process.pid for worker in workers.processes._all} == before


@pytest.mark.parametrize(
    ("manifest", "hint"),
    [
        ("class app::config {} include app::confg", "Did you mean app::config?"),
        ("include m::nothing", "Its module has no such class; puppet config print modulepath shows these folders."),
        ("include ::nosuch::x", "No folder of the modulepath has a module nosuch; puppet config print modulepath shows these folders."),
    ],
)
async def test_a_missing_class_is_an_error_with_a_hint(root: Path, manifest: str, hint: str) -> None:
    write(root, "manifests/site.pp", manifest)
    async with pool(root) as workers:
        with pytest.raises(PuppetError, match="Could not find class") as caught:
            await workers(JOB)
    assert caught.value.hint == hint


async def test_a_file_that_goes_while_the_environment_is_in_use_is_missed_and_then_found_again(root: Path) -> None:
    path = write(root, "modules/m/manifests/here.pp", "class m::here { notify { 'here': } }")
    write(root, "manifests/site.pp", "include m::here")
    async with pool(root, timeout=20.0) as workers:
        assert b'"here"' in (await workers(JOB)).body
        path.unlink()
        with pytest.raises(PuppetError, match="Could not find class ::m::here"):
            await workers(JOB)
        write(root, "modules/m/manifests/here.pp", "class m::here { notify { 'again': } }")
        assert b'"again"' in (await workers(JOB)).body


async def test_files_that_change_all_the_time_give_one_of_their_contents(root: Path, tmp_path: Path) -> None:
    template = write(root, "modules/m/templates/moving.epp", "aaaa")
    write(root, "manifests/site.pp", "notify { epp('m/moving.epp'): }")
    async with pool(root, timeout=20.0) as workers:
        for number in range(30):
            fresh = tmp_path / "fresh"
            fresh.write_text(("a" if number % 2 else "b") * 4)
            fresh.replace(template)
            title = json.loads((await workers(JOB)).body)["resources"][-1]["title"]
            assert title == ("a" if number % 2 else "b") * 4


async def test_a_module_may_be_a_link_to_elsewhere(root: Path, tmp_path: Path) -> None:
    (tmp_path / "far/manifests").mkdir(parents=True)
    (tmp_path / "far/manifests/init.pp").write_text("class far { notify { 'far': } }")
    modules = root / "environments/production/modules"
    (modules / "far").symlink_to(tmp_path / "far")
    write(root, "manifests/site.pp", "include far")
    async with pool(root, timeout=20.0) as workers:
        assert b'"far"' in (await workers(JOB)).body
        (modules / "far").unlink()
        (modules / "far").symlink_to(tmp_path / "gone")
        with pytest.raises(PuppetError, match="Could not find class ::far"):
            await workers(JOB)
    (modules / "far").unlink()


async def test_a_name_cannot_lead_out_of_its_module(root: Path) -> None:
    write(root, "secret.epp", "secret")
    for manifest in ("notify { epp('m/../../../secret.epp'): }", "include m::..::x", "include '../m'", "m::../x()"):
        write(root, "manifests/site.pp", manifest)
        async with pool(root, timeout=20.0) as workers:
            if manifest.startswith("notify"):
                # As in Puppet, a template's path is the site's own: whoever writes manifests may read what the master may.
                assert b"secret" in (await workers(JOB)).body
                continue
            with pytest.raises(PuppetError):
                await workers(JOB)
