"""Custom facts in Ruby: what they answer, which of them count, what those that misbehave cost; tests/interop asks Facter the same."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.facts.builtin.host import Host
from agent.facts.builtin.ruby import parse_ruby
from agent.facts.external import ExternalFactLimits
from agent.facts.facter import FactSources, resolve
from agent.facts.ruby import RubyFactRequest, RubyFactRunner, facter_program, names_in, ruby_only
from agent.ruby.facts import RubyFacts, RubyFactSettings, own_ruby
from agent.ruby.needs import read_setting
from agent.run.factsources import fact_sources
from shared.errors import ConfigError, Unsupported
from shared.ruby import RubySettings, find_ruby
from shared.settings import AgentSettings, load
from shared.settings.conf import Conf
from tests.support.needs import needs_ruby
from tests.support.ruby_facts import FACTS, FAULTS, RECORDED, external_folder
from tests.support.waiting import wait_until

pytestmark = pytest.mark.works_with("Facter and facts in Ruby", "what goes wrong")

RUBY = find_ruby("auto")
ENVIRON = {"PATH": os.environ["PATH"]}
MACHINE = {
    "kernel": "Linux",
    "kernelversion": "6.1.0",
    "kernelmajversion": "6.1",
    "kernelrelease": "6.1.0-1",
    "os": {"family": "Debian", "name": "Debian"},
}


def machine(host: Host) -> dict[str, Any]:
    return dict(MACHINE)


def setting(name: str, section: str) -> Any:
    if name != "vardir":
        raise Unsupported(f"The setting {name} cannot be read by modules")
    return "/var/lib/puppet"


def default_provider(type_name: str, facts: Mapping[str, Any]) -> str | None:
    return {"service": "systemd", "package": "apt"}.get(type_name)


def runner(seconds: float = 30, memory: int = 1 << 30) -> RubyFactRunner:
    return own_ruby(RubyFactSettings(RubySettings(RUBY, seconds, 1 << 20, memory), 20_000, setting, default_provider))


def agent(**flags: Any) -> AgentSettings:
    return load(AgentSettings, section="agent", flags={"certname": "web1", **flags}, conf=Conf())


async def facts_of(folder: Path, code: str | None = None, *, run: RubyFactRunner | None = None, **sources: Any) -> dict[str, Any]:
    """Return the facts that the files of a folder have, or `code` alone."""
    if code is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "code.rb").write_text(code)
    environ = sources.pop("environ", ENVIRON)
    return await resolve(Host(environ=environ), FactSources(custom=[folder], ruby=run or runner(), **sources), [machine])


# --- beside what Facter 4.3 answered


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(RECORDED.read_text())
    return content


@pytest.mark.slow
@needs_ruby
async def test_facts_have_the_values_and_errors_that_facter_gives(
    recorded: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    environ = {**ENVIRON, "FACTER_from_environment": "environment"}
    with caplog.at_level(logging.INFO, "puppet.facts"):
        facts = await facts_of(FACTS, environ=environ, external=[external_folder(tmp_path)])
    own = facts.keys() - (MACHINE.keys() - {"kernelmajversion"}) - {"facterversion", "from_environment", "operatingsystem", "osfamily"}
    assert {name: facts[name] for name in own} == recorded["facts"]
    assert facts["from_environment"] == "environment"
    assert facts["kernelversion"] == "6.1.0"
    assert facts["kernelrelease"] == "6.1.0-1"
    lines = [record.getMessage().replace(str(FACTS), "FOLDER") for record in caplog.records]
    assert [line for line in recorded["lines"] if not any(each.startswith(line) for each in lines)] == []
    assert len(lines) == len(recorded["lines"])


# --- facts that misbehave

LONG = r"it takes longer than 4 seconds, which ruby_timeout and external_fact_timeout allow"
FAULT_ROWS: dict[str, tuple[Any, str]] = {
    "first": ("first", ""),
    "loops": (None, LONG),
    "loops_in_a_command": (None, LONG),
    "loops_in_a_pattern": (None, LONG),
    "asks_for_one_that_loops": ([None, "went on"], ""),
    "exits": (None, "exit was called"),
    "exits_at_once": (None, "Ruby has ended with exit code 3"),
    "aborts": (None, "exit was called"),
    "is_killed": (None, "Ruby has ended by signal 9"),
    "is_terminated": (None, "SIGTERM"),
    "crashes": (None, "Ruby has ended by signal"),
    "forks": ("forked", ""),
    "forks_a_block": ("forked", ""),
    "goes_to_the_background": (None, "Ruby has ended with exit code 0"),
    "takes_memory": (None, "it takes more memory than ruby_memory allows"),
    "takes_memory_at_once": (None, "it takes more memory than ruby_memory allows"),
    "prints": ("printed", ""),
    "floods_stdout": ("flooded", ""),
    "floods_stderr": ("flooded", ""),
    "floods_the_log": ("flooded", ""),
    "fails_after_a_flood": (None, "after all"),
    "is_large": (None, r"Ruby answered \d+ bytes, more than ruby_answer allows \(1048576\)"),
    "recurses": (None, "stack level too deep"),
    "throws": (None, "uncaught throw :nothing"),
    "writes_everywhere": (None, "Ruby answered"),
    "closes_all": (None, "Ruby has ended with exit code 1"),
    "opens_files": (None, "Too many open files"),
    "closes_stdout": ("closed", ""),
    "uses_threads": ("threads", ""),
    "changes_the_folder": ("changed", ""),
    "changes_frozen_text": ("Linux!", ""),
    "uses_puppet": (None, "it uses Puppet::HTTP, which only Puppet's own Ruby has"),
    "reads_a_secret": (None, "The setting http_proxy_password cannot be read by modules"),
    "is_declared_wrongly": (None, r"Invalid resolution options \[:nonsense\]"),
    "has_a_wrong_kind": (None, r"Expected resolution type to be one of \(:simple, :aggregate\) but was nonsense"),
    "has_no_code": (None, "You must pass either code or a block"),
    "after_a_wrong_one": ("is there", ""),
    "sets_what_another_reads": (True, ""),
    "reads_what_another_set": (2, ""),
    "last": ("last", ""),
    "in_latin1": ("Größe", ""),
    "before_the_exit": ("is there", ""),
    "before_the_loop": (None, ""),
}
"""A fact → its value, and the error in the log that names it and its file."""
FILE_ROWS = {
    "dies.rb": "Ruby has ended with exit code 1",
    "exits.rb": r"exit was called \(line: 2\)",
    "loops.rb": LONG,
    "no_encoding.rb": r"invalid multibyte char \(UTF-8\)",
}


@pytest.mark.slow
@needs_ruby
async def test_facts_that_misbehave_cost_only_themselves(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "puppet.facts"):
        facts = await facts_of(FAULTS, run=runner(4, memory=256 << 20))
    lines = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    wrong = {}
    for name, (value, error) in FAULT_ROWS.items():
        found = [line for line in lines if re.search(rf"fact(='{name}'| {name}:)", line)]
        fine = len(found) == 1 and re.search(error, found[0]) and f"{FAULTS}/all.rb, line: " in found[0] if error else not found
        if facts.get(name) != value or not fine:
            wrong[name] = facts.get(name), found
    assert wrong == {}
    for name, error in FILE_ROWS.items():
        found = [line for line in lines if f"{FAULTS}/{name}" in line]
        assert len(found) == 1, name
        assert re.search(error, found[0])
    assert len(lines) == sum(bool(error) for _, error in FAULT_ROWS.values()) + len(FILE_ROWS)
    assert all(len(line) <= 4096 for line in lines)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [line for line in warnings if not re.match(r"\d+ x+$", line)] == [
        "floods_the_log logs more than external_fact_output allows (20000 bytes); the rest is left out",
        "by a thread",
    ]
    assert sum(map(len, warnings)) < 30_000


@pytest.mark.slow
@needs_ruby
async def test_what_facts_print_is_for_those_who_look_for_errors(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    code = "Facter.add(:a) { setcode { puts('to stdout') || warn('to stderr') || system('echo by a command') && 'x' } }"
    with caplog.at_level(logging.DEBUG, "puppet.facts"):
        assert (await facts_of(tmp_path, code))["a"] == "x"
    printed = sorted(record.getMessage() for record in caplog.records if "print" in record.getMessage())
    assert printed == [f"Facts in Ruby print: {text}" for text in ("by a command", "to stderr", "to stdout")]


@pytest.mark.slow
@needs_ruby
async def test_a_command_may_take_more_memory_than_the_facts(tmp_path: Path) -> None:
    code = "Facter.add(:limit) { setcode { [Process.getrlimit(:DATA).first, Facter::Core::Execution.execute('sh -c \"ulimit -d\"')] } }"
    limit, of_command = (await facts_of(tmp_path, code, run=runner(memory=256 << 20)))["limit"]
    assert limit == 256 << 20
    assert of_command == "unlimited"


@pytest.mark.slow
@needs_ruby
async def test_too_many_facts_that_end_the_process_are_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    code = '40.times { |number| Facter.add("d#{number}") { setcode { exit! 1 } } }\nFacter.add(:last) { setcode { 1 } }'
    assert "last" not in await facts_of(tmp_path, code)
    assert caplog.records[-1].getMessage() == (
        f"Facts in Ruby terminated their process 20 times; unresolved facts are missing, of {tmp_path}/code.rb"
    )


@pytest.mark.slow
@needs_ruby
async def test_a_run_that_is_cancelled_ends_the_process_and_its_commands(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    request = RubyFactRequest([tmp_path / "code.rb"], [tmp_path], ENVIRON)
    (tmp_path / "code.rb").write_text(f"Facter.add(:a) {{ setcode {{ system('echo $$ > {mark}; exec sleep 1000') }} }}")
    task = asyncio.ensure_future(runner()(request))
    await asyncio.to_thread(wait_until, lambda: mark.exists() and mark.read_text() != "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    command = Path(f"/proc/{mark.read_text().strip()}/stat")
    await asyncio.to_thread(wait_until, lambda: not command.exists() or command.read_text().split()[2] == "Z")


@needs_ruby
def test_a_request_that_is_closed_before_it_begins_starts_nothing(tmp_path: Path) -> None:
    settings = RubyFactSettings(RubySettings("/no/such/ruby", 1, 1), 1, setting, default_provider)
    facts = RubyFacts(settings, RubyFactRequest([], [tmp_path], ENVIRON))
    facts.close()
    assert facts.values() == {}


async def test_a_ruby_that_cannot_be_started_is_one_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = own_ruby(RubyFactSettings(RubySettings("/no/such/ruby", 1, 1), 1, setting, default_provider))
    assert "a" not in await facts_of(tmp_path, "Facter.add(:a) { setcode { 1 } }", run=run)
    (line,) = (record.getMessage() for record in caplog.records)
    assert line.startswith("Could not find out facts in Ruby: Could not start /no/such/ruby: No such file or directory")


# --- which of several counts

PUPPET_AWARE = """
require 'puppet/type'
require 'puppet/type/service'
Facter.add(:service_provider) { setcode { Puppet::Type.type(:service).newservice(name: 'dummy')[:provider].to_s } }
Facter.add(:package_provider) { setcode { Puppet::Type.type(:package).newpackage(name: 'dummy', allow_virtual: 'true')[:provider].to_s } }
Facter.add(:of_defaults) { setcode { Puppet::Type.type(:service).defaultprovider.name.to_s } }
Facter.add(:given) { setcode { Puppet::Type.type(:package).new(name: 'x', provider: :gem).provider.name.to_s } }
Facter.add(:dir) { setcode { Puppet[:vardir] } }
Facter.add(:version) { setcode { [Puppet.version, Puppet::Util::Package.versioncmp('1.10', '1.9')] } }
Facter.add(:none) { setcode { Puppet::Type.type(:file).defaultprovider.inspect } }
"""


@pytest.mark.slow
@needs_ruby
async def test_facts_use_what_they_need_of_puppet(tmp_path: Path) -> None:
    facts = await facts_of(tmp_path, PUPPET_AWARE)
    assert {name: facts[name] for name in ("service_provider", "package_provider", "of_defaults", "given", "dir", "version", "none")} == {
        "service_provider": "systemd",
        "package_provider": "apt",
        "of_defaults": "systemd",
        "given": "gem",
        "dir": "/var/lib/puppet",
        "version": ["7.23.0", 1],
        "none": "nil",
    }


@pytest.mark.slow
@needs_ruby
async def test_a_modules_fact_counts_before_the_agents_answer_for_it(tmp_path: Path) -> None:
    answers = {"root_home": "/root", "puppet_server": "master", "service_provider": "init"}
    code = (
        "Facter.add(:root_home) { setcode { '/mine' } }\nFacter.add(:puppet_server) { setcode { nil } }\n"
        "Facter.add(:seen) { setcode { %w[root_home puppet_server service_provider].map { |name| Facter.value(name) } } }"
    )
    facts = await facts_of(tmp_path, code, fallbacks=lambda core: answers)
    assert (facts["root_home"], facts["puppet_server"]) == ("/mine", "master")
    assert facts["seen"] == ["/mine", "master", "init"]
    (tmp_path / "external").mkdir()
    (tmp_path / "external" / "x.txt").write_text("root_home=/external\n")
    assert (await facts_of(tmp_path, fallbacks=lambda core: answers, external=[tmp_path / "external"]))["root_home"] == "/external"


@pytest.mark.slow
@needs_ruby
async def test_files_of_all_folders_are_read_in_their_order_and_those_with_python_beside_them_are_not(tmp_path: Path) -> None:
    first, lib, second = tmp_path / "first", tmp_path / "environment", tmp_path / "second"
    for folder in (first, lib, second):
        folder.mkdir()
        (folder / "a.rb").write_text(f"Facter.add(:a) {{ setcode {{ '{folder.name}' }} }}")
        (folder / f"{folder.name}.rb").write_text(f"Facter.add('of_{folder.name}') {{ setcode {{ 1 }} }}")
    (first / "both.rb").write_text("Facter.add(:both) { setcode { 'ruby' } }")
    (second / "both.py").write_text("from agent.facts import fact\n@fact()\ndef both(host, known):\n    return 'python'\n")
    host = Host(environ={**ENVIRON, "FACTERLIB": f"{lib}:{tmp_path}/missing"})
    facts = await resolve(host, FactSources(custom=[first, second], ruby=runner()), [machine])
    assert (facts["a"], facts["both"]) == ("first", "python")
    assert facts["of_first"] == facts["of_environment"] == facts["of_second"] == 1


@pytest.mark.slow
@needs_ruby
async def test_blocked_and_reserved_facts_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "facter.conf").write_text('facts : { blocklist : [ "secret" ] }')
    code = f"Facter.add(:secret) {{ setcode {{ File.write('{tmp_path}/ran', '') }} }}\nFacter.add(:clientcert) {{ setcode {{ 'evil' }} }}"
    facts = await facts_of(tmp_path / "facter", code, conf=tmp_path / "facter.conf")
    assert facts.keys().isdisjoint({"secret", "clientcert"})
    assert not (tmp_path / "ran").exists()
    assert "Ignoring the custom facts clientcert" in caplog.text


# --- without Ruby, and by Facter


def test_the_names_of_ruby_facts_are_read_off_their_files(tmp_path: Path) -> None:
    source = "Facter.add(:One) { }\nFacter.add 'two.x', type: :aggregate do\nend\n  Facter.define_fact(:\"three\")\nadd_to(:four)\n# x\n"
    assert names_in(source) == ["one", "two.x", "three"]
    for name in ("a.rb", "b.rb", "b.py"):
        (tmp_path / name).write_text("")
    assert [path.name for path in ruby_only([tmp_path, tmp_path / "none"])] == ["a.rb"]


@pytest.mark.parametrize(("flags", "program"), [({"ruby": ""}, "ruby"), ({"ruby_facts": "facter"}, "facter")])
async def test_without_a_program_one_warning_names_files_reason_and_remedy(
    flags: dict[str, str], program: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "answered.rb").write_text("Facter.add(:root_home) { setcode { '/x' } }\nFacter.add(:service_provider) { }")
    (tmp_path / "b.rb").write_text("Facter.add(:b) { setcode { 1 } }")
    (tmp_path / "a.rb").write_text("Facter.add(:root_home) { }\nFacter.add(:a) { }")
    sources = replace(fact_sources(agent(**flags)), custom=[tmp_path], external=[], system=[], conf=None, cache=None)
    facts = await resolve(Host(environ={"PATH": "/nowhere"}), sources, [machine])
    assert (facts["root_home"], facts["service_provider"]) != ("/x", None)
    (line,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    reason = f"Facts of modules are in Ruby and missing, as there is no {program} to run them"
    assert line.startswith(f"{reason}: {tmp_path}/a.rb, {tmp_path}/b.rb; install it")


async def test_a_site_that_wants_no_facts_in_ruby_hears_nothing_of_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.rb").write_text("Facter.add(:a) { setcode { 1 } }")
    sources = replace(fact_sources(agent(ruby_facts="no")), custom=[tmp_path], external=[], system=[], conf=None, cache=None)
    with caplog.at_level(logging.DEBUG, "puppet.facts"):
        assert "a" not in await resolve(Host(environ=ENVIRON), sources, [machine])
    assert [record.getMessage() for record in caplog.records if "Ruby" in record.getMessage()] == [
        "Skipped 1 custom facts in Ruby that have no Python counterpart: a.rb"
    ]


@pytest.mark.parametrize(
    ("text", "value"), [("true", "true"), ("yes", "true"), ("False", "false"), ("no", "false"), ("facter", "facter"), ("Facter", "facter")]
)
def test_the_setting_is_a_boolean_or_facter(text: str, value: str) -> None:
    assert agent(ruby_facts=text).ruby_facts == value


def test_another_word_for_the_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="Invalid value 'puppet'; write true, false or facter"):
        agent(ruby_facts="puppet")


@pytest.mark.parametrize(("text", "words"), [("sleep 5", "did not end within"), ("echo '['; exit 1", "ended with 1 and gave no JSON")])
async def test_a_facter_that_hangs_or_babbles_is_one_error(tmp_path: Path, text: str, words: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "facter").write_text(f"#!/bin/sh\n{text}\n")
    (tmp_path / "facter").chmod(0o755)
    request = RubyFactRequest([tmp_path / "a.rb"], [tmp_path], {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert await facter_program(ExternalFactLimits(seconds=0.05 if "sleep" in text else 5))(request) == {}
    assert words in caplog.text
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


# --- facts that need no Ruby


async def test_widespread_facts_of_modules_are_answered_without_ruby(tmp_path: Path) -> None:
    settings = agent(vardir=str(tmp_path), environmentpath="/code/environments", server="master1", ruby="")
    sources = replace(fact_sources(settings), external=[], system=[], conf=None, cache=None)
    facts = await resolve(Host(environ=ENVIRON), replace(sources, custom=[]), [machine])
    assert facts["package_provider"] in ("apt", "dpkg", "dnf", "yum", "zypper", "pacman", "apk", "pip", "pip3", "gem")
    assert {name: facts[name] for name in ("puppet_vardir", "puppet_environmentpath", "puppet_server", "os_service_default")} == {
        "puppet_vardir": str(tmp_path),
        "puppet_environmentpath": "/code/environments",
        "puppet_server": "master1",
        "os_service_default": "<SERVICE DEFAULT>",
    }
    assert facts["root_home"].startswith("/")
    assert facts["service_provider"]
    assert "ruby" not in facts


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vardir", "/v"),
        ("environmentpath", "/e:/f"),
        ("server_list", ["a", "b:81"]),
        ("serverport", 8141),
        ("masterport", 8141),
        ("privatedir", "/s/private"),
        ("stringify_facts", None),
        ("configtimeout", None),
        ("nonsense", None),
        ("http_connect_timeout", 120),
        ("modulepath", ""),
        ("basemodulepath", "/m:/n"),
        ("trace", False),
        ("noop", False),
    ],
)
def test_settings_are_read_as_puppet_gives_them(name: str, value: Any) -> None:
    flags = {
        "vardir": "/v",
        "environmentpath": "/e:/f",
        "server_list": "a, b:81",
        "masterport": "8141",
        "ssldir": "/s",
        "basemodulepath": "/m:/n",
    }
    assert read_setting(agent(**flags), name) == value


@pytest.mark.parametrize("name", ["http_proxy_password", "http_proxy_user", "passfile", "autosign"])
def test_secrets_are_not_read_nor_are_settings_that_no_module_needs(name: str) -> None:
    with pytest.raises(Unsupported, match=f"The setting {name} cannot be read by modules"):
        read_setting(agent(), name)


def test_the_ruby_of_the_machine_is_three_lines() -> None:
    expected = {"platform": "x86_64-linux", "sitedir": "/usr/lib", "version": "3.1.7"}
    assert parse_ruby("x86_64-linux\n/usr/lib\n3.1.7\n") == {"ruby": expected}
    assert parse_ruby("") == parse_ruby("x\ny\n") == parse_ruby("x\n\nz\n") == {}


@needs_ruby
async def test_a_fact_reads_settings_by_section_and_asks_whether_a_service_runs(tmp_path: Path) -> None:
    (tmp_path / "puppet.conf").write_text("[agent]\nenvironment = mine\nssldir = /agent\n[master]\nssldir = /master\n")
    settings = load(AgentSettings, section="agent", flags={"certname": "web1", "confdir": str(tmp_path)})

    def run(name: str, section: str) -> Any:
        return read_setting(settings, name, section)

    code = """
Facter.add(:sections) do
  setcode { %i[main agent master].map { |each| Puppet.settings.values(:x, each).interpolate(:ssldir) } << Puppet.settings['environment'] }
end
Facter.add(:there) { setcode { Puppet::Type.type(:service).new(name: 'no-such-service').provider.status } }
Facter.add(:names) { setcode { %w[serverport yamldir libdir].map { |name| Puppet.settings.values(:x, :server).interpolate(name).nil? } } }
Facter.add(:secret) { setcode { Puppet.settings.values(:x, :master).interpolate(:http_proxy_password) } }
"""
    own = own_ruby(RubyFactSettings(RubySettings(RUBY, 30, 1 << 20, 1 << 30), 20_000, run, default_provider))
    facts = await facts_of(tmp_path / "facts", code, run=own)
    assert (facts["sections"], facts["there"]) == (["/agent", "/agent", "/master", "mine"], "stopped")
    assert facts["names"] == [False, True, False]
    assert "secret" not in facts
