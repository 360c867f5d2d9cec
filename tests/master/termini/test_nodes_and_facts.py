from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from master.catalogs.compiler_terminus import CompilerTerminus
from master.pools.body_parser import BodyParser
from master.pools.compiled_catalog import CompiledCatalog
from master.pools.jobs import CompileJob
from master.termini.facts import StoredFacts
from master.termini.node import Classifier, Plain, WithFacts, parse_node, with_facts_in_hand
from shared.data import plainjson, plainyaml
from shared.errors import BadData, BadRequest, CompileError, NotFound, PuppetError, UnsupportedMediaType
from shared.indirector import Binding, Client, Request
from shared.indirector.termini import FilePerKey, Json, WriteOnlyYaml, Yaml
from shared.models.catalog import CATALOG
from shared.models.facts import FACTS, Facts
from shared.models.node import NODE, Node
from shared.testing import Shelf
from shared.wire.dialects import LEGACY, MODERN, Dialect


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("classes: [a, b]", {"a": None, "b": None}),
        ("classes:\n  a:\n  b: {x: 1}", {"a": None, "b": {"x": 1}}),
        ("parameters: {a: 1}", {}),
        ("--- {}", {}),
    ],
)
def test_a_classifier_says_classes_as_list_or_map(output: str, expected: dict[str, Any]) -> None:
    node = parse_node("n", output.encode())
    assert node is not None and node.class_parameters() == expected


def test_a_classifier_says_parameters_and_environment() -> None:
    node = parse_node("n", b"---\nenvironment: test\nparameters: {a: [1]}\n")
    assert node is not None and (node.environment, node.parameters) == ("test", {"a": [1]})


def test_a_classifier_that_prints_an_empty_document_knows_no_such_node() -> None:
    assert parse_node("n", b"---\n") is None


@pytest.mark.parametrize(
    "output",
    ["- a", "text", "classes: 5", "classes: [1]", "classes: {a: 5}", "parameters: [1]", "a: [", "environment: ../x", "!ruby/object:ERB {}"],
)
def test_a_classifier_that_prints_something_else_is_an_error(output: str) -> None:
    with pytest.raises(PuppetError):
        parse_node("n", output.encode())


async def test_CMP_08_the_name_is_one_argument_and_a_failure_never_means_no_classes(tmp_path: Path) -> None:
    script = tmp_path / "enc"
    script.write_text('#!/bin/sh\n[ "$1" = bad ] && exit 1\nprintf "classes: [x]\\nparameters: {got: \\"%s\\"}\\n" "$1"\n')
    script.chmod(0o755)
    nodes = Binding(NODE, Classifier([str(script)], timeout=5))
    node = await nodes.find("a b; id")
    assert node is not None and node.parameters == {"got": "a b; id"}
    with pytest.raises(PuppetError, match="Failed to find bad via exec"):
        await nodes.find("bad")


async def test_facts_lie_below_what_the_node_terminus_says() -> None:
    facts = Binding(FACTS, Shelf(Facts(name="n", values={"os": "x", "role": "fact"})))
    shelf: Shelf[Node] = Shelf(Node(name="n", parameters={"role": "enc"}))
    node = await Binding(NODE, WithFacts(shelf, facts)).find("n", environment="test")
    assert node is not None
    assert node.parameters == {"os": "x", "role": "enc"}
    assert node.environment == "test"


async def test_ACL_03_facts_cannot_set_what_only_the_master_says() -> None:
    forged = {"trusted": {"certname": "other"}, "facts": 1, "server_facts": 1, "environment": "secret", "settings": 1, "hostname": "kept"}
    facts = Binding(FACTS, Shelf(Facts(name="n", values=forged)))
    node = await Binding(NODE, WithFacts(Plain(), facts)).find("n")
    assert node is not None
    assert node.parameters == {"hostname": "kept"}
    assert node.environment == "production"


async def test_the_trusted_data_that_a_store_has_among_facts_are_no_forgery(caplog: pytest.LogCaptureFixture) -> None:
    stored = Facts(name="n", values={"trusted": {"certname": "n"}, "settings": 1})
    nodes = WithFacts(Plain(), Binding(FACTS, Shelf(stored)))
    await Binding(NODE, nodes).find("n")
    assert [line.getMessage() for line in caplog.records] == ["Ignoring the fact settings of n: only the master sets it"]
    caplog.clear()
    await with_facts_in_hand(Binding(NODE, nodes), stored).find("n")
    assert "Ignoring the fact trusted of n" in caplog.text, "an agent sent this one"


