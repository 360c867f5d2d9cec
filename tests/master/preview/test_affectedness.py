"""Who can be affected by a change of code: a node that is called unaffected never has another catalog."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from environments.directories import EnvironmentSettings, read_environment
from environments.directory_environment import DirectoryEnvironment
from environments.files.code_files import DiskFiles, TrackedFiles
from environments.module_sources import ModuleSources, module_sources
from language.codegen.codecache import CodeCache
from language.evaluation.compile import compile_catalog
from language.evaluation.dependencies import NodeDependencies
from language.evaluation.runtime import NAMES
from language.host import NodeInput
from language.loading.builtins import all_functions
from language.loading.loader import Loader
from master.dependencies.answers import SideAnswers
from master.dependencies.recorded_environment import RecordedEnvironment
from master.dependencies.recorder import RecordSender
from master.dependencies.records import CatalogRecords
from master.pools.compile_worker import CompileWorker
from master.preview.worker import PreviewWorker
from shared.errors import PuppetError
from tests.support.edited_site import BASE, EDITS, NODES, node, write
from tests.support.examples import examples

pytestmark = pytest.mark.works_with("Preview", "no affected node is missed")


def previewed(worker: PreviewWorker, roots: tuple[Path, Path], name: str, role: str, records: str = "") -> dict[str, Any]:
    sides = {"environment": "production", "roots": [str(root) for root in roots]}
    job = {"ask": "preview", "sides": sides, "each": 60, "records": records, **node(name, role)}
    outcome: dict[str, Any] = json.loads(worker.answer(job, lambda entry: None))
    return outcome


def compiled_afresh(root: Path, name: str, role: str) -> Any:
    """What the code in a folder comes to for a node when nothing was read before: the catalog and what sources hold; or the error."""
    environment = read_environment("production", str(root), DiskFiles(), EnvironmentSettings((str(root.parent),)))
    host = DirectoryEnvironment(environment, DiskFiles(), settings={})
    loader = Loader(host, NAMES, CodeCache(), log=lambda level, finding: None, builtins=all_functions())
    input_ = NodeInput.for_node(environment=environment.name, **node(name, role))
    try:
        catalog = compile_catalog(host, loader, input_, version=0, log=lambda entry: None)
    except PuppetError as error:
        return str(error).replace(str(root), "ROOT")
    del catalog["catalog_uuid"]
    sources = ModuleSources(host)
    keys = [key for resource in catalog["resources"] for key in module_sources(resource.get("parameters", {}))]
    return json.loads(json.dumps(catalog).replace(str(root), "ROOT")), [sources.text(key) for key in keys]


def record_compilations(
    folder: Path,
    records: CatalogRecords,
    nodes: Sequence[tuple[str, str]],
    edits: Sequence[tuple[str, str | None]] = (),
    compiler: Mapping[str, Any] | None = None,
) -> None:
    """
    Compile catalogs for agents of the environment `production` in a folder, before and after some edits; keep what they depend on.

    Args:
        compiler: the settings of the master.
    """

    def write_record(datagram: bytes) -> None:
        name, _, packed = datagram.partition(b"\0")
        records.save(name.decode(), packed)

    sender = RecordSender(write_record)
    worker = CompileWorker(EnvironmentSettings((str(folder),), compiler=compiler or {}), CodeCache(), records=sender)
    for change in ((), edits) if edits else ((),):
        write(folder / "production", change)
        for name, role in nodes:
            job = {**node(name, role), "ask": "catalog", "environment": "production", "code_id": None, "generation": 0}
            with suppress(PuppetError):
                worker.answer({**job, "exported": False, "is_stored": False}, lambda entry: None)
            sender.send()


def new_worker(**compiler: Any) -> PreviewWorker:
    return PreviewWorker(EnvironmentSettings(("/nonexistent",), compiler=compiler), CodeCache())


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(EDITS), max_size=3),
    st.lists(st.sampled_from(EDITS), max_size=2),
    st.permutations(NODES),
)
@example([EDITS[0]], [], list(NODES))
@example([], [("modules/web/manifests/port.pp", "define web::port { }\n")], list(NODES))
def test_a_node_that_is_called_unaffected_has_the_same_catalog(
    before: list[tuple[str, str | None]], edits: list[tuple[str, str | None]], nodes: list[tuple[str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        roots = Path(folder, "first"), Path(folder, "second")
        write(roots[0], [*BASE.items(), *before])
        shutil.copytree(roots[0], roots[1])
        write(roots[1], edits)
        afresh = {name: [compiled_afresh(root, name, role) for root in roots] for name, role in nodes}
        for _ in range(2):  # the second time with the records of the first one
            worker = new_worker()
            for name, role in nodes:
                result = previewed(worker, roots, name, role, f"{folder}/records")
                if result["state"] == "unaffected":
                    assert afresh[name][0] == afresh[name][1], (name, edits)
                if not edits and not isinstance(afresh[name][0], str):
                    # What is wrong with data is said at each compilation, which nothing spares then.
                    warns_of_data = any("data_hash" in warning["message"] for warning in result["warnings"])
                    assert result["state"] == ("unchanged" if warns_of_data else "unaffected")


EDIT_LISTS = st.lists(st.sampled_from(EDITS), max_size=2)
UNLIMITED = ("environment.conf", "modulepath = site:modules\nenvironment_timeout = unlimited\n")


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(80), suppress_health_check=list(HealthCheck))
@given(EDIT_LISTS, EDIT_LISTS, EDIT_LISTS, EDIT_LISTS, st.booleans(), st.permutations(NODES))
def test_nor_has_one_that_a_record_of_its_compilation_for_the_agent_calls_unaffected(
    before: list[tuple[str, str | None]],
    between: list[tuple[str, str | None]],
    since: list[tuple[str, str | None]],
    edits: list[tuple[str, str | None]],
    is_unlimited: bool,
    nodes: list[tuple[str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        roots, records = (Path(folder, "production"), Path(folder, "second")), CatalogRecords(Path(folder, "records"))
        write(roots[0], [*BASE.items(), *before, *([UNLIMITED] if is_unlimited else [])])
        record_compilations(Path(folder), records, nodes, between)
        write(roots[0], since)
        shutil.copytree(roots[0], roots[1])
        write(roots[1], edits)
        worker = new_worker()
        for name, role in nodes:
            outcome = previewed(worker, roots, name, role, str(records.folder))
            afresh = [compiled_afresh(root, name, role) for root in roots]
            if outcome["state"] == "unaffected":
                assert afresh[0] == afresh[1], (name, edits)
            if not (since or edits or is_unlimited) and not isinstance(afresh[0], str):
                assert outcome["compilations"] == 0


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit[0])
def test_no_single_edit_is_missed(tmp_path: Path, edit: tuple[str, str | None]) -> None:
    roots = tmp_path / "first", tmp_path / "second"
    for root in roots:
        write(root, BASE.items())
    write(roots[1], [edit])
    worker = new_worker()
    states = {name: previewed(worker, roots, name, role)["state"] for name, role in NODES}
    for name, role in NODES:
        if states[name] == "unaffected":
            assert compiled_afresh(roots[0], name, role) == compiled_afresh(roots[1], name, role)


GLOBS = ("hiera.yaml", "version: 5\nhierarchy:\n  - name: globs\n    globs: ['more/*.yaml', 'common.yaml']\n")
NOTICED_BY: Mapping[str, tuple[tuple[str, str], ...]] = {
    "definition": (("db1", "site/profile/manifests/spare.pp"), ("web1", "modules/web/manifests/init.pp")),
    "environment-file": (("plain1", "types/text.pp"),),
    "function": (
        ("web1", "functions/to_json.pp"),
        ("web1", "modules/web/functions/name.pp"),
        ("web1", "modules/web/functions/size.pp"),
        ("web1", "modules/web/lib/puppet/functions/web/size.py"),
        ("web1", "modules/unused/lib/puppet/functions/to_json.py"),
    ),
    "kind": (("web1", "modules/web/files/banner"),),
    "glob": (("web1", "data/more/x.yaml"),),
    "manifests": (("plain1", "manifests/other.pp"),),
    "module": (("db1", "modules/later/files/page"),),
    "module-file": (("web1", "modules/web/types/port.pp"),),
    "read": (("plain1", "data/common.yaml"), ("db1", "site/profile/templates/db.erb")),
    "type": (("web1", "modules/web/lib/puppet/type/web_site.rb"), ("db1", "modules/unused/lib/puppet/type/extra.rb")),
}
"""Changes of catalogs that questions of one kind only can tell."""


@pytest.mark.parametrize(("kind", "name", "path"), [(kind, *case) for kind, cases in NOTICED_BY.items() for case in cases])
def test_questions_of_each_kind_tell_changes_that_no_others_tell(tmp_path: Path, kind: str, name: str, path: str) -> None:
    roots, role = (tmp_path / "first", tmp_path / "second"), dict(NODES)[name]
    for root in roots:
        write(root, [*BASE.items(), *([GLOBS] if kind == "glob" else [])])
    write(roots[1], [next(edit for edit in EDITS if edit[0] == path)])
    assert compiled_afresh(roots[0], name, role) != compiled_afresh(roots[1], name, role)
    assert kinds_that_differ(roots, name, role) == {kind}


def kinds_that_differ(roots: tuple[Path, Path], name: str, role: str) -> set[str]:
    """Compile a node from the first folder; return the kinds of its questions that the second one answers otherwise."""
    hosts = []
    for root in roots:
        environment = read_environment("production", str(root), DiskFiles(), EnvironmentSettings((str(root.parent),)))
        hosts.append(DirectoryEnvironment(environment, DiskFiles()))
        if root == roots[0]:
            recorded = RecordedEnvironment(environment, TrackedFiles(), live=TrackedFiles())
    loader = Loader(recorded, NAMES, CodeCache(), log=lambda level, finding: None, builtins=all_functions())
    reads = NodeDependencies()
    input_ = NodeInput.for_node(environment="production", **node(name, role))
    catalog = compile_catalog(recorded, loader, input_, version=0, log=lambda entry: None, dependencies=reads)
    recorded.finish_catalog(loader, reads, catalog)
    before, after = (SideAnswers(host) for host in hosts)
    return {question[0] for question in recorded.inputs.questions() if before.answer(question) != after.answer(question)}


WHO = {
    "site/profile/manifests/web.pp": {"web1", "web2"},
    "site/profile/manifests/params.pp": {"web1", "web2"},
    "site/profile/templates/db.erb": {"db1"},
    "modules/web/files/page": {"web1", "web2"},
    "modules/web/functions/name.pp": {"web1", "web2"},
    "modules/web/functions/size.pp": {"web1", "web2"},
    "modules/web/lib/puppet/functions/web/size.py": {"web1", "web2"},
    "modules/web/manifests/vhost.pp": {"web1", "web2"},
    "modules/unused/lib/puppet/functions/to_json.py": {"web1", "web2"},
    "data/nodes/web1.yaml": {"web1"},
    "data/roles/db.yaml": {"db1"},
    "modules/extra/manifests/init.pp": {"db1"},
    "modules/later/files/page": {"db1"},
    "modules/web/files/banner": {"web1", "web2"},
    "modules/unused/manifests/init.pp": set[str](),
    "functions/environment_own.pp": set[str](),
    "data/more/x.yaml": set[str](),
}


@pytest.mark.parametrize(("path", "affected"), WHO.items(), ids=list(WHO))
def test_only_nodes_whose_catalogs_read_what_changed_are_compiled_twice(tmp_path: Path, path: str, affected: set[str]) -> None:
    roots = tmp_path / "first", tmp_path / "second"
    write(roots[0], BASE.items())
    shutil.copytree(roots[0], roots[1])
    write(roots[1], [(path, next(content for name, content in EDITS if name == path))])
    worker = new_worker()
    states = {name: previewed(worker, roots, name, role)["state"] for name, role in NODES}
    assert {name for name, state in states.items() if state != "unaffected"} == affected


def test_a_first_preview_compiles_only_nodes_that_can_be_affected(tmp_path: Path) -> None:
    roots, records = (tmp_path / "production", tmp_path / "second"), CatalogRecords(tmp_path / "records")
    write(roots[0], BASE.items())
    shutil.copytree(roots[0], roots[1])
    write(roots[1], [("site/profile/templates/db.erb", "changed\n")])
    record_compilations(tmp_path, records, NODES)
    worker = new_worker()
    counts = {name: previewed(worker, roots, name, role, str(records.folder))["compilations"] for name, role in NODES}
    assert counts == {"web1": 0, "web2": 0, "db1": 2, "plain1": 0}


READS_SETTINGS = {
    "one": "notice($settings::server)",
    "by_name": "notice(getvar('settings::server'))",
    "all": "notice($settings::all_local['server'])",
    "another": "notice($settings::masterport, $settings::nothing)",
    "none": "",
}


@pytest.mark.parametrize("how", READS_SETTINGS)
def test_a_setting_counts_for_the_catalogs_that_read_it(tmp_path: Path, how: str) -> None:
    """A process that makes previews has other settings than the master, such as what stands in its command line."""
    roots, records = (tmp_path / "production", tmp_path / "second"), CatalogRecords(tmp_path / "records")
    for root in roots:
        write(root, [("manifests/site.pp", READS_SETTINGS[how])])
    master = {"server": "a", "masterport": 8140, "daemonize": True}
    record_compilations(tmp_path, records, [("plain1", "plain")], compiler=master)
    counts = [
        previewed(new_worker(**settings), roots, "plain1", "plain", str(records.folder))["compilations"]
        for settings in (master | {"daemonize": False}, master | {"server": "b"})
    ]
    assert counts == [int(how == "all"), int(how not in ("another", "none"))]


def test_a_catalog_of_older_code_that_is_still_loaded_has_no_record_of_the_code_that_is_there_now(tmp_path: Path) -> None:
    roots, records = (tmp_path / "production", tmp_path / "second"), CatalogRecords(tmp_path / "records")
    data, manifest = "data/common.yaml", "site/profile/manifests/base.pp"
    write(roots[0], [*BASE.items(), UNLIMITED, (data, "port: 1\n")])
    newer = "class profile::base(String $text) { if defined('extra') { notify { 'extra': } } }\n"
    # The first compilation fails, after it has loaded the class; the second one has the data.
    record_compilations(tmp_path, records, [("plain1", "plain")], [(manifest, newer), (data, BASE[data])])
    shutil.copytree(roots[0], roots[1])
    write(roots[1], [("modules/extra/manifests/init.pp", "class extra { }\n")])
    assert previewed(new_worker(), roots, "plain1", "plain", str(records.folder))["state"] == "changed"


@pytest.mark.slow
def test_a_change_of_a_source_has_only_nodes_compiled_whose_agents_read_it(tmp_path: Path) -> None:
    roots, records = (tmp_path / "production", tmp_path / "second"), CatalogRecords(tmp_path / "records")
    write(roots[0], BASE.items())
    record_compilations(tmp_path, records, NODES)
    write(roots[0], [("modules/web/files/page", "of all\n")])  # no compilation has read it, so that no record is out of date
    shutil.copytree(roots[0], roots[1])
    worker = new_worker()
    assert [previewed(worker, roots, *entry, str(records.folder))["compilations"] for entry in NODES] == [0, 0, 0, 0]
    write(roots[1], [("modules/web/files/page", "changed\n")])
    worker = new_worker()
    assert [previewed(worker, roots, *entry, str(records.folder))["compilations"] for entry in NODES] == [2, 2, 0, 0]


def compilations(worker: PreviewWorker, roots: tuple[Path, Path], records: Path, role: str = "web") -> int:
    return int(previewed(worker, roots, "web1", role, str(records))["compilations"])


def test_with_a_record_of_the_last_preview_a_node_is_compiled_only_when_it_or_its_code_is_another(tmp_path: Path) -> None:
    roots, records = (tmp_path / "first", tmp_path / "second"), tmp_path / "records"
    for root in roots:
        write(root, BASE.items())
    assert compilations(new_worker(), roots, records) == 1
    assert compilations(new_worker(), roots, records) == 0
    assert compilations(new_worker(), roots, records, role="db") == 1
    assert compilations(new_worker(), roots, records, role="web") == 1
    for root in roots:
        write(root, [("modules/web/templates/vhost.epp", "<%- | $port | -%>\nboth\n")])
    assert compilations(new_worker(), roots, records) == 1
    assert compilations(new_worker(), roots, records) == 0
    write(roots[1], [("data/nodes/web1.yaml", "port: 3\n")])
    assert compilations(new_worker(), roots, records) == 2
    (records / "web1").write_bytes(b"torn")
    assert compilations(new_worker(), roots, records) == 2


def test_records_are_bounded_and_the_oldest_go_first(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"node{number}").write_bytes(bytes(100))
        os.utime(tmp_path / f"node{number}", (number, number))
    CatalogRecords(tmp_path).limit(250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node2", "node3"]
    CatalogRecords(tmp_path / "missing").limit(0)
