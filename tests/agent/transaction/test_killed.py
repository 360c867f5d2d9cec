"""R-30: an agent that is killed at any resource leaves nothing behind that stops the next run, which converges."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from shared.failpoints import VARIABLE

APPLY = """
import asyncio, json, sys
from pathlib import Path
from agent.servers.dipper import bucket_factory
from agent.providers import ProviderRun, builtin_providers
from agent.providers.file.context import FileContext
from agent.state.runlog import RunLog
from agent.servers.sources import LocalSources
from agent.state.statefiles import StateFile, TransactionStore
from agent.transaction.context import ApplyContext
from agent.transaction.run import apply_catalog
from shared.models.catalog import Catalog
from shared.ral import Platform, Providers
from shared.ral.catalog import resources_of
from shared.types import builtin_types

root = Path(sys.argv[1])
catalog = Catalog.from_data(json.loads(sys.stdin.read()))
log = RunLog()
files = FileContext(LocalSources(), bucket_factory(root / "bucket"), log)
providers = Providers(builtin_providers(ProviderRun(log, lambda: files)), Platform.here({}))
context = ApplyContext(log=log, providers=providers, state=StateFile(root / "state.yaml"), store=TransactionStore(root / "store.yaml"))
applied = asyncio.run(apply_catalog(resources_of(catalog, builtin_types()), context))
print(json.dumps([applied.completed, [line.message for line in log.lines]]))
"""


def catalog(root: Path) -> bytes:
    def file(name: str, **parameters: object) -> dict[str, object]:
        return {"type": "File", "title": f"{root}/tree{name}", "kind": "compilable_type", "parameters": parameters}

    resources = [
        file("", ensure="directory"),
        file("/a", content="new\n", mode="0600"),
        file("/b", ensure="link", target="a"),
        file("/c", content="c"),
    ]
    return json.dumps({"name": "n", "resources": resources}).encode()


async def apply(root: Path, point: str = "") -> tuple[int, list[object]]:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])} | ({VARIABLE: f"{point}=kill"} if point else {})
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", APPLY, str(root), env=environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(catalog(root)), 60)
    return process.returncode or 0, json.loads(out) if out else []


def tree(root: Path) -> dict[str, str]:
    return {path.name: str(path.readlink()) if path.is_symlink() else path.read_text() for path in sorted((root / "tree").iterdir())}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["read:File[{}/tree]", "done:File[{}/tree/a]", "read:File[{}/tree/b]", "done:File[{}/tree/c]"])
async def test_the_run_after_a_kill_converges(tmp_path: Path, point: str) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("old\n")
    code, _ = await apply(tmp_path, f"transaction.{point.format(tmp_path)}")
    assert code == -signal.SIGKILL
    code, told = await apply(tmp_path)
    assert (code, told[0]) == (0, True)
    assert tree(tmp_path) == {"a": "new\n", "b": "a", "c": "c"}
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.endswith((".tmp", ".bad", ".lock"))) == []
    code, told = await apply(tmp_path)
    assert (code, told[1][:-1]) == (0, [])  # type: ignore[index]