async def test_facts_that_are_nested_too_deeply_to_be_stored_are_the_nodes_mistake(tmp_path: Path) -> None:
    deep = plainjson.loads(b"[" * 900 + b"]" * 900)
    facts = Binding(FACTS, StoredFacts(Yaml(FACTS, tmp_path)))
    with pytest.raises(BadData, match="The facts of 'n' cannot be stored: nested too deeply"):
        await facts.save(Facts(name="n", values={"deep": deep}))
    assert list(tmp_path.iterdir()) == [] and await facts.find("n") is None


@pytest.mark.parametrize("kind", [Json, Yaml])
async def test_what_others_do_to_stored_facts_counts_at_once(kind: type[FilePerKey[Facts]], tmp_path: Path) -> None:
    here, there = (Binding(FACTS, StoredFacts(kind(FACTS, tmp_path))) for _ in range(2))  # of two masters with one folder
    await here.save(Facts(name="n", values={"a": 1}))
    await there.save(Facts(name="n", values={"a": 2}))
    found = await here.find("n")
    assert found is not None and found.values == {"a": 2}
    await there.destroy("n")
    assert await here.find("n") is None


async def test_facts_are_stored_and_found_again(tmp_path: Path) -> None:
    facts = Binding(FACTS, StoredFacts(Json(FACTS, tmp_path)))
    await facts.save(Facts(name="n", values={"a": {"b": [1]}, "_internal": 1}))
    again = await Binding(FACTS, StoredFacts(Json(FACTS, tmp_path))).find("n")
    assert again is not None and again.values == {"a": {"b": [1]}}


@pytest.mark.parametrize(
    ("conditions", "names"),
    [
        ({"facts.os": "Debian"}, ["a", "b"]),
        ({"facts.os.eq": "Debian", "facts.cores.gt": "4"}, ["b"]),
        ({"facts.cores.le": "4"}, ["a"]),
        ({"facts.os.ne": "Debian"}, ["c"]),
        ({"facts.virtual": "true"}, ["a"]),
        ({"facts.nothing": "x"}, []),
        ({"meta.timestamp.gt": "2026-01-01"}, ["b"]),
        ({}, ["a", "b", "c"]),
    ],
)
async def test_facts_are_searched_by_conditions(tmp_path: Path, conditions: dict[str, str], names: list[str]) -> None:
    facts = Binding(FACTS, StoredFacts(Json(FACTS, tmp_path)))
    await facts.save(Facts(name="a", values={"os": "Debian", "cores": 4, "virtual": True}, timestamp="2025-01-01"))
    await facts.save(Facts(name="b", values={"os": "Debian", "cores": 8}, timestamp="2026-06-01"))
    await facts.save(Facts(name="c", values={"os": "Alpine"}))
    found = await facts.search("x", **conditions)
    assert [each.to_data(LEGACY) for each in found or []] == names


@pytest.mark.parametrize("name", ["os", "meta.colour", "facts.", "node"])
async def test_facts_are_searched_by_nothing_else(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRequest):
        await Binding(FACTS, StoredFacts(Json(FACTS, tmp_path))).search("x", **{name: "x"})


# --- the compiler terminus


class Master:
    """The compiler terminus with fakes around it."""

    def __init__(self, *nodes: Node, external: Callable[[str], Awaitable[Mapping[str, Any]]] | None = None) -> None:
        self.jobs: list[CompileJob] = []
        self.facts: Shelf[Facts] = Shelf()
        facts = Binding(FACTS, self.facts)
        self.catalogs = Binding(
            CATALOG,
            CompilerTerminus(
                facts=facts,
                nodes=Binding(NODE, WithFacts(Shelf(*nodes) if nodes else Plain(), facts)),
                compile=self.compile,
                server_facts={"servername": "m"},
                environments=self.has_environment,
                default_environment="production",
                now=lambda: datetime(2026, 11, 20, tzinfo=UTC),
                **({"external": external} if external else {}),
            ),
        )

    async def has_environment(self, name: str) -> bool:
        return name in ("production", "test")

    async def compile(self, job: CompileJob) -> CompiledCatalog:
        self.jobs.append(job)
        return CompiledCatalog.of(b'{"name":"%s","environment":"%s","resources":[]}' % (job.certname.encode(), job.environment.encode()))

    async def ask(self, dialect: Dialect = MODERN, environment: str = "production", key: str = "n", **options: str) -> Any:
        client = Client("n", "127.0.0.1", True, extensions={"pp_role": "web"})
        return await self.catalogs.find(Request(key=key, options=options, client=client, dialect=dialect, environment=environment))


