from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bunraku.commands.apply import main, with_test
from shared.data import plainyaml
from shared.errors import ConfigError
from shared.models.report import Report
from tests.support.command_line import Puppet, Said

MODULE = "conf/code/environments/production/modules/m"
Make = Callable[[str, str], Path]


@pytest.fixture
def apply(puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """`puppet apply` on a machine of which little is known, which makes it fast."""

    async def few_facts(host: object, sources: object) -> dict[str, Any]:
        return {"os": {"family": "Debian"}, "kernel": "Linux"}

    monkeypatch.setattr("bunraku.catalogs.compilation.gather", few_facts)
    monkeypatch.setattr("agent.facts.facter.gather", few_facts)
    return lambda *words: puppet("apply", *words)


def shown(text: str) -> list[str]:
    """The lines, without seconds and versions."""
    return re.sub(r"version '\d+'", "version 'V'", re.sub(r"\d+\.\d\d seconds", "S seconds", text)).splitlines()


COMPILED = "Notice: Compiled catalog for node1.example.com in environment production in S seconds"
APPLIED = "Notice: Applied catalog in S seconds"


def test_a_manifest_given_as_text_is_applied(apply: Callable[..., Said]) -> None:
    said = apply("-e", "notify { 'hi': }")
    assert (said.code, said.err) == (0, "")
    assert shown(said.out) == [
        COMPILED,
        "Notice: hi",
        "Notice: /Stage[main]/Main/Notify[hi]/message: defined 'message' as 'hi'",
        APPLIED,
    ]


def test_a_file_is_written_once(apply: Callable[..., Said], tmp_path: Path) -> None:
    path = tmp_path / "motd"
    code = f"file {{ '{path}': content => \"welcome\\n\" }}"
    first, second = apply("-t", "-e", code), apply("-t", "-e", code)
    assert (first.code, second.code) == (2, 0)
    assert path.read_text() == "welcome\n"
    assert shown(first.out)[:3] == [COMPILED, "Info: Using environment 'production'", "Info: Applying configuration version 'V'"]
    assert f"Notice: /Stage[main]/Main/File[{path}]/ensure: defined content as '{{sha256}}" in first.out
    assert len(shown(second.out)) == 4


def test_noop_says_what_it_would_do_and_does_nothing(apply: Callable[..., Said], tmp_path: Path) -> None:
    path = tmp_path / "motd"
    said = apply("--noop", "--detailed-exitcodes", "-e", f"file {{ '{path}': ensure => file }}")
    assert said.code == 0
    assert not path.exists()
    assert shown(said.out)[1:4] == [
        f"Notice: /Stage[main]/Main/File[{path}]/ensure: current_value 'absent', should be 'file' (noop)",
        "Notice: Class[Main]: Would have triggered 'refresh' from 1 event",
        "Notice: Stage[main]: Would have triggered 'refresh' from 1 event",
    ]


@pytest.mark.parametrize(("more", "code"), [([], 0), (["--detailed-exitcodes"], 4), (["--test"], 4), (["--detailed_exitcodes"], 4)])
def test_failed_resources_change_the_exit_code_only_when_asked(more: list[str], code: int, apply: Callable[..., Said]) -> None:
    said = apply(*more, "-e", "exec { '/bin/false': }")
    assert said.code == code
    assert "Error: '/bin/false' returned 1 instead of one of [0]\n" in said.err


def test_changes_and_failures_together_exit_with_6(apply: Callable[..., Said]) -> None:
    assert apply("--detailed-exitcodes", "-e", "exec { ['/bin/false', '/bin/true']: }").code == 6


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("notify { 'a'", "Could not parse for environment production: Syntax error at end of input on node node1.example.com"),
        ("fail('no')", "Evaluation Error: Error while evaluating a Function Call, no (line: 1, column: 1) on node node1.example.com"),
        ("notify { 'a': bogus => 1 }", "no parameter named 'bogus' (line: 1) on Notify[a] (line: 1) on node node1.example.com"),
        ("notify { 'a': require => Notify['b'] }", "Could not find resource 'Notify[b]' in parameter 'require' (line: 1)"),
    ],
)
def test_what_does_not_compile_is_not_applied(code: str, error: str, apply: Callable[..., Said]) -> None:
    said = apply("-e", code)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"Error: {error}")


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        ("exec { 'ls': }", "Validation of Exec[ls] failed: 'ls' is not qualified and no path was specified."),
        ("file { 'b': }", "Parameter path failed on File[b]: File paths must be fully qualified, not 'b' (line: 1)"),
        (
            "file { '/b': content => 'x', source => '/c' }",
            "Validation of File[/b] failed: You cannot specify more than one of content, source,",
        ),
        ("file { '/b': mode => '9999' }", "Parameter mode failed on File[/b]: "),
        ("user { 'b': expiry => 'soon' }", "Parameter expiry failed on User[b]: "),
        ("service { 'b': ensure => jumping }", 'Parameter ensure failed on Service[b]: Invalid value "jumping".'),
        ("package { 'x': provider => 'no' }", "Parameter provider failed on Package[x]: Invalid package provider 'no' (line: 1)"),
        (
            "resources { 'firewall': purge => true }",
            "Parameter name failed on Resources[firewall]: Could not find resource type 'firewall' (line: 1)",
        ),
        (
            "resources { 'notify': purge => true }",
            "Parameter purge failed on Resources[notify]: Purging is only supported on types that accept 'ensure' (line: 1)",
        ),
        ("file { '/x': backup => 'no' }", "Could not find filebucket no specified in backup"),
        ("notify { 'x': schedule => 'no' }", "Failed to apply catalog: Could not find schedule no"),
        ("notify { 'x': message => Deferred('no', []) }", "Unknown function"),
    ],
)
@pytest.mark.parametrize("options", [(), ("--detailed-exitcodes",)])
def test_an_invalid_resource_stops_the_run_before_anything_is_touched(
    resource: str, reason: str, options: tuple[str, ...], apply: Callable[..., Said], tmp_path: Path
) -> None:
    said = apply("--color=false", *options, "-e", f"file {{ '{tmp_path}/a': ensure => file }} {resource}")
    assert said.code == 1
    assert reason in said.err and said.err.count("Error: ") == 1
    assert not list(tmp_path.glob("a"))


