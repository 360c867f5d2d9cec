"""Types and providers that modules have in Ruby, applied by `puppet apply`; tests/interop compares them with the reference."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from agent.ruby.files import RubyFiles
from agent.ruby.process import RubyProcess
from shared.ruby import RubyChild
from tests.support.needs import needs_ruby
from tests.support.ruby_apply import MODULES, Apply

pytestmark = pytest.mark.works_with("Ruby in modules, without Puppet", "types and providers: what goes wrong")


@needs_ruby
@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("jar { 'x': shelf => 'rel' }", "Parameter shelf failed on Jar[x]: a shelf is an absolute path, not rel"),
        (
            "jar { 'x': colour => 'pink', shelf => '/x' }",
            r'Parameter colour failed on Jar[x]: Invalid value "pink". Valid values are red, green. Valid values match /\Acustom-\w+\z/.',
        ),
        ("jar { 'x': colour => 'green', label => 'q', shelf => '/x' }", "Validation of Jar[x] failed: x cannot have both"),
        (
            "heap { 'x': size => 'many' }",
            'Parameter size failed on Heap[x]: Munging failed for value "many" in class size: invalid value for Integer(): "many"',
        ),
        (
            "jar { 'x': strict => 'maybe', shelf => '/x' }",
            'Parameter strict failed on Jar[x]: Invalid value "maybe". Valid values are true, false, yes, no.',
        ),
        (
            "badge { 'x': size => 'big' }",
            r'Parameter size failed on Badge[x]: Invalid value "big". Valid values are small. Valid values match /\A\d+\/\d+\z/.',
        ),
        (
            "badge { 'x': metal => 'gold' }",
            "Parameter metal failed on Badge[x]: Provider pin must have features 'precious' to set 'metal' to 'gold'",
        ),
        ("heap { 'x': provider => 'none' }", "Parameter provider failed on Heap[x]: Invalid heap provider 'none'"),
    ],
)
def test_what_a_type_refuses_stops_the_run_with_the_references_words(resource: str, message: str, apply: Apply) -> None:
    said = apply(f"{resource} notify {{ 'other': }}")
    assert said.code == 1
    assert f"Error: {message} (line: 1)" in said.err.replace("Failed to apply catalog: ", "")
    assert "Notice: other" not in said.out


@needs_ruby
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("exit", "Ruby has ended with exit code 3"),
        ("polite exit", "exit was called"),
        ("kill", "Ruby has ended by signal 9"),
        ("fork and stay", "Ruby has ended with exit code 3"),
        ("flood", "Ruby answered 4000NNN bytes, more than ruby_answer allows (30000)"),
        ("babble", "Ruby logged and asked more than ruby_answer allows (30000 bytes)"),
        ("scribble", "Ruby answered 1734439522 bytes, more than ruby_answer allows (30000)"),
        ("ask", "Ruby logged and asked more than ruby_answer allows (30000 bytes)"),
        ("answer", "Ruby answered 4000NNN bytes, more than ruby_answer allows (30000)"),
        ("deep", "stack level too deep"),
        ("exception", "not even a StandardError"),
        ("throw", "uncaught throw :nowhere"),
        ("latin", "café"),
        ("utf-16", "café"),
        ("bytes", "caf\ufffd \ufffd"),
        ("lacks", "The wild provider 'beast' uses Puppet::Network, which only Puppet's own Ruby has"),
        ("setting", "The setting certificate_revocation cannot be read by modules"),
        ("type error", "undefined method `+' for nil:NilClass"),
    ],
)
@pytest.mark.slow
def test_a_provider_that_goes_wild_fails_its_resource_and_the_next_has_ruby_again(
    how: str, message: str, apply: Apply, tmp_path: Path, started: list[RubyChild]
) -> None:
    code = f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => '{how}' }} -> notify {{ 'after': }} wild {{ 'b': }}"
    said = apply(code, "--detailed-exitcodes", "--ruby_answer", "30000")
    assert said.code == 6
    assert message in re.sub(r"4000\d+", "4000NNN", said.err)
    assert "Wild[a]/ensure: change from 'absent' to 'present' failed" in said.err
    assert "Notify[after]: Skipping because of failed dependencies" in said.err
    assert (tmp_path / "b").exists() and not (tmp_path / "a").exists()
    assert all(not child.alive for child in started)


@needs_ruby
@pytest.mark.parametrize("how", ["exit", "exception", "kill"])
@pytest.mark.parametrize("place", ["generate", "read", "flush", "refresh"])
@pytest.mark.slow
def test_wherever_it_goes_wild_only_its_own_resource_fails(place: str, how: str, apply: Apply, tmp_path: Path) -> None:
    code = f"""
        Wild {{ ensure => present, folder => '{tmp_path}' }}
        wild {{ 'z': }} -> wild {{ 'a': how => '{how}', at => '{place}', subscribe => Wild['z'] }} -> notify {{ 'after': }}
        wild {{ ['b', 'c']: }}
    """
    said = apply(code, "--detailed-exitcodes")
    assert said.code == (2 if place == "generate" else 6)  # the reference goes on without what was to be generated, too
    assert {"b", "c", "z"} <= {path.name for path in tmp_path.iterdir()}
    assert re.search(r"Wild\[a\][^\n]*(Could not evaluate|Failed|failed)", said.err), said.err
    assert not re.search(r"Wild\[[bcz]\]", said.err), said.err


@needs_ruby
@pytest.mark.parametrize("how", ["exit", "exception", "kill"])
@pytest.mark.parametrize("place", ["validate", "relate"])
@pytest.mark.slow
def test_what_goes_wild_before_the_run_stops_it(place: str, how: str, apply: Apply, tmp_path: Path) -> None:
    code = f"""
        Wild {{ ensure => present, folder => '{tmp_path}' }}
        wild {{ 'b': }} wild {{ 'a': how => '{how}', at => '{place}' }}
    """
    said = apply(code)
    assert said.code == 1 and said.err.count("Error: ") == 1
    assert not (tmp_path / "b").exists()


@needs_ruby
@pytest.mark.slow
def test_a_provider_that_closes_all_files_is_started_again(apply: Apply, tmp_path: Path) -> None:
    said = apply(f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => 'close' }} wild {{ 'b': }}")
    assert "Wild[a]/ensure: change from 'absent' to 'present' failed: Ruby has ended with exit code 1" in said.err
    assert (tmp_path / "b").exists()


@needs_ruby
@pytest.mark.slow
def test_a_munge_that_ends_ruby_stops_the_run(apply: Apply, tmp_path: Path) -> None:
    said = apply(f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => 'munged exit' }} wild {{ 'b': }}")
    assert said.code == 1 and "Error: Ruby has ended with exit code 3" in said.err
    assert not (tmp_path / "b").exists()


@needs_ruby
@pytest.mark.slow
def test_a_prefetch_that_ends_ruby_fails_the_resources_of_its_provider(apply: Apply, tmp_path: Path) -> None:
    code = (
        f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => 'exit', at => 'prefetch' }} heap {{ 'fine': size => 1 }}"
    )
    said = apply(code, "--detailed-exitcodes")
    assert said.code == 6 and "Could not prefetch wild provider 'beast': Ruby has ended with exit code 3" in said.err
    assert "Heap[fine]/ensure: created" in said.out


@needs_ruby
@pytest.mark.parametrize("how", ["fork", "fork on", "fork and log", "print", "leave"])
@pytest.mark.slow
def test_what_a_provider_prints_or_forks_is_no_answer(how: str, apply: Apply, tmp_path: Path) -> None:
    said = apply(
        f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => '{how}' }} wild {{ 'b': require => Wild['a'] }}"
    )
    assert (said.code, said.err) == (0, "")
    assert (tmp_path / "a").exists() and (tmp_path / "b").exists()


@needs_ruby
def test_what_a_provider_starts_may_go_on_and_the_run_does_not_wait_for_it(apply: Apply, tmp_path: Path) -> None:
    said = apply(f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => 'daemon' }} wild {{ 'b': }}")
    pid = int((tmp_path / "pid").read_text())
    try:
        assert (said.code, said.err) == (0, "")
        assert Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    finally:
        os.kill(pid, signal.SIGKILL)


@needs_ruby
@pytest.mark.slow
def test_copies_of_ruby_stay_without_its_socket(apply: Apply, tmp_path: Path) -> None:
    said = apply(f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => 'stay' }} wild {{ 'b': }}")
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    try:
        assert (said.code, said.err) == (0, "") and (tmp_path / "b").exists()
        links = {pid: [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()] for pid in pids}
        assert len(links) == 5 and not [link for links_of_one in links.values() for link in links_of_one if link.startswith("socket:")]
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


@needs_ruby
@pytest.mark.slow
def test_ruby_that_has_no_descriptors_left_is_replaced(apply: Apply, tmp_path: Path) -> None:
    said = apply(f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => 'open' }} wild {{ 'b': }}")
    assert "Wild[a]/ensure: change from 'absent' to 'present' failed: Could not set 'present' on ensure: Too many open files" in said.err
    assert "Wild[b]" not in said.err and "Ruby is started again" in said.out and (tmp_path / "b").exists()


@needs_ruby
@pytest.mark.parametrize(
    ("how", "shown"),
    [
        ("latin", "'café'"),
        ("utf-16", "'café'"),
        ("bytes", "'caf\ufffd \ufffd'"),
        ("symbol", "{\n  'one' => ['two', undef, 1.5, NaN]\n}"),
        ("object", "'Object'"),
    ],
)
def test_values_of_any_kind_and_encoding_are_compared_and_shown(how: str, shown: str, apply: Apply, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("there")
    said = apply(f"wild {{ 'a': ensure => present, how => '{how} state', folder => '{tmp_path}', state => 'x', audit => state }}")
    assert (said.code, said.err) == (0, "")
    assert f"Wild[a]/state: state changed {shown} to 'x'" in said.out


@needs_ruby
@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "how"),
    [
        ("create", "loop"),
        ("read", "hang"),
        *(pytest.param(*each, marks=pytest.mark.full) for each in (("create", "hang"), ("read", "loop"), ("validate", "hang"))),
        pytest.param("validate", "loop", marks=pytest.mark.full),
    ],
)
def test_a_provider_that_does_not_end_is_ended(place: str, how: str, apply: Apply, tmp_path: Path, started: list[RubyChild]) -> None:
    code = f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => '{how}', at => '{place}' }} wild {{ 'b': }}"
    said = apply(code, "--ruby_timeout", "4s")
    assert "Ruby took longer than ruby_timeout (4 seconds)" in said.err
    assert (tmp_path / "b").exists() == (place != "validate")
    assert len(started) <= 3 and all(not child.alive for child in started)


@needs_ruby
@pytest.mark.slow
def test_a_provider_that_eats_memory_is_ended(apply: Apply, tmp_path: Path) -> None:
    code = f"Wild {{ ensure => present, folder => '{tmp_path}' }} wild {{ 'a': how => 'eat' }} wild {{ 'b': }}"
    said = apply(code, "--ruby_memory", "300MiB", "--ruby_timeout", "60s")
    assert re.search(r"Ruby occupies \d+ bytes of memory, more than ruby_memory allows \(314572800\)", said.err)
    assert (tmp_path / "b").exists()


@needs_ruby
@pytest.mark.slow
def test_hundreds_of_resources_cost_tens_of_questions(
    apply: Apply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[RubyChild]
) -> None:
    questions: list[str] = []
    ask = RubyProcess.ask

    def noted(process: RubyProcess, op: str, *args: Any, **named: Any) -> Any:
        questions.append(op)
        return ask(process, op, *args, **named)

    code = f"range(1, 300).each |$n| {{ jar {{ \"j$n\": shelf => '{tmp_path}', colour => red }} }}"
    assert apply(code).code == 0
    monkeypatch.setattr(RubyProcess, "ask", noted)
    said = apply(code)
    assert (said.code, "Jar[" in said.out) == (0, False)
    assert len(list(tmp_path.glob("j*"))) == 300
    assert len(questions) < 40, questions


@needs_ruby
def test_what_is_asked_when_the_run_is_over_is_not_done(apply: Apply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = RubyProcess._started

    def closed_while_it_starts(process: RubyProcess) -> RubyChild:
        child = start(process)
        process.close()
        return child

    monkeypatch.setattr(RubyProcess, "_started", closed_while_it_starts)
    said = apply(f"wild {{ 'a': ensure => present, folder => '{tmp_path}' }}")
    assert said.code == 1 and "Ruby was ended while it was asked" in said.err
    assert not (tmp_path / "a").exists()


def test_a_catalog_without_types_in_ruby_never_starts_it(apply: Apply, started: list[RubyChild]) -> None:
    assert apply("notify { 'x': }").code == 0
    assert started == []


def test_without_a_ruby_one_error_names_the_types_and_what_to_install(apply: Apply) -> None:
    said = apply("jar { 'a': } heap { 'b': } notify { 'x': }", "--ruby", "")
    assert said.code == 1
    assert said.err.count("Types of modules are in Ruby, and there is no ruby to run them: heap, jar\nInstall it") == 1
    assert "Jar[a]: Could not evaluate: " in said.err and "Notice: x" in said.out


@needs_ruby
def test_a_type_that_cannot_be_loaded_is_one_error_with_its_place(apply: Apply) -> None:
    said = apply("broken { 'a': } broken { 'b': } heap { 'fine': size => 1 }")
    assert said.code == 1
    place = re.escape(f"({MODULES}/shelf/lib/puppet/type/broken.rb:3)")
    told = rf"Error: Could not load the type broken: undefined method `nonsense' for .* {place} \(line: 1\)\n"
    assert re.fullmatch(told, said.err), said.err
    assert "Heap[fine]" not in said.out


@needs_ruby
def test_a_provider_becomes_suitable_during_the_run(apply: Apply, tmp_path: Path) -> None:
    late = tmp_path / "late"
    program = f"#!/bin/sh\\necho no > {tmp_path}/\\$1; echo no\\n"
    said = apply(f"unready {{ 'a': ensure => present }} file {{ '{late}': mode => '0755', content => \"{program}\" }}")
    assert (said.code, said.err) == (0, "")
    assert "Unready[a]/ensure: created" in said.out and (tmp_path / "make").exists()


@needs_ruby
def test_a_provider_that_stays_unsuitable_says_what_is_missing(apply: Apply) -> None:
    said = apply("unready { 'a': ensure => present }")
    assert "Could not find a suitable provider for unready" in said.err
    assert "late needs program " in said.err


@needs_ruby
def test_no_line_has_a_sensitive_value(apply: Apply, tmp_path: Path) -> None:
    secret, other = (f"jar {{{{ '{name}': shelf => '{tmp_path}', {{}} => Sensitive('canary-{name}') }}}}" for name in "ab")
    for code, made in ((secret.format("content") + other.format("colour"), False), (secret.format("content"), True)):
        said = apply(code, "--debug")
        assert (tmp_path / "a").exists() == made
        assert "canary" not in (said.out + said.err).lower().replace(str(tmp_path), "")


@needs_ruby
def test_unmanaged_things_are_purged(apply: Apply, tmp_path: Path) -> None:
    heaps = tmp_path / "heaps.yaml"
    heaps.write_text("---\nold:\n  :size: 1\nkept:\n  :size: 2\n")
    said = apply("resources { 'heap': purge => true } heap { 'kept': size => 2 }")
    assert (said.code, said.err) == (0, "")
    assert "Heap[old]/ensure: removed" in said.out
    assert "old" not in heaps.read_text() and "kept" in heaps.read_text()


@needs_ruby
def test_the_environment_of_whoever_starts_it_does_not_reach_ruby(apply: Apply, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evil.rb").write_text("File.write(File.join(ENV['SHELF'], 'pwned'), 'x')")
    monkeypatch.setenv("RUBYOPT", f"-r{tmp_path}/evil.rb")
    monkeypatch.setenv("RUBYLIB", str(tmp_path))
    assert apply("heap { 'a': size => 1 }").code == 0
    assert not (tmp_path / "pwned").exists()
    assert os.environ["RUBYLIB"] == str(tmp_path)


@needs_ruby
def test_a_provider_that_keeps_a_file_in_memory_loses_no_change_of_the_resource_before_it(apply: Apply, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    ledger.write_text("same=1\ndefault=a\nold=1\n")
    names = {"same": "1", "default": "b", "new": "1", "old": "2", "also": "as the default", "last": "9"}
    code = f"Ledger {{ ensure => present, file => '{ledger}' }}" + "".join(
        f"ledger {{ '{name}': value => '{value}' }}" for name, value in names.items()
    )
    assert apply(code, "--detailed-exitcodes").code == 2
    assert ledger.read_text() == "same=1\ndefault=b\nold=2\nnew=1\nalso=b\nlast=9\n"
    assert apply(code, "--detailed-exitcodes").code == 0


@needs_ruby
@pytest.mark.parametrize("place", ["create", "read", "validate"])
@pytest.mark.parametrize(
    ("source", "content"),
    [("puppet:///modules/shelf/greeting", r'"hello \xFF\n"'), ("puppet:///modules/shelf/nothing", "nil"), ("@folder/own", '"mine"')],
)
def test_ruby_fetches_files_of_puppets_file_server(source: str, content: str, place: str, apply: Apply, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("mine")
    how = f"fetch {source}".replace("@folder", str(tmp_path))
    said = apply(f"wild {{ 'a': ensure => present, folder => '{tmp_path}', how => '{how}', at => '{place}' }}")
    assert (said.code, said.err) == (0, "")
    assert f"fetched {content}" in said.out and (tmp_path / "a").exists()


@needs_ruby
@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("puppet:///modules/shelf/greeting", "puppet:///modules/shelf/greeting is larger than ruby_answer allows (5 bytes)"),
        ("gopher://host/a", "URI protocol 'gopher' is not currently supported for file serving"),
        ("puppet://other.test/modules/a", "Files of another server cannot be fetched here: puppet://other.test/modules/a"),
    ],
)
def test_a_file_that_cannot_be_fetched_fails_the_resource(source: str, error: str, apply: Apply, tmp_path: Path, monkeypatch: Any) -> None:
    fetch = RubyFiles.__init__
    monkeypatch.setattr(RubyFiles, "__init__", lambda self, sources, *, limit, timeout: fetch(self, sources, limit=5, timeout=timeout))
    said = apply(f"wild {{ 'a': ensure => present, folder => '{tmp_path}', how => 'fetch {source}' }}", "--detailed-exitcodes")
    assert said.code == 4 and error in said.err


@needs_ruby
def test_a_default_of_false_sets_nothing(apply: Apply) -> None:
    said = apply("trunk { 'a': told => 'x' } trunk { 'b': heavy => false, told => 'x' }")
    assert "Trunk[a]/told: told changed 'heavy: nil, nil, id: nil' to 'x'" in said.out
    assert "Trunk[b]/told: told changed 'heavy: :false, :false, id: nil' to 'x'" in said.out


@needs_ruby
def test_an_automatic_relationship_to_a_class_is_none(apply: Apply) -> None:
    said = apply("class house { trunk { 'a': told => 'x' } } include house", "--debug")
    assert (said.code, "relationship with" in said.out) == (0, False)


@needs_ruby
def test_an_attribute_may_be_called_id(apply: Apply) -> None:
    assert "'heavy: nil, nil, id: \"seven\"' to 'x'" in apply("trunk { 'a': id => 'seven', told => 'x' }").out


@needs_ruby
def test_a_file_that_is_not_there_is_an_empty_text_for_puppets_helpers(apply: Apply, tmp_path: Path) -> None:
    said = apply(f"scroll {{ '{tmp_path}/missing': text => 'x', sections => '' }}", "--noop")
    assert said.err == "" and f"Scroll[{tmp_path}/missing]/text: current_value '\"\"', should be 'x' (noop)" in said.out


@needs_ruby
def test_a_file_that_cannot_be_read_is_named(apply: Apply, tmp_path: Path) -> None:
    said = apply(f"scroll {{ '{tmp_path}': text => 'x' }}")
    assert f"Puppet::Util::FileType::FileTypeFlat could not read {tmp_path}: Is a directory" in said.err


@needs_ruby
def test_a_purge_removes_what_a_manifest_could_not(apply: Apply) -> None:
    said = apply("resources { 'peg': purge => true } peg { 'second': }")
    assert (said.code, said.err) == (0, "")
    assert "Peg[first]/ensure: removed" in said.out


@needs_ruby
def test_the_log_names_the_errors_that_an_error_was_made_of(apply: Apply) -> None:
    said = apply("trunk { 'a': lid => torn } trunk { 'b': lid => burst }")
    place = "Could not set 'torn' on lid: it is torn (line: 1)"
    assert said.err.splitlines() == [
        f"Error: {place}",
        f"Error: {place}",
        "Wrapped exception:",
        "it is torn",
        f"Error: /Stage[main]/Main/Trunk[a]/lid: change from 'shut' to 'torn' failed: {place}",
        "Error: it has burst",
        "Wrapped exception:",
        "by force",
        "Error: /Stage[main]/Main/Trunk[b]/lid: change from 'shut' to 'burst' failed: it has burst",
    ]


@needs_ruby
def test_a_fact_without_a_value_is_found_out_when_it_is_first_asked_for(apply: Apply, tmp_path: Path) -> None:
    assert "told changed '[1, 1] 3' to 'x'" in apply("trunk { 'a': command => 'count', told => 'x' }").out


@needs_ruby
def test_attributes_may_have_the_names_of_parts_of_a_resource(apply: Apply, tmp_path: Path) -> None:
    said = apply(f"badge {{ 'a': ensure => present, folder => '{tmp_path}', id => 'i', file => 'f', line => 7, purging => true }}")
    assert (said.code, said.err) == (0, "")
    assert (tmp_path / "a").read_text() == 'id="i"\nfile="f"\nline=7\npurging=true\nworn=nil\nsize=nil\n'


@needs_ruby
def test_that_all_values_count_is_not_inherited(apply: Apply, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    code = f"badge {{ 'a': folder => '{tmp_path}', clip => ['a', 'b'], edge => ['a', 'b'] }} notify {{ ['first', 'second']: }}"
    said = apply(code, "--noop", "--detailed-exitcodes")
    assert "clip: current_value ['b'], should be ['a', 'b'] (noop)" in said.out and "/edge" not in said.out


@needs_ruby
def test_an_automatic_relationship_to_a_type_replaces_the_one_before(apply: Apply, tmp_path: Path) -> None:
    said = apply(f"badge {{ 'a': ensure => present, folder => '{tmp_path}' }} notify {{ 'second': }} notify {{ 'first': }}")
    assert re.findall(r"(Badge|Notify)\[(\w+)\]/", said.out) == [("Notify", "second"), ("Badge", "a"), ("Notify", "first")]


@needs_ruby
def test_a_provider_sets_an_attribute_of_another_resource(apply: Apply, tmp_path: Path) -> None:
    path = tmp_path / "full"
    said = apply(f"trunk {{ 'a': command => 'fill', folder => '{path}', told => 'x' }} -> file {{ '{path}': content => 'empty' }}")
    assert (said.code, path.read_text()) == (0, "filled\n")
    other = apply(f"trunk {{ 'a': command => 'fill', folder => '{path}', told => 'x' }}", "--detailed-exitcodes")
    assert other.code == 4 and "Trunk[a]: Could not evaluate: undefined method" in other.err
