"""Catalogs from memory whose compilation asked a PuppetDB: only while its answers mean the same."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from environments.directories import EnvironmentSettings
from environments.store_questions import MAX_ANSWERS, MAX_QUESTIONS, TOGETHER
from language.codegen.codecache import CodeCache
from master.pools.compile_worker import CompileWorker
from shared.errors import CompileError, PuppetError
from tests.support.compile_jobs import catalog_job
from tests.support.examples import examples
from tests.support.stored_catalogs import stored_data

AWAY = PuppetError("No PuppetDB answers", hint="Look for it.")


def export(title: str, *, kind: str = "Notify", node: str = "other.test", tags: Sequence[str] = (), **parameters: Any) -> dict[str, Any]:
    """A row of what a node exports."""
    return {"type": kind, "title": title, "certname": node, "tags": list(tags), "parameters": parameters, "exported": True}


class Store:
    """A PuppetDB in memory: exported resources, and rows of `nodes{}` and `facts{}`."""

    def __init__(self) -> None:
        self.exports: list[dict[str, Any]] = []
        self.rows: dict[str, list[Any]] = {"nodes{}": [], "facts{}": []}
        self.away: set[str] = set()  # what is not answered: "resources", or a query
        self.batches: list[int] = []  # how many questions came together

    def __call__(self, questions: Sequence[Mapping[str, Any]]) -> list[bytes | PuppetError]:
        self.batches.append(len(questions))
        return [self._answer(question) for question in questions]

    def _answer(self, question: Mapping[str, Any]) -> bytes | PuppetError:
        query = question["query"]
        if question.get("of") == "resources":
            return AWAY if "resources" in self.away else json.dumps([row for row in self.exports if matches(query, row)]).encode()
        return AWAY if query in self.away else json.dumps(self.rows.get(query, [])).encode()


def matches(query: list[Any], row: Mapping[str, Any]) -> bool:
    match query:
        case ["and", *parts]:
            return all(matches(part, row) for part in parts)
        case ["or", *parts]:
            return any(matches(part, row) for part in parts)
        case ["not", part]:
            return not matches(part, row)
        case ["=", "tag", tag]:
            return tag in row["tags"]
        case ["=", ["parameter", name], value]:
            return bool(row["parameters"].get(name) == value)
        case ["=", str(field), value]:
            return bool(row[field] == value)
    raise AssertionError(f"a query that is not known here: {query}")


class Site:
    """An environment on disk, its store, a worker with a memory and one without."""

    def __init__(self, root: Path, manifest: str, files: Mapping[str, str] | None = None) -> None:
        self.root = root / "environments/production"
        for name, text in {"manifests/site.pp": manifest, **(files or {})}.items():
            self.write(name, text)
        self.store = Store()
        environments = EnvironmentSettings((str(root / "environments"),), compiler={"strict": "warning", "storeconfigs": True})
        self.worker = CompileWorker(environments, CodeCache(), memo=2**22, ask_puppetdb=self.store)
        self.fresh = CompileWorker(environments, CodeCache(), ask_puppetdb=self.store)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def outcome(self, worker: CompileWorker | None = None, *, is_stored: bool = False, facts: Mapping[str, Any] | None = None) -> Any:
        """The agent's catalog, the stored one and what was logged; or the error."""
        facts = {"colour": "red", **(facts or {})}
        job = catalog_job("n.test", facts, is_stored=is_stored)
        logs: list[Any] = []
        try:
            compiled = (worker or self.worker).answer(job, logs.append)
        except PuppetError as err:
            return type(err), err.message, err.hint, err.where, logs
        catalog, stored = json.loads(compiled.body), stored_data(compiled.stored)
        assert not stored or stored["catalog_uuid"] == catalog["catalog_uuid"]
        for each in (catalog, stored):
            each.pop("catalog_uuid", None)
            each.pop("producer_timestamp", None)
            each.pop("version", None)  # the second in which a process loaded the environment
        return catalog, stored, logs

    @property
    def hits(self) -> int:
        return self.worker.memo.hits

    def titles(self) -> list[str]:
        outcome = self.outcome()
        assert isinstance(outcome[0], dict), outcome
        return [each["title"] for each in outcome[0]["resources"] if each["type"] == "Notify"]