def test_a_cycle_is_an_error(apply: Callable[..., Said]) -> None:
    said = apply("-e", "notify { 'a': require => Notify['b'] } notify { 'b': require => Notify['a'] }")
    assert said.code == 1
    assert "(Notify[a] => Notify[b] => Notify[a])" in said.err
    assert said.err.endswith("Error: Failed to apply catalog: One or more resource dependency cycles detected in graph\n")


def test_a_file_is_compiled_and_the_others_are_passed_over(apply: Callable[..., Said], file: Make) -> None:
    one, two = file("one.pp", "notice('one')"), file("two.pp", "notice('two')")
    said = apply(str(one), str(two))
    assert said.code == 0
    assert said.err == f"Warning: Only one file can be applied per run.  Skipping {two}\n"
    assert "Notice: Scope(Class[main]): one\n" in said.out
    assert "two" not in said.out


def test_a_folder_is_compiled_as_one(apply: Callable[..., Said], file: Make) -> None:
    file("site/2.pp", "notice('two')")
    said = apply(str(file("site/1.pp", "notice('one')").parent))
    assert [line for line in said.out.splitlines() if "Scope" in line] == [
        "Notice: Scope(Class[main]): one",
        "Notice: Scope(Class[main]): two",
    ]


def test_a_manifest_can_be_piped_in(apply: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"notice('piped')")))
    assert "Notice: Scope(Class[main]): piped\n" in apply().out


def test_a_tree_of_a_module_is_copied(apply: Callable[..., Said], file: Make, tmp_path: Path) -> None:
    file(f"{MODULE}/files/tree/one", "1")
    file(f"{MODULE}/files/tree/deep/two", "2")
    said = apply("-e", f"file {{ '{tmp_path}/out': ensure => directory, recurse => true, source => 'puppet:///modules/m/tree' }}")
    assert (said.code, said.err) == (0, "")
    assert (tmp_path / "out/deep/two").read_text() == "2"