FACTS_JSON = '{"name":"n","values":{"greeting":"a b+c%d ü","clientcert":"forged"}}'


@pytest.mark.parametrize(
    ("dialect", "form", "text"),
    [
        (LEGACY, "pson", quote_plus(FACTS_JSON)),
        (MODERN, "application/json", quote(FACTS_JSON, safe="")),
        (MODERN, "pson", quote(FACTS_JSON)),
    ],
)
async def test_facts_come_with_the_catalog_request_and_are_stored(dialect: Dialect, form: str, text: str) -> None:
    master = Master()
    catalog = await master.ask(dialect, facts=text, facts_format=form)
    assert catalog.name == "n"
    assert master.facts.instances["n"].values == {"greeting": "a b+c%d ü", "clientcert": "n"}
    (job,) = master.jobs
    assert job.parameters["greeting"] == "a b+c%d ü"
    assert job.trusted == {
        "authenticated": "remote", "certname": "n", "extensions": {"pp_role": "web"}, "hostname": "n", "domain": None, "external": {},
    }  # fmt: skip


async def test_facts_that_are_in_hand_are_stored_once_and_not_read_back() -> None:
    master = Master(Node(name="n", parameters={"role": "enc"}))
    await master.ask(facts=quote('{"name":"n","values":{"role":"fact","os":"x"}}'), facts_format="application/json")
    assert master.facts.asked == [("save", "n")]
    assert (master.jobs[0].facts["role"], master.jobs[0].parameters["role"], master.jobs[0].parameters["os"]) == ("fact", "enc", "x")
    await master.ask()
    assert master.facts.asked == [("save", "n"), ("find", "n")]
    assert master.jobs[1].facts["os"] == "x"


async def test_facts_are_stored_before_the_classifier_runs_and_when_the_compile_fails(tmp_path: Path) -> None:
    """Classifiers of some sites, Foreman's among them, read the file."""
    script = tmp_path / "enc"
    script.write_text(f'#!/bin/sh\nprintf "parameters: {{stored: %s}}\\n" "$(ls {tmp_path}/facts)"\n')
    script.chmod(0o755)
    facts = Binding(FACTS, StoredFacts(Yaml(FACTS, tmp_path / "facts")))
    nodes = Binding(NODE, WithFacts(Classifier([str(script)], timeout=20), facts), cache=WriteOnlyYaml(NODE, tmp_path / "node"))
    jobs: list[CompileJob] = []

    async def compile(job: CompileJob) -> CompiledCatalog:
        jobs.append(job)
        raise CompileError("no")

    async def has_environment(name: str) -> bool:
        return True

    compiler = CompilerTerminus(
        facts=facts,
        nodes=nodes,
        compile=compile,
        server_facts={},
        environments=has_environment,
        default_environment="production",
        now=lambda: datetime(2026, 11, 20, tzinfo=UTC),
    )
    options = {"facts": quote('{"name":"n","values":{"os":"x"}}'), "facts_format": "application/json"}
    with pytest.raises(CompileError):
        await Binding(CATALOG, compiler).find(Request(key="n", options=options))
    assert {name: jobs[0].parameters[name] for name in ("os", "clientcert", "stored")} == {"os": "x", "clientcert": "n", "stored": "n.yaml"}
    stored = await facts.find("n")
    assert stored is not None and stored.values["os"] == "x"
    cached = plainyaml.loads((tmp_path / "node" / "n.yaml").read_bytes(), aliases=True)
    assert cached["parameters"]["os"] == "x"


