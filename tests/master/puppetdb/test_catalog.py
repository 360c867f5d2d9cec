"""What a PuppetDB gets of catalogs, compared with what the reference's terminus sent for the same manifests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from environments.directories import EnvironmentSettings
from language.codegen.codecache import CodeCache
from language.host import NativeType
from master.pools.compile_worker import CompileWorker
from master.puppetdb.catalog import as_text, catalog_for_agent, stored_catalog
from shared.errors import CompileError, EvaluationError
from tests.support.compile_jobs import catalog_job
from tests.support.stored_catalogs import stored_data

pytestmark = pytest.mark.works_with("PuppetDB behind this master", "catalogs as puppetserver sends them, recorded")

RECORDED = json.loads((Path(__file__).parents[2] / "data" / "puppetdb" / "terminus.json").read_text())

SITE = """\
node /web/ {
  include app
  @@file { "/srv/out/exported-host-${trusted['certname']}": ensure => file, content => "from ${trusted['certname']}\\n",
    tag => ['Shared', 'web_export'], mode => '0600' }
  @@sshkey { $trusted['certname']: ensure => present, type => 'ssh-rsa', key => "AAAA${facts['short']}",
    host_aliases => [$facts['short'], 'alias'], target => '/srv/out/known_hosts' }
  @@notify { "exported ${trusted['certname']}": message => 'hi', loglevel => info, tag => 'note' }
}
node 'col1.example.com' {
  File <<| tag == 'Shared' |>>
  Sshkey <<| |>>
  Notify <<| tag == 'note' and title != 'exported web9.example.com' |>> { withpath => true }
  Notify <<| (message == 'hi' or loglevel == 'info') and tag != 'zz' |>>
  Notify <<| title == 'none' |>>
  App::Thing <<| size == 3 |>>
  File <<| mode == '0600' and (tag == 'shared' or tag == 'x') |>>
  @@notify { 'own export': tag => 'note' }
  $nodes = puppetdb_query('nodes[certname]{ order by certname }')
  $rows = puppetdb_query(['from', 'facts', ['and', ['=', 'name', 'kernel'], ['=', 'certname', $trusted['certname']]]])
  notify { "query answered ${nodes.length} ${rows.length}": }
}
node 'fail1.example.com' {
  file { '/srv/out/ok': content => 'ok' }
  exec { '/bin/false': }
  exec { '/bin/echo skipped': require => Exec['/bin/false'] }
  file { '/srv/out/nodir/x': content => 'y' }
}
node default { notify { 'plain': } }
"""
APP = """\
class app (Integer $port = 8080, String $greeting = 'hello') {
  tag 'apptag'
  file { '/opt/app/conf': ensure => directory }
  file { 'app config':
    path    => '/opt/app/conf/app.conf',
    content => "port=${port}\\n${greeting}\\n",
    mode    => '0644',
    require => File['/opt/app/conf/'],
    notify  => Exec['reload app'],
    tag     => ['Zeta', 'alpha'],
  }
  file { '/opt/app/conf/secret': content => Sensitive('canary') }
  exec { 'reload app': command => '/bin/true', refreshonly => true, tries => 2, try_sleep => 0 }
  notify { 'num': message => 42, alias => 'number', before => Notify['after num'] }
  notify { 'after num': message => 'x', subscribe => Exec['reload app'], withpath => true }
  app::thing { 'one': size => 3, opts => { 'a' => 1, 'b' => [1, 2.5, true, undef, 'x'], 'c' => { 'd' => 'e' } },
    ver => SemVer('1.2.3'), re => /ab+c/, ts => Timestamp('2026-01-02T03:04:05Z') }
}
"""
THING = """\
define app::thing (Integer $size = 1, Hash $opts = {}, Any $ver = undef, Any $re = undef, Any $ts = undef) {
  notify { "thing ${title}": message => "size ${size}", tag => "thing_${title}" }
}
"""


class RecordedPuppetDb:
    """Answers the recorded questions; `asked` are all of them."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, questions: Sequence[Any]) -> list[bytes]:
        return [self._answer(question) for question in questions]

    def _answer(self, question: Any) -> bytes:
        self.asked.append(json.loads(json.dumps(question)))
        return json.dumps(next(pair["answer"] for pair in RECORDED["answers"] if pair["question"] == self.asked[-1])).encode()