def test_graphs_are_drawn_when_asked(apply: Callable[..., Said], puppet: Puppet) -> None:
    assert apply("--graph", "-e", "notify { 'hi': }").code == 0
    assert "Notify[hi]" in (puppet.root / "vardir/state/graphs/resources.dot").read_text()


def test_a_file_of_another_server_is_an_error_that_says_so(apply: Callable[..., Said], tmp_path: Path) -> None:
    said = apply("--detailed-exitcodes", "-e", f"file {{ '{tmp_path}/out': source => 'puppet://elsewhere/modules/m/f' }}")
    assert said.code == 4
    assert "puppet://elsewhere/modules/m/f" in said.err
    assert not (tmp_path / "out").exists()


def test_modules_files_and_facts_come_from_the_environment(apply: Callable[..., Said], file: Make, tmp_path: Path) -> None:
    file(f"{MODULE}/manifests/init.pp", f"class m {{ file {{ '{tmp_path}/out': source => 'puppet:///modules/m/f' }} }}")
    file(f"{MODULE}/files/f", "from the module\n")
    assert apply("--detailed-exitcodes", "-e", "include m notice($facts['os']['family'], $trusted['authenticated'])").code == 2
    assert (tmp_path / "out").read_text() == "from the module\n"


def test_a_modulepath_can_be_given(apply: Callable[..., Said], file: Make) -> None:
    init = file("elsewhere/m/manifests/init.pp", 'class m { notice("m of ${module_name}") }')
    assert "m of m\n" in apply("--modulepath", str(init.parents[2]), "-e", "include m").out
    assert apply("-e", "include m").code == 1


def test_another_environment_has_to_be_there(apply: Callable[..., Said], file: Make, puppet: Puppet) -> None:
    said = apply("--environment", "test", "-e", "notice($environment)")
    path = puppet.conf / "code/environments"
    assert said.code == 1
    assert said.err.startswith(
        f"Error: Could not find a directory environment named 'test' anywhere in the path: {path}. Does the directory exist?\n"
    )
    file("conf/code/environments/test/environment.conf", "config_version = /bin/echo 42\n")
    said = apply("--environment", "test", "-v", "-e", "notice($environment)")
    assert "Scope(Class[main]): test\n" in said.out
    assert "Info: Applying configuration version '42'\n" in said.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "version"), [([], "of the environment"), (["--config_version", "/bin/echo of the command"], "of the command")]
)
def test_a_version_on_the_command_line_beats_the_environments(
    apply: Callable[..., Said], file: Make, puppet: Puppet, given: list[str], version: str
) -> None:
    file("conf/code/environments/production/environment.conf", "config_version = /bin/echo of the environment\n")
    file("conf/code/environments/production/manifests/site.pp", "notify { 'x': }")
    assert f"Info: Applying configuration version '{version}'\n" in apply(*given, "-v", "-e", "").out
    for command in (
        ["catalog", "compile", "node1.example.com", "--render-as", "json"],
        ["master", "--compile", "node1.example.com", "--user", "root"],
    ):
        assert f'"version": "{version}"' in puppet(*command, *given).out.replace('":"', '": "')


@pytest.mark.parametrize("command", [["apply", "-e", ""], ["master", "--compile", "node1"], ["agent", "--test"]])
@pytest.mark.parametrize(("section", "name"), [("main", "config_version"), ("master", "modulepath"), ("agent", "manifest")])
def test_what_only_an_environment_may_set_is_refused_in_puppet_conf(
    puppet: Puppet, file: Make, command: list[str], section: str, name: str
) -> None:
    path = file("conf/puppet.conf", f"[{section}]\n{name} = /srv/x\n")
    said = puppet(*command)
    assert said.code == 1
    assert said.err.startswith(f"Error: Cannot set {name} settings in puppet.conf: it is in [{section}] (file: {path}, line: 2)\n")