class Files:
    """The files of facts and nodes below a folder, and a compiler that looks at both and fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: list[tuple[bool, bool]] = []
        self.facts = Binding(FACTS, StoredFacts(Yaml(FACTS, folder / "facts")))
        nodes = Binding(NODE, WithFacts(Plain(), self.facts), cache=WriteOnlyYaml(NODE, folder / "node"))
        self.compiler = CompilerTerminus(
            facts=self.facts,
            nodes=nodes,
            compile=self.compile,
            server_facts={},
            environments=self.has_environment,
            default_environment="production",
            now=lambda: datetime(2026, 11, 20, tzinfo=UTC),
        )

    async def compile(self, job: CompileJob) -> CompiledCatalog:
        self.seen.append(((self.folder / "facts/n.yaml").is_file(), (self.folder / "node/n.yaml").is_file()))
        raise CompileError("no")

    async def has_environment(self, name: str) -> bool:
        return True

    async def ask(self) -> None:
        options = {"facts": quote('{"name":"n","values":{"os":"x"}}'), "facts_format": "application/json"}
        await Binding(CATALOG, self.compiler).find(Request(key="n", options=options))


async def test_facts_and_node_are_stored_before_the_compile(tmp_path: Path) -> None:
    files = Files(tmp_path)
    with pytest.raises(CompileError):
        await files.ask()
    assert files.seen == [(True, True)]
    stored = await files.facts.find("n")
    assert stored is not None and stored.values["os"] == "x"


async def test_a_node_that_cannot_be_recorded_gets_its_catalog_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = Files(tmp_path)
    (tmp_path / "node").write_text("no folder")
    with pytest.raises(CompileError):
        await files.ask()
    assert files.seen == [(True, False)]
    assert "Could not cache node for n" in caplog.text


async def test_a_node_whose_facts_cannot_be_stored_gets_no_catalog(tmp_path: Path) -> None:
    files = Files(tmp_path)
    (tmp_path / "facts").write_text("no folder")
    with pytest.raises(OSError, match="facts"):
        await files.ask()
    assert files.seen == []


async def test_ACL_02_facts_of_another_node_are_refused_and_nothing_is_stored_or_compiled() -> None:
    master = Master()
    with pytest.raises(BadRequest, match=r'requested with fact definition for the wrong node \("other"\)'):
        await master.ask(facts=quote('{"name":"other","values":{}}'), facts_format="application/json")
    assert master.facts.instances == {} and master.jobs == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"facts": "x"}, BadRequest),
        ({"facts": "x", "facts_format": "application/json"}, BadData),
        ({"facts": quote("--- {name: n}"), "facts_format": "yaml"}, UnsupportedMediaType),
        ({"facts": "x", "facts_format": "text/marshal"}, UnsupportedMediaType),
    ],
)
async def test_HTTP_16_facts_in_a_form_that_is_not_taken_are_refused(options: dict[str, str], error: type[PuppetError]) -> None:
    master = Master()
    with pytest.raises(error):
        await master.ask(**options)
    assert master.jobs == []


@pytest.mark.parametrize("options", [{}, {"facts": "null", "facts_format": "application/json"}])
async def test_stored_facts_serve_when_none_came(options: dict[str, str]) -> None:
    master = Master()
    master.facts.instances["n"] = Facts(name="n", values={"old": 1})
    await master.ask(**options)
    assert master.jobs[0].facts == {"old": 1}


async def test_the_classifiers_environment_wins() -> None:
    master = Master(Node(name="n", environment="test"))
    await master.ask()
    assert master.jobs[0].environment == "test"


async def test_an_agent_that_checks_its_environment_gets_an_empty_catalog_of_the_right_one() -> None:
    master = Master(Node(name="n", environment="test"))
    catalog = await master.ask(check_environment="true")
    assert (catalog.environment, catalog.resources, master.jobs) == ("test", [], [])


async def test_an_agent_whose_environment_is_gone_is_sent_to_the_masters_own() -> None:
    master = Master()
    catalog = await master.ask(environment="gone", check_environment="true")
    assert (catalog.environment, catalog.resources, master.jobs) == ("production", [], [])
    await master.ask(environment="gone")  # agents before 6.25 learn it from the catalog itself
    assert master.jobs[0].environment == "production"


async def test_an_unknown_node_and_an_unknown_environment_are_named() -> None:
    with pytest.raises(PuppetError, match="Could not find node 'n'; cannot compile"):
        await Master(Node(name="other")).ask()
    with pytest.raises(NotFound, match="Could not find environment 'nope'"):
        await Master(Node(name="n", environment="nope")).ask()


async def test_escapes_of_all_versions_are_undone() -> None:
    facts = await BodyParser().load_escaped_facts('{"name": "n", "values": {"x": "a%20b+c %C3%BC"}}', MODERN, MODERN.formats["json"])
    assert facts is not None and facts.values == {"x": "a b c ü"}


async def test_programs_of_the_site_are_asked_about_the_certificates_name() -> None:
    async def external(name: str) -> Mapping[str, Any]:
        return {"asked": name}

    master = Master(external=external)
    await master.ask(key="another")
    (job,) = master.jobs
    assert (job.certname, job.trusted["certname"], job.trusted["external"]) == ("another", "n", {"asked": "n"})


async def test_no_catalog_is_made_without_what_a_program_of_the_site_says() -> None:
    async def external(name: str) -> Mapping[str, Any]:
        raise PuppetError("not today")

    master = Master(external=external)
    with pytest.raises(PuppetError, match="not today"):
        await master.ask()
    assert master.jobs == []
