"""Catalogs from memory: only when a compilation would give the same."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from environments.directories import EnvironmentSettings
from language.codegen.codecache import CodeCache
from language.evaluation.dependencies import MAX_REASONS
from language.log import LogEntry
from master.pools.compile_worker import CompileWorker
from shared.errors import CompileError, PuppetError
from tests.environments.ruby.site import PROGRAM
from tests.support.compile_jobs import catalog_job
from tests.support.examples import examples
from tests.support.needs import needs_ruby

FACTS = {"os": {"family": "Debian", "release": {"major": "12"}}, "uptime": 5, "colour": "red", "networking": {"fqdn": "n.test"}}
HIERA = "version: 5\nhierarchy: [{name: a, paths: ['%{facts.os.family}.yaml', '%{::colour}.yaml', common.yaml]}]\n"


class Site:
    """An environment on disk, and who compiles it."""

    def __init__(self, root: Path, files: Mapping[str, str], *, memo: int = 2**20, **settings: Any) -> None:
        self.root = root / "environments" / "production"
        self.write({"manifests/site.pp": "", **files})
        compiler = {"strict": "warning", "strict_variables": False}
        environments = EnvironmentSettings((str(root / "environments"),), compiler=compiler, **settings)
        self.bench = CompileWorker(environments, CodeCache(), memo=memo)
        self.fresh = CompileWorker(environments, CodeCache())
        self.logs: list[LogEntry] = []

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def ask(self, bench: CompileWorker | None = None, **changed: Any) -> dict[str, Any]:
        """The catalog; `changed` are attributes of the job."""
        facts = changed.pop("facts", FACTS)
        job = catalog_job("n.test", facts, server_facts={"servername": "m"}) | changed
        self.logs.clear()
        catalog: dict[str, Any] = json.loads((bench or self.bench).answer(job, self.logs.append).body)
        return catalog


@pytest.mark.parametrize(
    "manifest",
    [
        "notify { 'a': }",
        "notify { $facts['os']['family']: }",
        "notify { $::colour: }\nnotify { \"${facts['colour']}s\": }",
        "unless $facts['nosuch'] { notify { 'none': } }",
        'notify { "${fqdn_rand(10)}": }\nnotify { "x${fact(\'os.release.major\')}": }',
        "notify { lookup('k'): }",
        "notify { epp('m/t.epp'): }",
        "notice('said')\nwarning('careful')",
        'notify { "${m::known(1)}": }',
    ],
)
def test_what_a_manifest_does_not_read_may_change(tmp_path: Path, manifest: str) -> None:
    site = Site(
        tmp_path,
        {
            "manifests/site.pp": manifest,
            "hiera.yaml": HIERA,
            "data/common.yaml": "k: v\n",
            "modules/m/templates/t.epp": "<%= $facts['colour'] %>",
            "modules/m/lib/puppet/functions/m/known.py": (
                "from language.functions import Context, function\n\n\n"
                "@function('m::known', 'Integer x', pure=True)\ndef known(context: Context, x: int) -> int:\n    return x + 1\n"
            ),
        },
    )
    first = site.ask()
    logs = list(site.logs)
    second = site.ask(facts=FACTS | {"uptime": 6, "more": True})
    assert site.bench.memo.hits == 1
    assert first.pop("catalog_uuid") != second.pop("catalog_uuid")
    assert first == second
    assert site.logs == logs


def test_a_catalog_with_exported_resources_is_another_one(tmp_path: Path) -> None:
    site = Site(tmp_path, {"manifests/site.pp": "@@notify { 'exported': }\nnotify { \"for ${trusted['certname']}\": }"})

    def titles(**changed: Any) -> list[str]:
        return [each["title"] for each in site.ask(**changed)["resources"] if each["type"] == "Notify"]

    for _ in range(2):  # the second time from memory
        assert titles(exported=False) == ["for n.test"]
        assert titles(exported=True) == ["exported", "for n.test"]
    assert site.bench.memo.hits == 2
    assert titles(exported=True, trusted={"certname": "t"}) == ["exported", "for t"]
    assert titles(exported=True) == ["exported", "for n.test"]
    assert site.bench.memo.hits == 2


def _pure(text: str) -> dict[str, str]:
    return {"manifests/site.pp": text}


OTHER_OS = FACTS | {"os": {"family": "RedHat", "release": {"major": "12"}}}
BLUE = FACTS | {"colour": "blue"}
LATER = FACTS | {"uptime": 6}
CHANGES: dict[str, tuple[dict[str, str], dict[str, Any] | dict[str, str]]] = {
    "a fact by its path": (_pure("notify { $facts['os']['family']: }"), {"facts": OTHER_OS}),
    "a fact at top scope": (_pure("notify { $colour: }"), {"facts": BLUE}),
    "a qualified one": (_pure("class c { notify { $::colour: } }\ninclude c"), {"facts": BLUE}),
    "one that was not there": (_pure("notify { \"x${facts['new']}\": }"), {"facts": FACTS | {"new": 1}}),
    "a variable that was not there": (_pure('notify { "x${new}": }'), {"facts": FACTS | {"new": 1}}),
    "its type only": (_pure("notify { type($uptime, 'generalized').convert_to(String): }"), {"facts": FACTS | {"uptime": "5"}}),
    "1 and true": (_pure('notify { "${uptime}": }'), {"facts": FACTS | {"uptime": True}}),
    "1 and 1.0": (_pure('notify { "${uptime}": }'), {"facts": FACTS | {"uptime": 5.0}}),
    "the order of keys": (
        _pure("notify { \"${facts['os']}\": }"),
        {"facts": FACTS | {"os": {"release": {"major": "12"}, "family": "Debian"}}},
    ),
    "all facts": (_pure('notify { "${facts}": }'), {"facts": LATER}),
    "facts as a value": (_pure("$f = $facts\nnotify { \"${f['uptime']}\": }"), {"facts": LATER}),
    "facts by a computed name": (_pure("$n = 'uptime'\nnotify { \"${facts[$n]}\": }"), {"facts": LATER}),
    "facts with a default": (_pure("notify { \"${facts.get('uptime', 1)}\": }"), {"facts": LATER}),
    "getvar": (_pure("notify { \"${getvar('facts.uptime')}\": }"), {"facts": LATER}),
    "a parameter's default": (_pure('class c($p = $::uptime) { notify { "${p}": } }\ninclude c'), {"facts": LATER}),
    "a parameter's default that reads a fact": (
        _pure("class c($p = $facts['uptime']) { notify { \"${p}\": } }\ninclude c"),
        {"facts": LATER},
    ),
    "in a lambda": (_pure('[1].each |$i| { notify { "${i}${uptime}": } }'), {"facts": LATER}),
    "in a function": (_pure("function f() { $facts['uptime'] }\nnotify { \"${f()}\": }"), {"facts": LATER}),
    "in a text": (_pure('notify { inline_epp("<%= $uptime %>"): }'), {"facts": LATER}),
    "fact()": (_pure("notify { \"${fact('uptime')}\": }"), {"facts": LATER}),
    "fqdn_rand": (_pure('notify { "${fqdn_rand(1000000)}": }'), {"facts": FACTS | {"networking": {"fqdn": "o.test"}}}),
    "a path of data": (
        {"manifests/site.pp": "notify { lookup('k'): }", "hiera.yaml": HIERA, "data/common.yaml": "k: v\n", "data/RedHat.yaml": "k: w\n"},
        {"facts": OTHER_OS},
    ),
    "a value of data": (
        {"manifests/site.pp": "notify { lookup('k'): }", "hiera.yaml": HIERA, "data/common.yaml": 'k: "%{facts.uptime}"\n'},
        {"facts": LATER},
    ),
    "data": (
        {"manifests/site.pp": "notify { lookup('k'): }", "hiera.yaml": HIERA, "data/common.yaml": "k: v\n"},
        {"data/common.yaml": "k: other\n"},
    ),
    "new data": (
        {"manifests/site.pp": "notify { lookup('k'): }", "hiera.yaml": HIERA, "data/common.yaml": "k: v\n"},
        {"data/Debian.yaml": "k: other\n"},
    ),
    "new data in a folder that a pattern searches": (
        {
            "manifests/site.pp": "notify { lookup('k'): }",
            "hiera.yaml": "version: 5\nhierarchy: [{name: a, globs: ['*/x.yaml', '**/y.yaml']}, {name: b, path: common.yaml}]\n",
            "data/common.yaml": "k: v\n",
            "data/more/other.yaml": "",
        },
        {"data/more/x.yaml": "k: other\n"},
    ),
    "new data far below a folder that a pattern searches": (
        {
            "manifests/site.pp": "notify { lookup('k'): }",
            "hiera.yaml": "version: 5\nhierarchy: [{name: a, globs: ['*/x.yaml', '**/y.yaml']}, {name: b, path: common.yaml}]\n",
            "data/common.yaml": "k: v\n",
            "data/more/and/more/other.yaml": "",
        },
        {"data/more/and/more/y.yaml": "k: other\n"},
    ),
    "data of a class": (
        {
            "manifests/site.pp": "class c(String $p = 'v') { notify { $p: } }\ninclude c",
            "hiera.yaml": HIERA,
            "data/common.yaml": "c::p: v\n",
        },
        {"data/common.yaml": "c::p: other\n"},
    ),
    "hiera.yaml": (
        {"manifests/site.pp": "notify { lookup('k'): }", "hiera.yaml": HIERA, "data/common.yaml": "k: v\n", "data/x.yaml": "k: w\n"},
        {"hiera.yaml": "version: 5\nhierarchy: [{name: a, path: x.yaml}]\n"},
    ),
    "a template": (
        {"manifests/site.pp": "notify { epp('m/t.epp'): }", "modules/m/templates/t.epp": "a"},
        {"modules/m/templates/t.epp": "b"},
    ),
    "a file": (
        {"manifests/site.pp": "notify { file('m/t'): }", "modules/m/files/t": "a"},
        {"modules/m/files/t": "b"},
    ),
    "a file that was not there": (
        {"manifests/site.pp": "notify { file('m/s', 'm/t'): }", "modules/m/files/t": "a"},
        {"modules/m/files/s": "b"},
    ),
    "the manifest": (_pure("notify { 'a': }"), _pure("notify { 'b': }")),
    "a module": (
        {"manifests/site.pp": "include m", "modules/m/manifests/init.pp": "class m { notify { 'a': } }"},
        {"modules/m/manifests/init.pp": "class m { notify { 'b': } }"},
    ),
    "trusted data": (_pure("notify { \"x${trusted['x']}\": }"), {"trusted": {"certname": "n.test", "x": 1}}),
    "a class of the ENC": (_pure("class c { notify { 'c': } }"), {"classes": {"c": None}}),
    "the server": (_pure("notify { $server_facts['servername']: }"), {"server_facts": {"servername": "o"}}),
}


@pytest.mark.parametrize("new", [None, "3"])
@pytest.mark.parametrize("old", [None, "2"])
def test_a_new_version_of_the_code_is_put_into_a_catalog_from_memory(tmp_path: Path, old: str | None, new: str | None) -> None:
    site = Site(tmp_path, {"manifests/site.pp": 'notify { \'"code_id":null\': message => \'"code_id":"2"\' }'})
    before, after = site.ask(code_id=old), site.ask(code_id=new)
    assert site.bench.memo.hits == 1
    assert (before["code_id"], after["code_id"]) == (old, new)
    assert before["resources"] == after["resources"]
    assert before["catalog_uuid"] != after["catalog_uuid"]


def test_a_new_revision_beside_the_code_is_put_into_a_catalog_from_memory(tmp_path: Path) -> None:
    site = Site(tmp_path, {"manifests/site.pp": "notify { 'a': }"})
    assert site.ask()["code_id"] is None
    for revision in ("1" * 40, "2" * 40):
        site.write({".git/HEAD": revision})
        assert site.ask()["code_id"] == revision
    assert site.bench.memo.hits == 2


@pytest.mark.parametrize("what", CHANGES)
def test_what_was_read_and_changed_is_compiled(tmp_path: Path, what: str) -> None:
    files, change = CHANGES[what]
    site = Site(tmp_path, files)
    before = site.ask()
    if all("/" in name or name.endswith(".yaml") for name in change):
        site.write(change)
        after = site.ask()
    else:
        after = site.ask(**change)
    assert site.bench.memo.hits == 0
    for catalog in (before, after):
        del catalog["catalog_uuid"]
    assert before != after


@pytest.mark.parametrize(
    ("manifest", "more"),
    [
        ('notify { "${time()}": }', {}),
        ('notify { "${Timestamp()}": }', {}),
        ("notify { shuffle('abc'): }", {}),
        ("notify { str2saltedsha512('abc'): }", {}),
        (
            'notify { "${m::unknown()}": }',
            {
                "modules/m/lib/puppet/functions/m/unknown.py": (
                    "from language.functions import Context, function\n\n\n"
                    "@function('m::unknown')\ndef unknown(context: Context) -> int:\n    return 1\n"
                )
            },
        ),
        (
            "notify { lookup('k'): }",
            {
                "hiera.yaml": "version: 5\nhierarchy: [{name: a, data_hash: m::data}]\n",
                "modules/m/lib/puppet/functions/m/data.py": (
                    "from language.functions import Context, function\n\n\n"
                    "@function('m::data', 'Hash options', 'Any context')\n"
                    "def data(context: Context, options: object, inner: object) -> dict[str, str]:\n    return {'k': 'v'}\n"
                ),
            },
        ),
    ],
)
def test_what_cannot_be_followed_is_compiled_each_time(tmp_path: Path, manifest: str, more: dict[str, str]) -> None:
    site = Site(tmp_path, {"manifests/site.pp": manifest, **more})
    site.ask()
    site.ask()
    assert site.bench.memo.hits == 0


@pytest.mark.parametrize(
    ("changed", "origin"),
    [
        ({}, "memory"),
        ({"facts": FACTS | {"colour": "blue"}}, "node"),
        ({"classes": {"m": None}}, "node"),
        ({"code_id": "2"}, "memory"),
        ({"certname": "other.test"}, "new"),
        ({"modules/m/manifests/init.pp": "class m { notify { 'x': } }"}, "code"),
        ({"data/common.yaml": "k: w\n"}, "files"),
    ],
)
def test_it_is_known_what_a_catalog_was_compiled_for(tmp_path: Path, changed: dict[str, Any], origin: str) -> None:
    site = Site(
        tmp_path,
        {
            "manifests/site.pp": "include m\nnotify { \"${colour} ${lookup('k')}\": }",
            "modules/m/manifests/init.pp": "class m { }",
            "hiera.yaml": HIERA,
            "data/common.yaml": "k: v\n",
        },
    )
    site.ask()
    assert (site.bench.memo.origin, site.bench.reasons) == ("new", [])
    site.write({name: text for name, text in changed.items() if "/" in name})
    site.ask(**{name: value for name, value in changed.items() if "/" not in name})
    assert site.bench.memo.origin == origin


def test_the_code_is_named_that_keeps_a_catalog_from_memory(tmp_path: Path) -> None:
    files = {
        "manifests/site.pp": "include m\n\n$x = time()\n",
        "modules/m/manifests/init.pp": "class m {\n  [1, 2].each |$i| {\n    notify { \"${i} ${shuffle('x')}\": }\n  }\n}\n",
    }
    site = Site(tmp_path, files)
    site.ask()
    assert site.bench.reasons == [
        ("m/manifests/init.pp line 3", "shuffle() is called"),
        ("manifests/site.pp line 3", "the time is asked for"),
    ]
    site.write({name: text.replace("time()", "1").replace("shuffle('x')", "1") for name, text in files.items()})
    site.ask()
    assert site.bench.reasons == []


def test_a_catalog_has_few_reasons_whatever_it_does(tmp_path: Path) -> None:
    site = Site(tmp_path, {"manifests/site.pp": "".join(f"$x{number} = time()\n" for number in range(300))})
    site.ask()
    assert len(site.bench.reasons) == MAX_REASONS


def test_a_catalog_that_is_too_large_says_so(tmp_path: Path) -> None:
    site = Site(tmp_path, {"manifests/site.pp": "notify { 'a': }"}, memo=100)
    site.ask()
    assert site.bench.reasons == [("", "the catalog takes more than catalog_memo (100 octets)")]


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    site = Site(tmp_path, {"manifests/site.pp": "fail('no')"})
    for _ in range(2):
        with pytest.raises(CompileError, match="no"):
            site.ask()
    site.write({"manifests/site.pp": "notify { 'a': }"})
    site.ask()
    assert site.bench.memo.hits == 0


def test_who_is_told_to_forget_compiles(tmp_path: Path) -> None:
    site = Site(tmp_path, {})
    site.ask()
    site.ask(generation=1)
    assert site.bench.memo.hits == 0
    assert site.ask(generation=1) and site.bench.memo.hits == 1


def test_memory_is_limited_and_the_node_not_asked_for_longest_leaves(tmp_path: Path) -> None:
    site = Site(tmp_path, {"manifests/site.pp": "notify { 'a': }"}, memo=10_000)
    for number in range(20):
        site.ask(certname=f"n{number}")
    assert 0 < site.bench.memo.size <= 10_000
    site.ask(certname="n19")
    assert site.bench.memo.hits == 1
    site.ask(certname="n0")
    assert site.bench.memo.hits == 1


def test_without_memory_nothing_is_kept(tmp_path: Path) -> None:
    site = Site(tmp_path, {}, memo=0)
    site.ask()
    site.ask()
    assert (site.bench.memo.hits, site.bench.memo.size) == (0, 0)


# --- never another answer than a compilation's -----------------------------------------------------------------------

PIECES = (
    "notify { \"1 ${facts['os']['family']}\": }",
    'notify { "2 ${colour}": }',
    "notify { \"3 ${lookup('k', default_value => 'none')}\": }",
    "if $facts['uptime'] =~ Integer[0, 5] { notify { '4': } }",
    "include m",
    "notify { \"5 ${epp('m/t.epp')}\": }",
    "$facts['os'].each |$name, $value| { notify { \"6 ${name}\": message => $value } }",
    "notify { \"7 ${getvar('facts.os.release.major')} ${defined('$colour')} ${defined('$nosuch')}\": }",
    "case $::colour { /^r(.)/: { notify { \"8 ${1}\": } } default: { notify { '8': } } }",
    '[$uptime, $nosuch].each |$i, $v| { notify { "9 ${i} ${v}": } }',
    "notify { \"10 ${facts.dig('os', 'family')} ${fact('colour')}\": }",
    "m::d { 'x': }\nM::D<| |> { b => $colour }",
    "notice($facts['colour'])",
    'notify { "11 ${fqdn_rand(100, $colour)}": }',
    "class { 'm::late': p => $facts['os'] }",
)
MODULE = {
    "modules/m/manifests/init.pp": "class m ($a = $facts['colour'], $b = $::uptime) { notify { \"m ${a} ${b}\": tag => $module_name } }",
    "modules/m/manifests/d.pp": "define m::d ($b = $facts['os']['family']) { notify { \"d ${b}\": } }",
    "modules/m/manifests/late.pp": "class m::late (Hash $p) { notify { \"late ${p['family']} ${facts['colour']}\": } }",
    "modules/m/templates/t.epp": "<% $facts['os']['release'].each |$k, $v| { -%><%= $k %>=<%= $v %> <%= $uptime %><% } -%>",
    "hiera.yaml": HIERA,
}
FACT_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "os": st.fixed_dictionaries(
            {"family": st.sampled_from(["Debian", "RedHat"])}, optional={"release": st.just({"major": "12"}) | st.just({"major": 12})}
        ),
        "colour": st.sampled_from(["red", "blue", "Debian", 5, True, ""]),
        "uptime": st.sampled_from([1, 5, 6, "5", 5.0, True, None]),
        "nosuch": st.just("there now"),
        "networking": st.sampled_from([{"fqdn": "a"}, {"fqdn": "b"}, {}]),
    },
)
DATA = {
    "data/common.yaml": ("k: 1\n", 'k: "%{facts.uptime}"\n', "m::a: x\n", ""),
    "data/red.yaml": ("k: red\n", ""),
    "data/Debian.yaml": ("k: deb\n",),
}
STEP = st.one_of(
    st.tuples(st.just("facts"), FACT_VALUES),
    st.sampled_from([("write", {name: text}) for name, texts in DATA.items() for text in texts]),
    st.sampled_from([("write", {"modules/m/templates/t.epp": text}) for text in (MODULE["modules/m/templates/t.epp"], "plain")]),
)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6, unique=True), st.lists(STEP, min_size=1, max_size=8))
def test_memory_never_gives_another_catalog_than_a_compilation(pieces: list[str], steps: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), {"manifests/site.pp": "\n".join(pieces), **MODULE})
        facts: dict[str, Any] = dict(FACTS)
        for kind, given_ in steps:
            if kind == "facts":
                facts = given_
            else:
                site.write(given_)
            assert _outcome(site, site.bench, facts) == _outcome(site, site.fresh, facts)


def _outcome(site: Site, bench: CompileWorker, facts: dict[str, Any]) -> Any:
    """Catalog and log, without what is new each time; or the error."""
    try:
        catalog = site.ask(bench, facts=facts)
    except PuppetError as error:
        return str(error)
    return {name: value for name, value in catalog.items() if name not in ("catalog_uuid", "version")}, list(site.logs)


# --- the same with modules' Ruby: run as Python, run by Ruby and followed, run by Ruby and not followed ---------------------------


RUBY_PIECES = (
    "notify { \"r1 ${m::native($facts['os'])}\": }",
    'notify { "r2 ${m::old($uptime)}": }',
    "notify { \"r3 ${m::in_ruby($facts['colour'])}\": }",
    "notify { \"r4 ${template('m/native.erb')}\": }",
    "notify { \"r5 ${template('m/in_ruby.erb')}\": }",
    'notify { "r6 ${m::reads()}": }',
    "notify { \"r7 ${inline_template('<%= scope[\\'colour\\'].to_s.upcase %> <%= @uptime %>')}\": }",
    'notify { "r8 ${m::clock()}": }',
    "notify { \"r9 ${template('m/all.erb')}\": }",
)
FUNCTIONS = {
    "native": '  def native(x)\n    Puppet.notice("got #{x.class}")\n    x.to_json\n  end\n',
    "old": "",
    "in_ruby": "  def in_ruby(x)\n    x.to_s.unicode_normalize.each_char.to_a.inspect\n  end\n",
    "reads": (
        "  def reads\n    scope = closure_scope\n"
        "    [scope['colour'], call_function('lookup', 'k', { 'default_value' => 0 })].inspect\n  end\n"
    ),
    "clock": "  def clock\n    Time.now.year > 2000\n  end\n",
}
RUBY_MODULE = {
    **{
        f"modules/m/lib/puppet/functions/m/{name}.rb": f"Puppet::Functions.create_function(:'m::{name}') do\n{body}end\n"
        for name, body in FUNCTIONS.items()
        if body
    },
    "modules/m/lib/puppet/parser/functions/m/old.rb": (
        "Puppet::Parser::Functions.newfunction(:'m::old', :type => :rvalue) do |args|\n  [args[0], lookupvar('colour')].join('/')\nend\n"
    ),
    "modules/m/templates/native.erb": "<% if @colour -%>c=<%= @colour %> <%= scope['facts']['os']['family'] %><% end -%>",
    "modules/m/templates/in_ruby.erb": "<%= { 'u' => @uptime, 'n' => @nosuch }.to_yaml %>",
    "modules/m/templates/all.erb": "<%= scope.to_hash.keys.include?('nosuch') %>",
}
CHANGED_RUBY = {
    "modules/m/templates/native.erb": ("<%= @uptime.inspect %>", RUBY_MODULE["modules/m/templates/native.erb"]),
    "modules/m/templates/in_ruby.erb": ("<%= { 'c' => @colour }.to_yaml %>", "<%= [Time.now.year > 2000, @nosuch].to_yaml %>"),
    "modules/m/lib/puppet/functions/m/native.rb": (
        RUBY_MODULE["modules/m/lib/puppet/functions/m/native.rb"].replace("x.to_json", "x.class.to_s"),
        RUBY_MODULE["modules/m/lib/puppet/functions/m/native.rb"],
    ),
    "modules/m/lib/puppet/functions/m/in_ruby.rb": (
        RUBY_MODULE["modules/m/lib/puppet/functions/m/in_ruby.rb"].replace("inspect", "to_yaml"),
    ),
}
RUBY_STEP = st.one_of(STEP, st.sampled_from([("write", {name: text}) for name, texts in CHANGED_RUBY.items() for text in texts]))


@needs_ruby
@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(RUBY_PIECES), min_size=1, max_size=4, unique=True),
    st.lists(RUBY_STEP, min_size=1, max_size=6),
    st.sampled_from([True, False]),
)
def test_memory_gives_the_same_with_code_in_ruby(pieces: list[str], steps: list[tuple[str, Any]], native: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {"manifests/site.pp": "\n".join(pieces), **MODULE, **RUBY_MODULE}
        site = Site(Path(folder), files, ruby=PROGRAM)
        for bench in (site.bench, site.fresh):
            bench.environments.settings.compiler["native_templates"] = native
        facts: dict[str, Any] = dict(FACTS)
        try:
            for kind, given_ in steps:
                if kind == "facts":
                    facts = given_
                else:
                    site.write(given_)
                assert _outcome(site, site.bench, facts) == _outcome(site, site.fresh, facts)
        finally:
            for bench in (site.bench, site.fresh):
                bench.environments.forget()


@needs_ruby
@pytest.mark.slow
@pytest.mark.parametrize("native", [True, False])
def test_a_catalog_with_ruby_in_it_comes_from_memory(tmp_path: Path, native: bool) -> None:
    pieces = [piece for piece in RUBY_PIECES if "all.erb" not in piece]
    site = Site(tmp_path, {"manifests/site.pp": "\n".join(pieces), **MODULE, **RUBY_MODULE}, ruby=PROGRAM)
    site.bench.environments.settings.compiler["native_templates"] = native
    try:
        first = _outcome(site, site.bench, FACTS)
        assert site.bench.reasons == []
        assert _outcome(site, site.bench, FACTS) == first
        assert site.bench.memo.hits == 1
    finally:
        site.bench.environments.forget()


def test_a_type_in_python_is_loaded_again_when_it_has_changed(tmp_path: Path) -> None:
    type_file = "modules/m/lib/puppet/type/m_type.py"
    text = (
        "from shared.ral import Param, Type\n\n\nclass MType(Type, name='m_type'):\n    '''A type.'''\n\n"
        "    name = Param(str, namevar=True, doc='Its name.')\n    alpha = Param(str, doc='A parameter.')\n"
    )
    site = Site(tmp_path, {"manifests/site.pp": "m_type { 'a': alpha => 'x' }", type_file: text})
    site.ask()
    site.write({type_file: text.replace("alpha", "other")})
    with pytest.raises(CompileError, match="no parameter named 'alpha'"):
        site.ask()
    site.write({type_file: text})
    assert site.ask()["resources"]