@pytest.mark.parametrize(("left_out", "warned"), [("undefined_variables,deprecations", 0), ("undefined_variables", 1)])
def test_the_warnings_to_leave_out_are_a_list(apply: Callable[..., Said], left_out: str, warned: int) -> None:
    said = apply("--disable_warnings", left_out, "-e", "notice($settings::disable_warnings, size(strftime('%Y')))")
    assert f"Scope(Class[main]): [{left_out.replace(',', ', ')}] 4" in said.out
    assert (said.out + said.err).count("is deprecated for #strftime") == warned


def test_a_warning_that_nobody_knows_cannot_be_left_out(apply: Callable[..., Said]) -> None:
    said = apply("--disable_warnings", "deprecations,others", "-e", "")
    assert said.code == 1
    assert "Cannot disable unrecognized warning types 'others'; there are deprecations, undefined_variables" in said.err


def test_replaced_contents_are_kept_and_shown(apply: Callable[..., Said], file: Make, puppet: Puppet) -> None:
    path = file("motd", "old\n")
    said = apply("-t", "-e", f"file {{ '{path}': content => \"new\\n\", backup => 'puppet' }}")
    assert said.code == 2
    assert "@@ -1 +1 @@\n-old\n+new\nInfo: " in said.out  # no empty line between
    kept = puppet("filebucket", "list", "-l").out
    assert kept.endswith(f" {path}\n")


def test_deferred_values_are_resolved_before_the_run(apply: Callable[..., Said]) -> None:
    said = apply("-e", "notify { 'd': message => Deferred('sprintf', ['%s-%s', 'a', 'b']) }")
    assert "Notice: a-b\n" in said.out


def test_types_are_values_and_arguments_of_deferred_calls(apply: Callable[..., Said], file: Make) -> None:
    path = file("secret", "old\n")
    code = f"""
        type T = Integer[1, 5]
        class c($t = Optional[T]) {{ notify {{ 'a parameter': message => $t }} }}
        include c
        file {{ '{path}': content => Deferred('new', [Sensitive[String], "hunter2\n"]) }}
        notify {{ 'a value': message => Array[String, 1] }}
        notify {{ 'a call': message => Deferred('sprintf', ['%s %s', Deferred('new', [Integer, '5']), Deferred('new', [Boolean, 'yes'])]) }}
        notify {{ 'an alias': message => Deferred('assert_type', [T, 4]) }}
        notify {{ 'a pattern': message => Deferred('regsubst', ['aXb', Regexp[/X/], '-']) }}
    """
    said = apply("-t", "-e", code)
    assert (said.code, said.err, path.read_text()) == (2, "", "hunter2\n")
    assert "hunter2" not in said.out
    lines = [line.removeprefix("Notice: ") for line in said.out.splitlines() if line.startswith("Notice: ") and "/" not in line]
    assert [line for line in lines if not line.startswith(("Compiled", "Applied"))] == [
        "Optional[T]", "Array[String, 1]", "5 true", "4", "a-b",
    ]  # fmt: skip


@pytest.mark.parametrize("words", [(), ("--no-preprocess_deferred",)], ids=["before the run", "at its turn"])
def test_what_a_function_makes_of_a_sensitive_value_is_neither_shown_nor_reported(
    words: tuple[str, ...], apply: Callable[..., Said], file: Make, puppet: Puppet
) -> None:
    path = file("secret", "old\n")
    code = f"""
        notify {{ 'n': message => Deferred('unwrap', [Sensitive('hunter2')]) }}
        file {{ '{path}': content => Deferred('sprintf', ["%s\n", Deferred('unwrap', [Sensitive('hunter2')])]) }}
    """
    said = apply("-t", *words, "-e", code)
    assert (said.code, path.read_text()) == (2, "hunter2\n")
    assert "[redacted]" in said.out
    assert "hunter2" not in said.out + said.err + "".join(report.read_text() for report in puppet.root.rglob("*report*.yaml"))
    assert any(puppet.root.rglob("last_run_report.yaml"))


