"""How a run comes to its catalog, and what the wiring makes of the settings."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus

import pytest

from agent.run.retrieval import LastEnvironments, facts_option
from agent.run.steps import FinishedStep, Steps
from agent.run.wiring import Wiring
from agent.servers.http import HttpClient
from agent.servers.server import DialectCache
from agent.state.logbridge import print_line, record_logging
from agent.state.runlog import RunLog
from agent.transaction.summary import summary_text
from shared.data import plainjson
from shared.errors import ConfigError
from shared.indirector.rest import Rest
from shared.indirector.routes import Route
from shared.indirector.termini import Json, MemoryTerminus, Yaml
from shared.models.facts import Facts
from shared.models.report import Metric, Report
from shared.settings import AgentSettings, Conf, load
from shared.wire.dialects import LEGACY, MODERN
from tests.support.fake_server import Reply
from tests.support.scripted_master import NAME, Scripted, catalog, file, reply, root_entry

FACTS = Facts(name="web1", values={"os": {"name": "Debian"}, "count": 2, "text": "a b+c%&=ü", "_timestamp": "x"})


@pytest.mark.parametrize(
    ("dialect", "stringify", "old", "form", "count"),
    [
        (LEGACY, True, False, "pson", "2"),
        (LEGACY, False, False, "pson", 2),
        (MODERN, True, False, "application/json", 2),
        (MODERN, True, True, "pson", 2),
    ],
)
def test_facts_are_escaped_once_more_than_the_form_does(dialect: Any, stringify: bool, old: bool, form: str, count: object) -> None:
    found = facts_option(FACTS, dialect, stringify=stringify, old_server=old)
    assert found["facts_format"] == form
    text = str(found["facts"])
    assert "{" not in text
    assert (" " not in text) and ("+" in text) is (dialect is LEGACY)
    decoded = unquote_plus(text)
    values = plainjson.loads(decoded.encode())["values"]
    assert (values["count"], values["text"]) == (count, "a b+c%&=ü")
    assert "_timestamp" not in values
    if dialect is MODERN:
        assert unquote(text) == decoded


def written(initial: str, *, mode: str = "agent") -> str:
    """Return a summary as an agent writes it."""
    section = f"  run_mode: {mode}\n  initial_environment: {initial}\n  converged_environment: b\n"
    return f"---\nversion:\n  config: 1\napplication:\n{section}resources:\n  total: 1\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (written("a"), LastEnvironments("a", "b")),
        (written("a", mode="user"), None),
        (written("'no'"), LastEnvironments("no", "b")),
        (written("no"), None),
        ("application: {run_mode: agent, initial_environment: a, converged_environment: b}", LastEnvironments("a", "b")),
        ("application: {run_mode: user, initial_environment: a, converged_environment: b}", None),
        ("application: {run_mode: agent, initial_environment: a}", None),
        ("application: {run_mode: agent, initial_environment: ../a, converged_environment: b}", None),
        (
            "---\napplication:\n  run_mode: agent\n  initial_environment: a\n  converged_environment: b\nresources:\n  total: 1\n",
            LastEnvironments("a", "b"),
        ),
        ("version: {config: 1}", None),
        ("- a", None),
        ("{", None),
        ("", None),
    ],
)
def test_the_last_runs_environments_are_read_when_they_can_be(tmp_path: Path, text: str, expected: LastEnvironments | None) -> None:
    path = tmp_path / "last_run_summary.yaml"
    path.write_text(text)
    assert LastEnvironments.read(path) == expected
    assert LastEnvironments.read(tmp_path / "none") is None


async def test_a_node_request_that_fails_is_a_warning_and_the_run_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path, {"/node/": Reply(500, b"no such node")})
    assert await site.run() == 0
    assert "Unable to fetch my node definition, but the agent run will continue:" in caplog.text


@pytest.mark.parametrize("status", [400, 403, 404, 500, 507])
async def test_the_master_s_own_words_are_shown_whatever_the_status_with_its_hint_in_the_same_line_of_the_log(
    status: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    body = b'{"message":"Not Found: Could not find environment \'production\'","issue_kind":"RUNTIME_ERROR","hint":"Make its folder."}'
    refused = Reply(status, body, {"Content-Type": "application/json"})
    site = Scripted(tmp_path, {"/node/": refused, "/catalog/": refused})
    assert await site.run() == 1
    errors = [
        record.getMessage() for record in caplog.records if record.levelname == "ERROR" and "catalog from remote" in record.getMessage()
    ]
    assert len(errors) == 1 and errors[0].endswith("Not Found: Could not find environment 'production'\nMake its folder.")
    assert "Make its folder." not in [record.getMessage() for record in caplog.records]
    assert caplog.text.count("Could not find environment 'production'") >= 2


async def test_the_node_s_environment_is_adopted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    answer = reply({"name": NAME, "environment": "testing", "parameters": {}})
    site = Scripted(tmp_path, {"/node/": answer, "/catalog/": reply(catalog(environment="testing"))})
    assert await site.run() == 0
    assert "switching agent to 'testing'" in caplog.text
    assert all("environment=testing" in ask.target for ask in site.master.asked[1:])


async def test_an_environment_that_is_not_there_does_not_empty_the_plugins(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    site = Scripted(tmp_path, {"/file_metadatas/": Reply(404, b"gone")})
    lib = site.agent_root / "var" / "lib"
    lib.mkdir(parents=True)
    (lib / "kept.rb").write_text("x")
    assert await site.run() == 0
    assert "Environment 'production' not found on server, skipping initial pluginsync." in caplog.text
    assert (lib / "kept.rb").exists()


async def test_a_run_in_an_environment_that_is_not_there_sends_no_report_to_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path, {"/file_metadatas/": Reply(404, b"gone"), "/report/": Reply(404, b"gone")})
    assert await site.run(strict_environment_mode=True) == 1
    errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert errors == ["Environment 'production' not found on server, aborting run."]
    assert not any("/report/" in line for line in site.asked())


BROKEN_PLUGIN = root_entry(relative_path="a.rb", type="file", mode=420, checksum={"type": "sha256", "value": "{sha256}" + "0" * 64})
BROKEN = [
    {"/file_metadatas/plugins": reply([root_entry(), BROKEN_PLUGIN]), "/file_content/": Reply(body=b"another")},
    {"recurse=false": reply([root_entry()]), "/file_metadatas/pluginfacts": Reply(500, b"sorry")},
]


@pytest.mark.parametrize("broken", BROKEN, ids=["a file", "a mount"])
@pytest.mark.parametrize(
    ("more", "code", "status"),
    [
        ({}, 2, "on_failure"),
        ({"usecacheonfailure": False}, 1, "failed"),
        ({"ignore_plugin_errors": True}, 2, "not_used"),
        ({"pluginsync": False}, 2, "not_used"),
    ],
    ids=["the cached catalog", "no run", "ignored", "not asked for"],
)
async def test_without_all_plugins_the_catalog_that_was_made_for_older_ones_is_applied(
    tmp_path: Path, broken: dict[str, Reply], more: dict[str, Any], code: int, status: str
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(file(old, "x")))})
    assert await site.run() == 2
    old.unlink()
    site.answers = {**broken, "/catalog/": reply(catalog(file(new, "x")))}
    assert await site.run(**more) == code
    assert (old.exists(), new.exists()) == (status == "on_failure", status == "not_used")
    report = plainjson.loads(site.master.asked[-1].body)
    assert report["cached_catalog_status"] == status.replace("failed", "not_used") and (report["status"] == "failed") == (code == 1)


async def test_without_plugins_and_without_a_cached_catalog_a_new_one_is_applied(tmp_path: Path) -> None:
    path = tmp_path / "file"
    site = Scripted(tmp_path, {**BROKEN[0], "/catalog/": reply(catalog(file(path, "x")))})
    assert await site.run() == 2
    assert path.exists()


async def test_the_plugins_are_asked_for_once(tmp_path: Path) -> None:
    site = Scripted(tmp_path)
    assert await site.run() == 0
    assert [line for line in site.asked() if "file_metadatas" in line] == [
        "GET /puppet/v3/file_metadatas/pluginfacts",
        "GET /puppet/v3/file_metadatas/plugins",
    ]


async def test_strict_environment_mode_refuses_another_environment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(environment="other"))})
    assert await site.run(strict_environment_mode=True) == 1
    assert "strict_environment_mode is set" in caplog.text


async def test_an_empty_catalog_of_another_environment_is_a_restart_not_a_catalog(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    path = tmp_path / "file"

    def answer(ask: Any) -> Reply:
        return reply(
            catalog(environment="b", resources=[], edges=[]) if "=production" in ask.target else catalog(file(path, "x"), environment="b")
        )

    site = Scripted(tmp_path, {"/catalog/": answer})
    assert await site.run() == 2
    assert path.read_text() == "x"
    assert "restarting agent run with environment 'b'" in caplog.text


@pytest.mark.parametrize(("command", "code"), [("exit 3", 1), ("true", 2)])
async def test_a_prerun_command_that_fails_stops_the_run_and_the_postrun_command_still_runs(
    tmp_path: Path, command: str, code: int
) -> None:
    path, after = tmp_path / "file", tmp_path / "after"
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(file(path, "x")))})
    assert await site.run(prerun_command=command, postrun_command=f"touch {after}") == code
    assert path.exists() is (code == 2)
    assert after.exists()
    assert site.asked()[-1].startswith("PUT /puppet/v3/report/")


async def test_a_postrun_command_that_fails_makes_the_run_fail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path)
    assert await site.run(postrun_command="echo oh; exit 7") == 1
    assert "Could not run command from postrun_command: Execution of 'echo oh; exit 7' returned 7: oh" in caplog.text


async def test_a_password_in_a_catalog_is_in_no_log_and_no_readable_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "secret"
    resource = {**file(path, "canary-4711", show_diff=True), "sensitive_parameters": ["content"]}
    site = Scripted(tmp_path, {"/catalog/": reply(catalog(resource))})
    assert await site.run(debug=True, show_diff=True) == 2
    assert path.read_text() == "canary-4711"
    assert "canary-4711" not in caplog.text
    holders = [each for each in site.agent_root.rglob("*") if each.is_file() and b"canary-4711" in each.read_bytes()]
    assert holders == [site.cached]
    assert site.cached.stat().st_mode & 0o777 == 0o600
    assert b"canary-4711" not in site.master.asked[-1].body


# --- wiring


def wired(tmp_path: Path, **routes: Route) -> Wiring:
    settings: AgentSettings = load(AgentSettings, section="agent", flags={"vardir": str(tmp_path), "certname": "a"}, conf=Conf())
    return Wiring(settings, HttpClient(None), DialectCache(), routes)


def test_the_bindings_are_those_of_an_agent(tmp_path: Path) -> None:
    wiring = wired(tmp_path)
    assert isinstance(wiring.catalog.terminus, Rest)
    assert isinstance(wiring.catalog.cache, Json)
    assert {name: type(binding.terminus).__name__ for name, binding in wiring.indirector.items()} == {
        "catalog": "Rest",
        "node": "Rest",
        "facts": "Facter",
        "report": "_Reports",
        "file_metadata": "Rest",
        "file_content": "Rest",
        "certificate": "Rest",
        "certificate_request": "Rest",
        "certificate_revocation_list": "Rest",
    }


def test_routes_yaml_wins(tmp_path: Path) -> None:
    wiring = wired(tmp_path, catalog=Route("yaml", ""), facts=Route("memory"), node=Route(cache="json"))
    assert isinstance(wiring.catalog.terminus, Yaml)
    assert wiring.catalog.cache is None
    assert isinstance(wiring.indirector["facts"].terminus, MemoryTerminus)
    assert isinstance(wiring.indirector["node"].cache, Json)


def test_a_terminus_that_does_not_exist_is_named_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Could not find terminus jsn for indirection catalog") as caught:
        wired(tmp_path, catalog=Route("jsn"))
    assert caught.value.hint == "Did you mean json?"


MINE = """
from shared.indirector.core import Terminus


