"""Rows about the site's data: what a node says of itself chooses files of the data, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from environments.files.code_files import DiskFiles
from tests.support.compiling import compiled

LEVELS = "version: 5\nhierarchy:\n  - {name: role, %s}\n  - {name: all, path: common.yaml}\n"
WAYS = [
    'path: "nodes/%{facts.role}.yaml"',
    'path: "%{facts.role}"',
    'paths: ["nodes/%{facts.role}"]',
    'glob: "nodes/%{facts.role}*"',
    'mapped_paths: [facts.role, r, "nodes/%{r}.yaml"]',
    'datadir: "data/%{facts.role}", path: "common.yaml"',
]
ROLES = [
    "../../../etc/passwd",
    "../../secret",
    "../secret",
    "..",
    "/etc/shadow",
    "/env/secret",
    "a/../../../secret",
    "a\0b",
    "x" * 300,
    "x" * 5000,
    "%{lookup('hidden')}",
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("role", ROLES, ids=[role[:20].replace("\0", "NUL") for role in ROLES])
def test_CMP_07_a_role_does_not_lead_out_of_the_data(way: str, role: str) -> None:
    files = {
        "hiera.yaml": LEVELS % way,
        "data/common.yaml": "k: common\nhidden: ../secret\n",
        "data/nodes/a.yaml": "k: node a\n",
        "secret.yaml": "k: SECRET\n",
        "secret": "k: SECRET\n",
        "common.yaml": "k: SECRET\n",
    }
    result = compiled("notice(lookup('k'))", files, facts={"role": role})
    assert result.notices == ["common"]


@pytest.mark.parametrize("bits", [(".", "."), ("..", ""), ("", "..")])
def test_CMP_07_facts_that_make_two_dots_together_do_not_lead_out(bits: tuple[str, str]) -> None:
    files = {
        "hiera.yaml": LEVELS % 'path: "%{facts.one}%{facts.two}/secret.yaml"',
        "data/common.yaml": "k: common\n",
        "secret.yaml": "k: SECRET\n",
    }
    assert compiled("notice(lookup('k'))", files, facts={"one": bits[0], "two": bits[1]}).notices == ["common"]


def test_CMP_07_a_role_with_a_slash_stays_below_the_data() -> None:
    files = {"hiera.yaml": LEVELS % WAYS[0], "data/common.yaml": "k: common\n", "data/nodes/a/b.yaml": "k: a/b\n"}
    assert compiled("notice(lookup('k'))", files, facts={"role": "a/b"}).notices == ["a/b"]


@pytest.mark.parametrize("role", ["../../../etc/passwd", "/etc/shadow", "a\0b", "x" * 300])
def test_CMP_07_on_a_disk_too_the_level_is_skipped(role: str, tmp_path: Path) -> None:
    from environments.directories import Environment
    from environments.directory_environment import DirectoryEnvironment
    from language.codegen.codecache import CodeCache
    from language.evaluation.compile import compile_catalog
    from language.evaluation.runtime import NAMES
    from language.host import NodeInput
    from language.loading.builtins import all_functions
    from language.loading.loader import Loader

    root = tmp_path / "environment"
    (root / "data" / "nodes").mkdir(parents=True)
    (root / "hiera.yaml").write_text(LEVELS % WAYS[0])
    (root / "data" / "common.yaml").write_text("k: common\n")
    world = DirectoryEnvironment(Environment("production", str(root), (), None), DiskFiles(), code="notice(lookup('k'))")
    logs: list[Any] = []
    loader = Loader(world, NAMES, CodeCache(), log=lambda level, finding: None, builtins=all_functions())
    facts = {"role": role}
    compile_catalog(world, loader, NodeInput("node1", facts=facts, parameters=facts), version=1, log=logs.append, rich=True)
    assert [entry.message for entry in logs if entry.level == "notice"] == ["common"]