def test_sensitive_values_are_not_shown(apply: Callable[..., Said], file: Make) -> None:
    path = file("secret", "old\n")
    said = apply("-t", "-e", f"file {{ '{path}': content => Sensitive(\"hunter2\\n\") }}")
    assert (said.code, path.read_text()) == (2, "hunter2\n")
    assert "hunter2" not in said.out + said.err


def test_the_report_is_kept_and_stored(apply: Callable[..., Said], puppet: Puppet) -> None:
    apply("-e", "notify { 'hi': }")
    state = puppet.root / "vardir/state"
    summary = plainyaml.loads((puppet.root / "vardir/public/last_run_summary.yaml").read_bytes())
    assert summary["application"]["run_mode"] == "user"
    assert summary["changes"]["total"] == 1
    assert b"Notify[hi]" in (state / "last_run_report.yaml").read_bytes()
    assert len(list((puppet.root / "vardir/reports/node1.example.com").glob("*.yaml"))) == 1
    apply("--reports", "none", "-e", "notify { 'hi': }")
    assert len(list((puppet.root / "vardir/reports/node1.example.com").glob("*.yaml"))) == 1


def test_classes_and_resources_are_written_when_asked(apply: Callable[..., Said], file: Make, puppet: Puppet) -> None:
    file(f"{MODULE}/manifests/init.pp", "class m { notify { 'x': } }")
    state = puppet.root / "vardir/state"
    apply("-e", "include m")
    assert not (state / "classes.txt").exists()
    apply("--write-catalog-summary", "-e", "include m")
    assert "m" in (state / "classes.txt").read_text().split()
    assert "notify[x]" in (state / "resources.txt").read_text().split()


def test_classes_of_the_last_run_can_be_declared(apply: Callable[..., Said], file: Make, puppet: Puppet) -> None:
    file(f"{MODULE}/manifests/init.pp", "class m { notice('m is here') }")
    assert "m is here" not in apply("-L", "-e", "").out
    file("vardir/state/classes.txt", "m\n")
    assert "m is here" in apply("--loadclasses", "-e", "").out
    apply("--write-catalog-summary", "-e", "include m")
    assert "m is here" in apply("--loadclasses", "-e", "").out


def test_a_class_file_that_cannot_be_read_exits_with_63(apply: Callable[..., Said], tmp_path: Path) -> None:
    said = apply("--loadclasses", "--classfile", str(tmp_path), "-e", "")
    assert (said.code, said.err) == (63, f"{tmp_path} is not readable\n")


def test_a_catalog_document_is_applied(apply: Callable[..., Said], file: Make) -> None:
    catalog = {
        "name": "node1.example.com",
        "version": 7,
        "environment": "production",
        "resources": [
            {"type": "Stage", "title": "main"},
            {"type": "Class", "title": "main"},
            {"type": "Notify", "title": "hi", "file": "/site.pp", "line": 3},
        ],
        "edges": [{"source": "Stage[main]", "target": "Class[main]"}, {"source": "Class[main]", "target": "Notify[hi]"}],
        "classes": [],
    }
    for number, document in enumerate((catalog, {"document_type": "Catalog", "data": catalog, "metadata": {"api_version": 1}})):
        said = apply("--catalog", str(file(f"c{number}.json", json.dumps(document))), "--detailed-exitcodes")
        assert (said.code, said.err) == (2, "")
        assert shown(said.out) == ["Notice: hi", "Notice: /Stage[main]/Main/Notify[hi]/message: defined 'message' as 'hi'", APPLIED]


@pytest.mark.parametrize(
    "text", ["{x", "[]", '{"name": "n", "resources": [{"type": "Notify", "title": "a"}, {"type": "Notify", "title": "a"}]}']
)
def test_a_document_that_is_no_catalog_is_refused(text: str, apply: Callable[..., Said], file: Make) -> None:
    said = apply("--catalog", str(file("c.json", text)))
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Error: Could not deserialize catalog from rich_data_json: ")