def test_a_collector_gives_the_catalog_from_memory_until_what_it_collects_changes(tmp_path: Path) -> None:
    site = Site(tmp_path, "Notify <<| tag == 'web' |>>")
    site.store.exports = [export("a", tags=["web"], message="1")]
    assert [site.titles(), site.titles(), site.hits] == [["a"], ["a"], 1]
    site.store.exports += [export("b", tags=["db"]), export("mine", node="n.test", tags=["web"])]
    assert [site.titles(), site.hits] == [["a"], 2]
    site.store.exports += [export("c", tags=["web"])]
    assert [site.titles(), site.hits] == [["a", "c"], 2]
    site.store.exports.reverse()
    assert [site.titles(), site.hits] == [["a", "c"], 3]
    for row in site.store.exports:
        row |= {"line": 7, "resource": "digest"}
    assert [site.titles(), site.hits] == [["a", "c"], 4]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"message": "1"}, {"message": 1}),
        ({"withpath": True}, {"withpath": 1}),
        ({"message": "a", "loglevel": "info"}, {"loglevel": "info", "message": "a"}),
        ({"message": "a"}, {"message": "a", "noop": None}),
    ],
)
def test_what_a_collector_takes_over_counts_to_the_type_and_order(tmp_path: Path, before: dict[str, Any], after: dict[str, Any]) -> None:
    site = Site(tmp_path, "Notify <<| |>>")
    site.store.exports = [export("a", **before)]
    site.outcome()
    site.store.exports = [export("a", **after)]
    assert site.outcome() == site.outcome(site.fresh) and site.hits == 0


def test_to_a_query_of_a_manifest_the_order_counts(tmp_path: Path) -> None:
    site = Site(tmp_path, "notify { \"${puppetdb_query('nodes{}')}\": }")
    site.store.rows["nodes{}"] = ["a", "b"]
    assert [site.titles(), site.titles(), site.hits] == [["[a, b]"], ["[a, b]"], 1]
    site.store.rows["nodes{}"].reverse()
    assert [site.titles(), site.hits] == [["[b, a]"], 1]


def test_data_from_a_puppetdb_are_asked_for_again(tmp_path: Path) -> None:
    files = {
        "hiera.yaml": "version: 5\nhierarchy: [{name: a, data_hash: m::data}]\n",
        "modules/m/functions/data.pp": (
            "function m::data(Hash $options, Puppet::LookupContext $context) { { 'k' => \"${puppetdb_query('nodes{}')}\" } }"
        ),
    }
    site = Site(tmp_path, "notify { lookup('k'): }", files)
    assert [site.titles(), site.titles(), site.hits] == [["[]"], ["[]"], 1]
    site.store.rows["nodes{}"] = ["a"]
    assert [site.titles(), site.hits] == [["[a]"], 1]


def test_a_catalog_that_only_exports_asks_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path, "@@notify { 'out': }")
    first = site.outcome(is_stored=True)
    assert site.outcome(is_stored=True) == first and site.hits == 1
    assert site.store.batches == []


def test_all_questions_are_asked_again_together_and_no_more_by_the_compile_that_follows(tmp_path: Path) -> None:
    site = Site(tmp_path, "Notify <<| |>>\nFile <<| |>>\nnotice(puppetdb_query('nodes{}'), puppetdb_query('facts{}'))")
    site.outcome()
    assert site.store.batches == [1, 1, 1, 1]
    site.outcome()
    assert site.store.batches[4:] == [4] and site.hits == 1
    site.store.rows["nodes{}"] = ["a"]
    site.outcome()
    assert site.store.batches[5:] == [4] and site.hits == 1
    site.outcome()
    assert site.store.batches[6:] == [4] and site.hits == 2


def test_nothing_is_asked_again_when_something_else_has_changed(tmp_path: Path) -> None:
    site = Site(tmp_path, "notify { $facts['colour']: }\nif $facts['colour'] == 'red' { Notify <<| |>> }")
    site.outcome()
    site.store.batches.clear()
    site.outcome(facts={"colour": "blue"})
    assert site.store.batches == []


@pytest.mark.parametrize("manifest", ["notify { 'x': }\nNotify <<| |>>", "$x = 1\nnotice(puppetdb_query('nodes{}'))"])
def test_while_a_puppetdb_is_away_the_error_is_that_of_a_compile_and_comes_at_once(tmp_path: Path, manifest: str) -> None:
    site = Site(tmp_path, manifest)
    first = site.outcome()
    site.store.away = {"resources", "nodes{}"}
    site.store.batches.clear()
    outcome = site.outcome()
    assert site.store.batches == [1]
    kind, message, hint, where, _ = outcome
    assert issubclass(kind, CompileError) and hint == AWAY.hint and AWAY.message in message
    assert where is not None and where.line == 2
    assert outcome == site.outcome(site.fresh)
    site.store.away = set()
    assert site.outcome() == first and site.hits == 1


def test_a_puppetdb_that_is_away_is_asked_for_the_first_questions_only(tmp_path: Path) -> None:
    queries = [f"nodes{{}} # {number}" for number in range(3 * TOGETHER)]
    site = Site(tmp_path, "\n".join(f"puppetdb_query('{query}')" for query in queries))
    first = site.outcome()
    site.store.away = set(queries)
    site.store.batches.clear()
    assert site.outcome() == site.outcome(site.fresh) != first
    assert site.store.batches == [TOGETHER, 1]  # of the worker with a memory, of the other one