class Mine(Terminus):
    def __init__(self, context):
        self.context = context
"""


def test_a_module_s_terminus_is_found_in_the_plugins(tmp_path: Path) -> None:
    path = tmp_path / "lib" / "puppet" / "indirector" / "node" / "mine.py"
    path.parent.mkdir(parents=True)
    path.write_text(MINE)
    terminus = wired(tmp_path, node=Route("mine")).indirector["node"].terminus
    assert type(terminus).__name__ == "Mine"
    assert terminus.context.settings["certname"] == "a"


def test_the_proxy_is_only_used_when_it_is_set() -> None:
    settings = load(AgentSettings, section="agent", flags={"certname": "a"}, conf=Conf())
    assert not HttpClient.of(settings, None).connecting.proxy.serves("puppet")
    proxied = load(
        AgentSettings, section="agent", flags={"certname": "a", "http_proxy_host": "proxy", "no_proxy": "localhost,.lan"}, conf=Conf()
    )
    client = HttpClient.of(proxied, None)
    assert client.connecting.proxy.serves("puppet.example.com")
    assert not client.connecting.proxy.serves("puppet.lan")


# --- steps, logs, summary


def test_steps_add_up_and_are_seen_even_when_they_fail() -> None:
    clock = iter([0.0, 1.0, 3.0, 10.0, 14.0, 20.0, 21.0])
    seen: list[FinishedStep] = []
    steps = Steps(seen.append, clock=lambda: next(clock))
    with steps.step("facts", metric="fact_generation") as doing:
        doing.detail = "5 facts"
    with steps.step("facts", metric="fact_generation"):
        pass
    with pytest.raises(ValueError, match="x"), steps.step("catalog"):
        raise ValueError("x")
    assert steps.metrics == {"fact_generation": 6.0}
    assert seen == [FinishedStep("facts", 2.0, "5 facts"), FinishedStep("facts", 4.0, ""), FinishedStep("catalog", 1.0, "failed")]


def test_each_line_is_printed_once_and_kept_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "puppet")
    log = RunLog(level="info", printers=[print_line], now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    with record_logging(log):
        log.info("from the run")
        logging.getLogger("puppet.pluginsync").info("Retrieving %s", "plugin", extra={"source": "/File[x]"})
        logging.getLogger("puppet.http").debug("too fine")
    logging.getLogger("puppet.http").info("after the run")
    assert [(line.source, line.message) for line in log.lines] == [("Puppet", "from the run"), ("/File[x]", "Retrieving plugin")]
    assert [record.getMessage() for record in caplog.records] == ["from the run", "Retrieving plugin", "after the run"]


def test_the_summary_is_aligned_and_ordered_as_puppets() -> None:
    report = Report(
        name="a",
        configuration_version=7,
        puppet_version="7.23.0",
        environment="production",
        metrics={
            "events": Metric.of("events", {"total": 2, "failure": 0, "success": 2}),
            "time": Metric.of("time", {"total": 1.5, "file": 1.25, "transaction_evaluation": 0.004}),
        },
    )
    assert summary_text(report.to_summary(last_run=1795228347)) == "\n".join(
        [
            "Application:",
            "         Run mode: agent",
            "   Initial environment: production",
            "   Converged environment: production",
            "Events:",
            "          Success: 2",
            "            Total: 2",
            "Time:",
            "   Transaction evaluation: 0.00",
            "             File: 1.25",
            "         Last run: 1795228347",
            "            Total: 1.50",
            "Version:",
            "           Config: 7",
            "           Puppet: 7.23.0",
        ]
    )


async def test_facts_over_a_soft_limit_are_warned_about_and_sent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Scripted(tmp_path)
    assert await site.run(top_level_facts_soft_limit=1, payload_soft_limit=100) == 0
    assert "exceeds the top facts limit: 1" in caplog.text and "exceeds the payload size limit: 100" in caplog.text
    assert [line for line in site.asked() if "/catalog/" in line] != []


async def test_the_catalog_is_asked_for_with_the_checksums_and_in_the_name_that_the_settings_say(tmp_path: Path) -> None:
    site = Scripted(tmp_path)
    assert await site.run(supported_checksum_types="sha512,md5", http_user_agent="Ours/1") == 0
    (asked,) = [ask for ask in site.master.asked if "/catalog/" in ask.target]
    assert b"checksum_type=sha512.md5" in asked.body
    assert {ask.headers["user-agent"] for ask in site.master.asked} == {"Ours/1"}