class Site:
    """An environment on disk and a worker that compiles it for a PuppetDB."""

    def __init__(self, root: Path, files: dict[str, str], *, memo: int = 0) -> None:
        folder = root / "environments/production"
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.puppetdb = RecordedPuppetDb()
        settings = EnvironmentSettings((str(root / "environments"),), compiler={"strict": "warning", "storeconfigs": True})
        self.worker = CompileWorker(settings, CodeCache(), memo=memo, ask_puppetdb=self.puppetdb)

    def compile(self, certname: str, *, is_stored: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
        """The agent's catalog and the stored one."""
        facts = {"short": certname.partition(".")[0]}
        job = catalog_job(certname, facts, is_stored=is_stored)
        compiled = self.worker.answer(job, lambda entry: None)
        return json.loads(compiled.body), stored_data(compiled.stored)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path, {"manifests/site.pp": SITE, "modules/app/manifests/init.pp": APP, "modules/app/manifests/thing.pp": THING})


def comparable(catalog: dict[str, Any]) -> dict[str, Any]:
    """What is the same in two compilations: resources by name, tags as sets, files without their folder and lines, edges as a set."""
    resources = {}
    for resource in catalog["resources"]:
        data = {**resource, "tags": set(resource["tags"]), "line": "line" in resource}
        if "file" in data:
            data["file"] = data["file"].partition("/environments/")[2]
        resources[f"{data['type']}[{data['title']}]"] = data
    edges = sorted(json.dumps(edge, sort_keys=True) for edge in catalog["edges"])
    return {"certname": catalog["certname"], "code_id": catalog["code_id"], "resources": resources, "edges": edges}


@pytest.mark.parametrize("recorded", RECORDED["catalogs"], ids=lambda catalog: catalog["certname"])
def test_a_stored_catalog_is_what_the_reference_sends(site: Site, recorded: dict[str, Any]) -> None:
    _, stored = site.compile(recorded["certname"])
    expected = comparable(recorded)
    actual = comparable(stored)
    assert actual["resources"] == expected["resources"]
    assert actual == expected
    assert isinstance(stored["version"], str) and len(stored["catalog_uuid"]) == 36


def test_a_collector_asks_once_for_what_others_exported(site: Site) -> None:
    site.compile("col1.example.com")
    assert sorted(map(json.dumps, site.puppetdb.asked)) == sorted(json.dumps(pair["question"]) for pair in RECORDED["answers"])


def test_an_agent_gets_neither_what_is_only_exported_nor_marks(site: Site) -> None:
    catalog, _ = site.compile("web1.example.com")
    without_store, nothing = site.compile("web1.example.com", is_stored=False)
    assert nothing == {}
    assert not [resource for resource in catalog["resources"] if "exported" in resource["title"] or "virtual" in resource]
    del catalog["catalog_uuid"], without_store["catalog_uuid"]
    assert catalog == without_store


def test_a_collected_export_of_ones_own_reaches_the_agent_once(site: Site) -> None:
    catalog, stored = site.compile("col1.example.com")
    titles = [resource["title"] for resource in catalog["resources"]]
    assert titles.count("own export") == 1 and "exported web2.example.com" in titles
    assert [resource["title"] for resource in stored["resources"]] == titles


def test_PDB_08_nothing_sensitive_is_stored(site: Site) -> None:
    catalog, stored = site.compile("web1.example.com")
    assert "canary" in json.dumps(catalog) and "canary" not in json.dumps(stored)
    assert "sensitive_parameters" not in json.dumps(stored)