@pytest.mark.parametrize(("questions", "hits"), [(MAX_QUESTIONS, 1), (MAX_QUESTIONS + 1, 0)])
def test_a_catalog_with_very_many_questions_is_compiled_each_time(tmp_path: Path, questions: int, hits: int) -> None:
    site = Site(tmp_path, f'Integer[1, {questions}].each |$n| {{ puppetdb_query("nodes{{}} # ${{n}}") }}')
    site.outcome()
    site.outcome()
    assert site.hits == hits


@pytest.mark.parametrize(("octets", "hits"), [(1000, 1), (MAX_ANSWERS, 0)])
def test_a_catalog_with_very_large_answers_is_compiled_each_time(tmp_path: Path, octets: int, hits: int) -> None:
    site = Site(tmp_path, "notify { \"${puppetdb_query('nodes{}').length}\": }")
    site.store.rows["nodes{}"] = ["x" * octets]
    site.outcome()
    site.outcome()
    assert site.hits == hits


def test_a_catalog_in_whose_compile_an_answer_changed_is_not_kept(tmp_path: Path) -> None:
    site = Site(tmp_path, "notify { \"${puppetdb_query('nodes{}')} ${puppetdb_query('nodes{}')}\": }")
    answers = iter(range(100))
    site.worker.environments.ask_puppetdb = lambda questions: [json.dumps([next(answers)]).encode() for _ in questions]
    assert [site.titles(), site.titles()] == [["[0] [1]"], ["[2] [3]"]]
    assert site.hits == 0


# --- never another answer than a compilation's -----------------------------------------------------------------------

PIECES = (
    "Notify <<| tag == 'web' |>>",
    "Notify <<| title != 'a' and message == 'one' |>> { loglevel => warning, tag => 'collected' }",
    "M::D <<| |>> { secret => Sensitive($facts['colour']) }",
    "@@m::d { 'own': size => 2 }",
    "@@notify { 'own': message => $facts['colour'], tag => 'web' }",
    "@notify { 'virtual': tag => 'web' }\nNotify <| tag == 'web' |>",
    "realize(Notify['late'])\n@notify { 'late': }",
    "puppetdb_query('nodes{}').each |$node| { notify { \"node ${node}\": } }",
    "unless puppetdb_query('nodes{}').empty { notice(puppetdb_query('facts{}')) }",
    "notify { \"data ${lookup('k')}\": }",
    "notify { \"file ${file('m/f')}\": }",
    "Notify <<| |>> -> notify { 'after all': }",
)
MODULE = {
    "modules/m/manifests/d.pp": (
        'define m::d (Integer $size = 1, $secret = \'none\') { file { "/srv/${title}": content => $secret, mode => "060${size}" } }'
    ),
    "modules/m/files/f": "1",
    "modules/m/functions/data.pp": (
        "function m::data(Hash $options, Puppet::LookupContext $context) { { 'k' => \"${puppetdb_query('facts{}')}\" } }"
    ),
    "hiera.yaml": "version: 5\nhierarchy: [{name: a, data_hash: m::data}]\n",
}
ROW = st.builds(
    lambda title, node, tags, parameters: export(title, node=node, tags=tags, **parameters),
    st.sampled_from(["a", "b", "c", "own"]),
    st.sampled_from(["n.test", "o.test", "p.test"]),
    st.sampled_from([["web"], ["db"], []]),
    st.sampled_from([{}, {"message": "one"}, {"message": "two", "tag": "web"}]),
) | st.builds(
    lambda title, parameters: export(title, kind="M::D", **parameters), st.sampled_from(["d", "e"]), st.sampled_from([{}, {"size": 4}])
)
STEP = st.one_of(
    st.tuples(st.just("nothing"), st.none()),
    st.tuples(st.just("exports"), st.lists(ROW, max_size=4, unique_by=lambda row: (row["type"], row["title"], row["certname"]))),
    st.tuples(st.just("shuffle"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["nodes{}", "facts{}"]), st.lists(st.sampled_from(["x", "y", 1, 1.0, True]), max_size=2, unique=True)),
    st.tuples(st.just("away"), st.sets(st.sampled_from(["resources", "nodes{}", "facts{}"]), max_size=2)),
    st.tuples(st.just("colour"), st.sampled_from(["red", "blue"])),
    st.tuples(st.just("file"), st.sampled_from(["1", "22"])),
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4, unique=True), st.lists(STEP, min_size=1, max_size=10))
def test_no_catalog_from_memory_differs_from_a_compiled_one(pieces: list[str], steps: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), "\n".join(pieces), MODULE)
        colour = "red"
        for what, value in [("nothing", None), *steps]:
            match what:
                case "exports":
                    site.store.exports = list(value)
                case "shuffle":
                    random.Random(value).shuffle(site.store.exports)
                case "nodes{}" | "facts{}":
                    site.store.rows[what] = value
                case "away":
                    site.store.away = value
                case "colour":
                    colour = value
                case "file":
                    site.write("modules/m/files/f", value)
            for is_stored in (False, True):
                outcomes = [site.outcome(worker, is_stored=is_stored, facts={"colour": colour}) for worker in (site.worker, site.fresh)]
                assert outcomes[0] == outcomes[1]
