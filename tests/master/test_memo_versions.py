"""Catalogs from memory when code changes: those that the change cannot affect stay, and none is ever another than a compilation gives."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from environments.directories import EnvironmentSettings
from language.codegen.codecache import CodeCache
from master.pools.compile_worker import CompileWorker
from shared.errors import PuppetError
from tests.support.edited_site import BASE, EDITS, NODES, node, write
from tests.support.examples import examples

Edit = tuple[str, str | None]
EVERYBODY = {name for name, _ in NODES}


class DeployedSite:
    """An environment in a folder that is edited, or that is a link to a new folder after each edit."""

    def __init__(self, folder: Path, *, is_link: bool) -> None:
        self.environments = folder / "environments"
        self.environments.mkdir()
        self.root = self.environments / "production"
        self._versions = folder / "versions"
        self._number = 0
        self._is_link = is_link
        self.deploy(list(BASE.items()))

    def deploy(self, edits: Sequence[Edit]) -> None:
        if not self._is_link:
            write(self.root, edits)
            return
        before, self._number = self._versions / str(self._number), self._number + 1
        version = self._versions / str(self._number)
        if before.exists():
            shutil.copytree(before, version)
        write(version, edits)
        link = self._versions / "link"
        link.symlink_to(version)
        link.replace(self.root)

    def worker(self, memo: int = 2**22) -> CompileWorker:
        return CompileWorker(EnvironmentSettings((str(self.environments),)), CodeCache(), memo=memo)


def outcome(worker: CompileWorker, name: str, role: str) -> Any:
    """Return a node's catalog without what is new each time; or the error."""
    job = {**node(name, role), "ask": "catalog", "environment": "production", "code_id": None, "generation": 0}
    try:
        answer = worker.answer({**job, "exported": False, "is_stored": False}, lambda entry: None)
    except PuppetError as error:
        return str(error)
    catalog: dict[str, Any] = json.loads(answer.body)
    return {key: value for key, value in catalog.items() if key not in ("catalog_uuid", "version")}


def compiled_nodes(worker: CompileWorker) -> set[str]:
    """Ask for the catalogs of all nodes; return those that did not come from memory."""
    compiled = set()
    for name, role in NODES:
        outcome(worker, name, role)
        if worker.memo.origin != "memory":
            compiled.add(name)
    return compiled


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.lists(st.sampled_from([*EDITS, *BASE.items()]), min_size=1, max_size=2), min_size=1, max_size=4),
    st.permutations(NODES),
    st.booleans(),
)
@example([[("modules/web/manifests/port.pp", "define web::port { }\n")], [("modules/web/manifests/port.pp", None)]], list(NODES), True)
def test_a_catalog_that_stays_in_memory_is_never_another_than_a_compilation_gives(
    steps: list[list[Edit]], nodes: list[tuple[str, str]], is_link: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = DeployedSite(Path(folder), is_link=is_link)
        worker = site.worker()
        for edits in ([], *steps):
            site.deploy(edits)
            for name, role in nodes:
                assert outcome(worker, name, role) == outcome(site.worker(0), name, role), (name, edits)


ONCE = [pytest.param(edit, number % 2 == 0, id=edit[0]) for number, edit in enumerate(EDITS)]
OTHERWISE = [pytest.param(edit, number % 2 == 1, id=f"{edit[0]}, otherwise", marks=pytest.mark.full) for number, edit in enumerate(EDITS)]


@pytest.mark.parametrize(("edit", "is_link"), ONCE + OTHERWISE)
@pytest.mark.slow
def test_no_single_edit_leaves_a_catalog_in_memory_that_is_another(tmp_path: Path, edit: Edit, is_link: bool) -> None:
    site = DeployedSite(tmp_path, is_link=is_link)
    worker, fresh = site.worker(), site.worker(0)
    compiled_nodes(worker)
    site.deploy([edit])
    for name, role in NODES:
        assert outcome(worker, name, role) == outcome(fresh, name, role)


WHO = {
    "site/profile/manifests/base.pp": EVERYBODY,
    "site/profile/manifests/web.pp": {"web1", "web2"},
    "site/profile/manifests/params.pp": {"web1", "web2"},
    "modules/web/manifests/vhost.pp": {"web1", "web2"},
    "modules/web/functions/name.pp": {"web1", "web2"},
    "modules/web/lib/puppet/functions/web/size.py": {"web1", "web2"},
    "site/profile/manifests/spare.pp": {"db1"},
    "site/profile/templates/db.erb": {"db1"},
    "modules/extra/manifests/init.pp": {"db1"},
    "modules/unused/manifests/init.pp": set[str](),
    "modules/web/files/page": set[str](),
    "functions/environment_own.pp": set[str](),
    "data/roles/db.yaml": {"db1"},
    "manifests/other.pp": EVERYBODY,
    "hiera.yaml": EVERYBODY,
}


@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.parametrize(("path", "affected"), WHO.items(), ids=list(WHO))
def test_only_catalogs_that_a_change_can_affect_are_compiled_again(tmp_path: Path, path: str, affected: set[str], is_link: bool) -> None:
    site = DeployedSite(tmp_path, is_link=is_link)
    worker = site.worker()
    assert compiled_nodes(worker) == EVERYBODY
    site.deploy([next(edit for edit in EDITS if edit[0] == path)])
    assert compiled_nodes(worker) == affected
    assert compiled_nodes(worker) == set()


def test_a_catalog_stays_in_memory_over_many_deployments(tmp_path: Path) -> None:
    site = DeployedSite(tmp_path, is_link=True)
    worker = site.worker()
    compiled_nodes(worker)
    for number in range(6):
        site.deploy([("site/profile/manifests/db.pp", f"class profile::db {{ notify {{ '{number}': }} }}\n")])
        assert compiled_nodes(worker) == {"db1"}
    site.deploy([("site/profile/manifests/db.pp", BASE["site/profile/manifests/db.pp"])])
    assert compiled_nodes(worker) == {"db1"}