def test_a_catalog_from_memory_is_stored_under_its_new_uuid(tmp_path: Path) -> None:
    site = Site(tmp_path, {"manifests/site.pp": "@@notify { 'out': }\nnotify { 'in': }"}, memo=2**20)
    first, stored_first = site.compile("n")
    second, stored_second = site.compile("n")
    assert site.worker.memo.hits == 1
    assert first["catalog_uuid"] == stored_first["catalog_uuid"] != second["catalog_uuid"] == stored_second["catalog_uuid"]
    assert [resource["title"] for resource in stored_second["resources"]][-2:] == ["out", "in"]


def test_a_catalog_that_asked_a_puppetdb_asks_it_again_before_it_is_answered_from_memory(tmp_path: Path) -> None:
    for number, manifest in enumerate(["Sshkey <<| |>>", "notice(puppetdb_query('nodes[certname]{ order by certname }'))"]):
        site = Site(tmp_path / str(number), {"manifests/site.pp": manifest}, memo=2**20)
        asked = []
        for _ in range(2):
            site.compile("col1.example.com")
            asked.append(len(site.puppetdb.asked))
        assert asked == [1, 2] and site.worker.memo.hits == 1


TWICE = [
    {"type": "Notify", "title": "x", "certname": "a.test", "parameters": {}},
    {"type": "Notify", "title": "x", "certname": "b.test", "parameters": {}},
]


@pytest.mark.parametrize(
    ("manifest", "clash"),
    [
        ("Notify <<| |>>", "b.test exports it, which clashes with the export of a.test."),
        ("notify { 'x': }\nNotify <<| |>>", "a.test exports it, which clashes with the one declared here (file: "),
        ("@@notify { 'x': }\nNotify <<| |>>", "a.test exports it, which clashes with the one declared here (file: "),
    ],
)
def test_exports_that_clash_are_an_error_with_both_places(tmp_path: Path, manifest: str, clash: str) -> None:
    site = Site(tmp_path, {"manifests/site.pp": manifest})
    site.worker.environments.ask_puppetdb = lambda questions: [json.dumps(TWICE).encode()]
    with pytest.raises(CompileError, match=r"A duplicate resource was found while collecting exported resources.* Notify\[x\]") as failed:
        site.compile("n")
    assert clash in failed.value.hint and failed.value.where is not None


def test_one_export_that_two_collectors_take_is_collected_once(tmp_path: Path) -> None:
    site = Site(tmp_path, {"manifests/site.pp": "Notify <<| |>>\nNotify <<| tag == 'a' |>> { message => 'm' }"})
    site.worker.environments.ask_puppetdb = lambda questions: [json.dumps(TWICE[:1]).encode() for _ in questions]
    catalog, _ = site.compile("n")
    assert [resource["title"] for resource in catalog["resources"]].count("x") == 1


class OnlyFile:
    """The types that these catalogs have."""

    def find(self, name: str) -> NativeType | None:
        known = {
            "file": NativeType("file", frozenset(), ("path",), trim_slashes=True),
            "notify": NativeType("notify", frozenset(), isomorphic=False),
            "many": NativeType("many", frozenset(), ("name", "provider")),
        }
        return known.get(name)


def resource(type_: str, title: str, *, virtual: bool = False, **parameters: Any) -> dict[str, Any]:
    marks = {"virtual": True, "exported": True} if virtual else {"exported": False}
    return {"type": type_, "title": title, "tags": [], "parameters": parameters, **marks}


def stored(*resources: dict[str, Any]) -> dict[str, Any]:
    return stored_catalog({"name": "n", "version": 1, "resources": list(resources), "edges": []}, OnlyFile())