def test_a_prerun_command_that_fails_prevents_the_run(apply: Callable[..., Said]) -> None:
    said = apply("--prerun_command", "echo no >&2; false", "-e", "notify { 'x': }")
    assert said.code == 1
    assert said.err == "Error: Could not run command from prerun_command: Execution of 'echo no >&2; false' returned 1: no\n"
    assert shown(said.out) == [COMPILED]


def test_a_postrun_command_that_fails_makes_the_run_failed(apply: Callable[..., Said]) -> None:
    said = apply("--postrun_command", "false", "-e", "notify { 'x': }")
    assert said.code == 1
    assert APPLIED in shown(said.out)


def test_logs_go_to_a_file(apply: Callable[..., Said], tmp_path: Path) -> None:
    path = tmp_path / "logs/apply.jsonl"
    said = apply("--logdest", str(path), "-e", "notify { 'hi': }")
    assert (said.code, said.out, said.err) == (0, "", "")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["level"], line["source"]) for line in lines][1:3] == [
        ("notice", "Puppet"),
        ("notice", "/Stage[main]/Main/Notify[hi]/message"),
    ]
    assert "notify" in lines[2]["tags"]


def test_only_tagged_resources_are_applied(apply: Callable[..., Said]) -> None:
    out = apply("--tags", "x", "-e", "notify { 'a': tag => 'x' } notify { 'b': }").out
    assert "Notice: a\n" in out
    assert "Notice: b\n" not in out


def test_a_classifier_may_name_the_classes(apply: Callable[..., Said], file: Make) -> None:
    file(f"{MODULE}/manifests/init.pp", 'class m($who) { notice("m for ${who} of ${role}") }')
    program = file("enc", "#!/bin/sh\necho 'classes: {m: {who: me}}'\necho 'parameters: {role: web}'\n")
    program.chmod(0o755)
    out = apply("--node_terminus", "exec", "--external_nodes", str(program), "-e", "").out
    assert "m for me of web\n" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/no/such.pp"], "Could not run: Could not find file /no/such.pp"),
        (["--frob"], "Could not parse application options: invalid option: --frob"),
        (["-e"], "Could not parse application options: missing argument: -e"),
        (["--catalog", "/no/such.json"], "Could not read the catalog /no/such.json: No such file or directory"),
        (["--parseonly", "x.pp"], "--parseonly has been removed. Please use 'puppet parser validate <manifest>'"),
        (["--log_level", "loud", "-e", ""], "Could not set log_level: "),
        (["--logdest", "nowhere", "-e", ""], "Unknown destination type nowhere"),
        (["--node_terminus", "nowhere", "-e", ""], "There is no terminus nowhere for node"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(words: list[str], message: str, apply: Callable[..., Said]) -> None:
    said = apply(*words)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"Error: {message}")


def test_code_may_look_like_an_option() -> None:
    assert main.parse(["-e", "--noop"])[0].execute == "--noop"
    assert main.parse(["--execute=--noop", "--noop"])[1] == {"noop": True}
    assert main.parse(["--", "-e"])[0].arguments == ("-e",)


def test_test_stands_for_its_options_and_gives_way_to_given_ones() -> None:
    options, flags = with_test(*main.parse(["-t", "--no-show_diff"]))
    assert options.detailed_exitcodes
    assert flags == {"verbose": True, "show_diff": False, "splay": False}
    with pytest.raises(ConfigError, match="needless argument"):
        main.parse(["--noop=true"])


CUSTOM = """\
from agent.facts import Host, Known, fact

@fact()
def rack(host: Host, known: Known) -> str:
    return "r7"
"""


