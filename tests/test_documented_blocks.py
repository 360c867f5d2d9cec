"""Every block of README and docs/ is run by a test, or says why not; files that pages show are read as the programs read them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bunraku.modules.puppetfiles.puppetfile import parse_puppetfile
from bunraku.rollouts.start import wishes_in
from certs.oids import OidNames
from master.authorization.auth_conf import parse_rules
from master.endpoints.routes import default_rules
from master.puppetdb.configuration import read_puppetdb_conf, unknown_puppetdb_settings
from shared.indirector.routes import read_routes
from shared.settings import AgentSettings, MasterSettings, load, unknown_settings
from shared.settings.conf import read
from store.queries.pql.errors import PqlError
from store.queries.pql.parser import parse
from tests.support.compiling import compiled
from tests.support.documentation import PAGES, ROOT, Block, Shell, block, blocks

HERE = "tests/test_documented_blocks.py"
COMMANDS = "tests/e2e/test_documented_commands.py"
MODULE = "tests/test_docs.py"
OTHERS = {
    "docs/install.md": "tests/packages/test_installing.py",
    "docs/migrating.md": "tests/interop/test_migration.py",
    "docs/recovery.md": "tests/e2e/test_recovery.py",
    "docs/run.md": "tests/e2e/test_run_on_demand.py",
    "docs/scale.md": "tests/e2e/test_several_masters.py",
    "docs/store.md": "tests/interop/test_moving_from_puppetdb.py",
}
"""Tests that run blocks of a page by their names."""
OF_THE_MODULE = {("console", ""), ("text", ""), ("conf", "auth.conf"), ("yaml", "hiera.yaml")}
"""Blocks of docs/extending.md beside the module's own files, which have paths as names."""


def read_auth_conf(path: Path) -> None:
    assert parse_rules(path.read_text(), str(path), OidNames(), default_rules())


def read_rule(path: Path) -> None:
    """A rule of auth.conf's newer form, which stands in its list."""
    path.write_text(f"authorization: {{ version: 1, rules: [ {path.read_text()} ] }}")
    read_auth_conf(path)


def read_puppet_conf(path: Path) -> None:
    assert unknown_settings(read(path), MasterSettings, AgentSettings) == []
    for kind, section in ((MasterSettings, "master"), (AgentSettings, "agent")):
        load(kind, section=section, flags={"confdir": str(path.parent)})


def read_puppetdb(path: Path) -> None:
    assert read_puppetdb_conf(path).server_urls and unknown_puppetdb_settings(path) == []


def read_all_routes(path: Path) -> None:
    assert read_routes(path, "master")


def read_rollout(path: Path) -> None:
    assert wishes_in(path.parent).waves


def read_modules(path: Path) -> None:
    assert parse_puppetfile(path.read_bytes(), str(path)).modules


def compile_classes(path: Path) -> None:
    text = path.read_text()
    names = re.findall(r"^class (\w+)", text, re.M)
    assert len(compiled(f"{text}\ninclude {', '.join(names)}", facts={"name": "web1"}).refs) >= len(names) > 0


READERS = {
    ("conf", "auth.conf"): read_auth_conf,
    ("hocon", "auth.conf"): read_rule,
    ("ini", "puppet.conf"): read_puppet_conf,
    ("ini", "puppetdb.conf"): read_puppetdb,
    ("yaml", "rollout.yaml"): read_rollout,
    ("yaml", "routes.yaml"): read_all_routes,
    ("ruby", "Puppetfile"): read_modules,
    ("puppet", ""): compile_classes,
}
"""What reads a block, by its kind and the name of the file that it is."""


def runner_of(block: Block) -> str:
    """Return the file with the test that runs a block; '' for none."""
    other = OTHERS.get(block.page)
    if (block.kind, block.name) == ("python", "compile.py"):
        return "tests/language/test_api.py"
    if block.page == "docs/extending.md":
        return MODULE if "/" in block.name or (block.kind, block.name) in OF_THE_MODULE else ""
    if (block.kind, block.name) in (*READERS, ("text", "error")):
        return HERE
    if block.kind in ("sh", "console", "pql"):
        return COMMANDS if not block.name or f'"{block.name}"' in (ROOT / COMMANDS).read_text() else other or ""
    return other if other and block.name and f'"{block.name}"' in (ROOT / other).read_text() else ""


ALL = [each for page in PAGES for each in blocks(page)]


@pytest.mark.parametrize("block", ALL, ids=str)
def test_every_block_is_run_by_a_test_or_says_why_not(block: Block) -> None:
    """The words behind the fence say what it is (CONTRIBUTING.md); `<!-- not run: REASON -->` above it says why it is not run."""
    assert bool(runner_of(block)) != bool(block.reason), f"the block {block.kind} {block.name} is run by: {runner_of(block) or 'no test'}"


@pytest.mark.parametrize("block", [each for each in ALL if (each.kind, each.name) in READERS and runner_of(each) == HERE], ids=str)
def test_a_file_that_a_page_shows_is_one(block: Block, tmp_path: Path) -> None:
    path = tmp_path / (block.name or "block")
    path.write_text(block.body)
    READERS[block.kind, block.name](path)


def test_a_wrong_query_is_answered_as_the_page_on_the_store_shows() -> None:
    text = block("docs/store.md", "text", "error").body
    with pytest.raises(PqlError) as error:
        parse(text.splitlines()[2])
    assert f"Error: {error.value}".startswith(text)


def test_a_command_that_has_no_stand_in_reaches_no_program_of_the_machine(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "shell", {}, {}, {"systemctl": "echo stand-in"})
    assert shell.type("systemctl stop something") == "stand-in\n"
    assert "command not found" in shell.type("reboot", {127})