@pytest.mark.parametrize(
    ("declared", "aliases"),
    [
        (resource("File", "a", path="/a"), ["/a"]),
        (resource("File", "/a/", path="/a"), ["/a"]),
        (resource("File", "/a/"), ["/a"]),
        (resource("File", "/a", path="/a/"), None),
        (resource("File", "a", path="/a", alias=["z", "b"]), ["/a", "b", "z"]),
        (resource("File", "a", path="/a", alias="/a"), ["/a"]),
        (resource("Notify", "a", name="b"), None),
        (resource("Notify", "a", alias="b"), ["b"]),
        (resource("Many", "a", name="b"), None),
        (resource("Some::Define", "a", alias="b"), ["b"]),
        (resource("Class", "main", name="main"), ["main"]),
    ],
    ids=lambda value: json.dumps(value),
)
def test_a_resource_has_its_other_names_as_aliases(declared: dict[str, Any], aliases: list[str] | None) -> None:
    assert stored(declared)["resources"][0]["parameters"].get("alias") == aliases


def test_relationships_become_edges_between_titles() -> None:
    resources = [
        resource("File", "app config", path="/a", before="Notify[n]"),
        resource("Notify", "n", require=["File[/a/]", "File[app config]"], notify=[["Notify[x]"]]),
        resource("Notify", "x", subscribe="Notify[n]", require="Notify[n]"),
    ]
    edges = [(e["source"]["title"], e["relationship"], e["target"]["title"]) for e in stored(*resources)["edges"]]
    assert edges == [
        ("app config", "before", "n"),
        ("app config", "required-by", "n"),
        ("n", "notifies", "x"),
        ("n", "required-by", "x"),
        ("n", "subscription-of", "x"),
    ]


@pytest.mark.parametrize(
    ("other", "reference", "why"),
    [
        (resource("Notify", "b"), "Notify[c]", "because Notify[c] doesn't seem to be in the catalog"),
        (resource("Notify", "b", virtual=True), "Notify[b]", "because Notify[b] is exported but not collected"),
        (resource("Notify", "b"), "notify[b]", "because notify[b] doesn't seem to be in the correct format. Resource references should be"),
    ],
)
def test_a_relationship_that_leads_nowhere_is_an_error(other: dict[str, Any], reference: str, why: str) -> None:
    with pytest.raises(EvaluationError) as failed:
        stored(resource("Notify", "a", require=reference), other)
    assert failed.value.message.startswith(f"Invalid relationship: Notify[a] {{ require => {reference} }}, {why}")


def test_relationships_of_what_is_only_exported_do_not_count() -> None:
    assert stored(resource("Notify", "a", virtual=True, require="Notify[nowhere]"))["edges"] == []


@pytest.mark.parametrize(
    ("rich", "text"),
    [
        ({"__ptype": "Regexp", "__pvalue": "a.b"}, "/a.b/"),
        ({"__ptype": "Default"}, "default"),
        ({"__ptype": "SemVer", "__pvalue": "1.2.3"}, "1.2.3"),
        ({"a": [{"__ptype": "Sensitive", "__pvalue": "canary"}]}, {"a": ["#<Sensitive [value redacted]>"]}),
        ({"__ptype": "Hash", "__pvalue": [1, "a", True, None]}, {"1": "a", "true": None}),
        ([1, 2.5, True, None, "x"], [1, 2.5, True, None, "x"]),
    ],
)
def test_rich_values_become_text(rich: Any, text: Any) -> None:
    assert as_text(rich) == text


def test_a_caller_who_wants_exported_resources_gets_them_without_marks() -> None:
    catalog = {
        "name": "n",
        "resources": [resource("Notify", "a", virtual=True)],
        "edges": [{"source": "Class[main]", "target": "Notify[a]"}],
    }
    full, lean = catalog_for_agent(catalog, exported=True), catalog_for_agent(catalog, exported=False)
    assert "virtual" not in full["resources"][0] and full["edges"] == catalog["edges"]
    assert lean["resources"] == [] and lean["edges"] == []