@pytest.mark.slow
def test_the_real_command_with_the_facts_of_this_machine_and_of_its_modules(file: Make, tmp_path: Path) -> None:
    file("modules/m/lib/facter/rack.py", CUSTOM)
    file("modules/m/facts.d/site.txt", "site=north\n")
    where = [f"--{name}={tmp_path / name}" for name in ("confdir", "vardir", "logdir", "rundir")]
    where += [f"--modulepath={tmp_path / 'modules'}"]
    of_agent = '$facts["clientcert"], $facts["clientnoop"], versioncmp($puppetversion, "3.0")'
    code = f'notice($facts["kernel"], {of_agent}, $facts["rack"], $facts["site"])'
    done = subprocess.run(
        [sys.executable, "-m", "bunraku", "apply", *where, "--certname", "n1", "-e", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"Notice: Scope(Class[main]): {os.uname().sysname} n1 false 1 r7 north\n" in done.stdout


def test_profile_says_which_lines_took_the_time(apply: Callable[..., Said], file: Callable[[str, str], Path]) -> None:
    path = file("site.pp", 'Integer[1, 50].each |$i| {\n  @notify { "n${i}": }\n}\n')
    said = apply("--noop", "--profile", str(path))
    assert said.code == 0
    lines = said.err.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("Slowest manifest lines of "))
    assert ["50", f"{path}:2"] in [line.split()[2:4] for line in lines[at + 2 :]]


def test_differences_are_shown_by_the_program_that_the_settings_name(apply: Callable[..., Said], file: Callable[[str, str], Path]) -> None:
    path = file("compared", "old\n")
    program = file("bin/mydiff", '#!/bin/sh\necho "compared with $1 $2"; cat "$3" "$4"\n')
    program.chmod(0o755)
    said = apply("--show_diff", "--diff", str(program), "--diff_args", "--brief  -x", "-e", f"file {{ '{path}': content => \"new\\n\" }}")
    assert "compared with --brief -x\nold\nnew\n" in said.out + said.err


def test_an_empty_diff_setting_shows_none(apply: Callable[..., Said], file: Callable[[str, str], Path]) -> None:
    path = file("compared", "old\n")
    said = apply("--show_diff", "--diff", "", "-e", f"file {{ '{path}': content => \"new\\n\" }}")
    assert path.read_text() == "new\n" and "-old" not in said.out + said.err


# What Puppet 7.23 says of these with --merge_dependency_warnings.
MERGED = [
    (
        """\
        exec { '/bin/false': }
        class foo { notify { 'a': } notify { 'b': } }
        class { 'foo': require => Exec['/bin/false'] }
        define d() { notify { "x$title": } notify { "y$title": } }
        d { 'one': require => Exec['/bin/false'] }
        notify { 'plain': require => Exec['/bin/false'] }
        """,
        [
            "Notice: Class[Foo]: Class dependency Exec[/bin/false] has failures: true",
            "Warning: /Stage[main]/Foo: Skipping resources in class because of failed class dependencies",
            "Warning: /Stage[main]/Main/Notify[plain]: Skipping because of failed dependencies",
        ],
    ),
    (
        """\
        class bar { exec { '/bin/false': } -> notify { 'z': } }
        include bar
        class baz { notify { 'q': } }
        class { 'baz': require => Class['bar'] }
        """,
        [
            "Warning: /Stage[main]/Bar/Notify[z]: Skipping because of failed dependencies",
            "Notice: Class[Bar]: Class dependency Exec[/bin/false] has failures: true",
            "Warning: /Stage[main]/Baz: Skipping resources in class because of failed class dependencies",
        ],
    ),
]


@pytest.mark.parametrize(("manifest", "merged"), MERGED, ids=["classes and defines", "within and after a class"])
def test_failed_dependencies_of_a_class_are_said_once_when_asked_for(manifest: str, merged: list[str], apply: Callable[..., Said]) -> None:
    said = apply("--color", "false", "--merge_dependency_warnings", "-e", manifest)
    told = [line for line in (said.out + said.err).splitlines() if "Skipping" in line or "has failures" in line]
    assert sorted(told) == sorted(merged)
    said = apply("--color", "false", "-e", manifest)
    assert "Class dependency" not in said.out + said.err and "Skipping because of failed dependencies" in said.out + said.err


def test_deferred_functions_are_called_at_their_resources_turn_when_asked_for(
    apply: Callable[..., Said], file: Callable[[str, str], Path], puppet: Puppet
) -> None:
    made = puppet.root / "made"
    manifest = f"""
        file {{ '{made}': content => 'hello' }}
        file {{ '{made}.copy': content => Deferred('file', ['{made}']), require => File['{made}'] }}
        file {{ '{made}.nested': content => Sensitive(Deferred('upcase', [Deferred('file', ['{made}'])])), require => File['{made}'] }}
        file {{ '{made}.no': content => Deferred('nosuch', []) }}
        file {{ '{made}.mode': ensure => file, mode => Deferred('downcase', ['ZZZ']) }}
        file {{ '{made}.after': content => 'x', require => File['{made}.no'] }}
    """
    said = apply("--color", "false", "--show_diff", "--no-preprocess_deferred", "--detailed-exitcodes", "-e", manifest)
    assert said.code == 6
    names = sorted(path.name for path in puppet.root.glob("made*"))
    assert names == ["made", "made.copy", "made.nested"]
    assert ((puppet.root / "made.copy").read_text(), (puppet.root / "made.nested").read_text()) == ("hello", "HELLO")
    text = said.out + said.err
    assert "HELLO" not in text
    assert f"File[{made}.no]: Could not evaluate: Unknown function: 'nosuch'" in text
    assert f'Parameter mode failed on File[{made}.mode]: The file mode specification is invalid: "zzz"' in text
    assert "made.after]: Skipping because of failed dependencies" in text


def test_deferred_functions_are_called_before_anything_else_by_default(apply: Callable[..., Said], puppet: Puppet) -> None:
    made = puppet.root / "made"
    said = apply(
        "-e", f"file {{ '{made}': content => 'x', before => Notify['n'] }} notify {{ 'n': message => Deferred('file', ['{made}']) }}"
    )
    assert said.code == 1 and not made.exists()
    assert "Could not find any files from" in said.err


def test_what_waits_for_its_turn_has_to_fit_when_it_comes(apply: Callable[..., Said], file: Callable[[str, str], Path]) -> None:
    path = file("f", "x")
    manifest = f"file {{ '{path}': content => Deferred('downcase', ['A']), source => '{path}' }}"
    said = apply("--color", "false", "--no-preprocess_deferred", "-e", manifest)
    assert "Validation of File" in said.out + said.err and path.read_text() == "x"


def test_trusted_external_data_is_what_a_program_prints(apply: Callable[..., Said], file: Callable[[str, str], Path]) -> None:
    program = file("bin/ext", '#!/bin/sh\necho "{\\"role\\": \\"of $1\\"}"\n')
    program.chmod(0o755)
    said = apply("--trusted_external_command", str(program), "-e", "notice($trusted['external'])")
    assert "{role => of node1.example.com}" in said.out + said.err
    program.write_text("#!/bin/sh\nexit 1\n")
    said = apply("--trusted_external_command", str(program), "-e", "notify { 'no': }")
    assert said.code == 1 and "Failed to find external trusted facts of node1.example.com" in said.err


def test_the_report_is_made_into_yaml_once(apply: Callable[..., Said], puppet: Puppet, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []
    render = Report.to_ruby_yaml

    def counted(report: Report, *, legacy: bool = False) -> bytes:
        made.append(render(report, legacy=legacy))
        return made[-1]

    monkeypatch.setattr(Report, "to_ruby_yaml", counted)
    apply("-e", "notify { 'hi': }")
    (stored,) = (puppet.root / "vardir/reports/node1.example.com").glob("*.yaml")
    assert made == [stored.read_bytes()] == [(puppet.root / "vardir/state/last_run_report.yaml").read_bytes()]


def test_exporting_without_a_master_is_refused(apply: Callable[..., Said]) -> None:
    said = apply("--storeconfigs", "-e", "@@notify { 'hi': }")
    assert said.code == 1 and "Could not set storeconfigs to 'true': that is not supported here" in said.err
