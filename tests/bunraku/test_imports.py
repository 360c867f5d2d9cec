"""What each command imports: start-up is most of what a small command costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import OurAgent, clean_environment, master

HEAVY = frozenset(
    ("aiohttp", "alembic", "asyncio", "cryptography", "lark", "orjson", "pydantic", "regex", "sqlalchemy", "tree_sitter", "uvloop", "yaml")
)
"""Modules that take milliseconds or megabytes."""


def modules_of(*words: str) -> set[str]:
    """Return the modules that a command imports, Python's own among them; the command has to succeed."""
    argv = [sys.executable, "-I", "-X", "importtime", "-m", "bunraku", *words]
    done = subprocess.run(argv, env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
    text = done.stderr.decode()
    assert done.returncode == 0, "\n".join(line for line in text.splitlines() if not line.startswith("import time:"))
    lines = [line for line in text.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "most", "heavy"),
    [
        ("--version", 90, set()),
        ("--help", 150, set()),  # although it looks for faces of modules, in the environment
        ("help", 150, set()),
        ("config print certname", 200, {"orjson"}),
        ("agent --help", 240, {"asyncio"}),
        ("cert --help", 420, {"asyncio", "cryptography", "orjson", "pydantic"}),
        ("apply", 950, set(HEAVY)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_command_imports_little_that_it_does_not_need(tmp_path: Path, command: str, most: int, heavy: set[str]) -> None:
    words = command.split()
    if command not in ("help", "--version") and "--help" not in words:
        places = {"confdir": "conf", "vardir": "var", "rundir": "run", "logdir": "log"}
        words += [word for name, place in places.items() for word in (f"--{name}", str(tmp_path / place))]
    if command == "apply":
        (tmp_path / "empty.pp").write_text("")
        words.append(str(tmp_path / "empty.pp"))
    imported = modules_of(*words)
    assert (len(imported) <= most, sorted(imported & HEAVY - heavy)) == (True, []), f"{len(imported)} modules"


MANIFEST = """
file { 'ROOT/tree': ensure => directory }
Integer[1, 3].each |$i| { file { "ROOT/tree/${i}": content => "number ${i}\\n", mode => '0640' } }
exec { '/bin/true': refreshonly => true }
"""
SELDOM_USED = frozenset(
    [
        "agent.providers.user",
        "agent.ruby.process",
        "agent.servers.websources",
        "certs.csr",
        "difflib",
        "dns",
        "frozenlist._frozenlist",
        "language",
        "shared.filesystem.bucket",
        "shared.indirector.plugins",
        "shared.pluginfiles",
        "shared.regexps",
    ]
)
"""What a run loads that restores a file, has a pattern to match, …; and an extension that needs the library of C++."""


@pytest.mark.slow
def test_an_unchanged_run_of_an_agent_imports_only_what_it_uses(tmp_path: Path) -> None:
    with master(tmp_path / "master", autosign="true") as process:
        process.write({"manifests/site.pp": MANIFEST.replace("ROOT", str(tmp_path))})
        process.start()
        agent = OurAgent(tmp_path / "agent", process.port, "web1.test")
        first = agent.test()
        assert first.code == 2, first.text
        imported = modules_of("agent", "--test", *agent.options)
    heavy = sorted(imported & HEAVY - {"aiohttp", "asyncio", "cryptography", "orjson", "pydantic", "uvloop"})
    assert (heavy, sorted(imported & SELDOM_USED), len(imported) <= 680) == ([], [], True), f"{len(imported)} modules"


ENDED = """
import gc, runpy, sys
sys.argv = ["puppet", "--version"]
try:
    runpy.run_module(sys.stdin.readline().strip(), run_name="__main__")
except SystemExit as end:
    print("ended with", end.code, "frozen" if gc.get_freeze_count() else "thawed")
"""


@pytest.mark.parametrize("program", ["bunraku", "agent"])
def test_python_looks_at_no_objects_when_a_command_has_ended(program: str) -> None:
    argv = [sys.executable, "-I", "-c", ENDED]
    done = subprocess.run(argv, env=clean_environment(), input=program.encode(), capture_output=True, timeout=120, check=False)
    assert b"ended with 0 frozen" in done.stdout, done.stderr
