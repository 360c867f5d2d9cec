"""The process of Ruby: whatever it does wrong is one clear error, and the next compile has another."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from environments.ruby import RubyProgram, RubySettings, find_ruby
from shared.errors import CompileError, EvaluationError
from shared.ruby import RubyChild
from tests.environments.ruby.site import PROGRAM, compile_with, in_world, world
from tests.support.needs import needs_ruby


@needs_ruby
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("exit!(3)", "Ruby has ended with exit code 3"),
        ("spawn('sleep 20', [:out, :err] => '/dev/null'); exit!(3)", "Ruby has ended with exit code 3"),
        ("Process.kill(:KILL, Process.pid); sleep", "Ruby has ended by signal 9"),
        ("exit", "Failed to parse inline template: exit was called"),
        ("def f = f; f", "Failed to parse inline template: stack level too deep"),
        ("'x' * 2_000_000", r"Ruby answered \d+ bytes, more than ruby_answer allows \(1000000\)"),
    ],
)
def test_a_template_that_ends_ruby_or_floods_us_is_one_error_and_ruby_is_there_again(code: str, said: str) -> None:
    environment = world({}, answer=1_000_000)
    with pytest.raises(CompileError, match=said) as caught:
        in_world(environment, f"notice('x')\nnotice(inline_template(\"<%= {code} %>\"))")
    assert caught.value.where is not None and caught.value.where.line == 2
    assert in_world(environment, "notice(inline_template('<%= 1 + 1 %>'))").notices == ["2"]
    environment.close()


@needs_ruby
@pytest.mark.slow
@pytest.mark.parametrize("code", ["loop { }", "sleep"])
def test_a_template_that_hangs_is_ended_after_ruby_timeout(code: str) -> None:
    with pytest.raises(CompileError, match=r"Ruby took longer than ruby_timeout \(3 seconds\)"):
        compile_with(f'inline_template("<% {code} %>")', timeout=3)


@needs_ruby
def test_ruby_that_is_killed_between_two_compiles_is_started_again() -> None:
    program = RubyProgram(RubySettings(PROGRAM))
    files = {"modules/m/lib/puppet/functions/f.rb": "Puppet::Functions.create_function(:f) { def f = Process.pid }"}
    environment = world(files, program=program)
    first = int(in_world(environment, "notice(f())").notices[0])
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert int(in_world(environment, "notice(f())").notices[0]) != first
    environment.close()


@needs_ruby
def test_a_function_called_by_a_template_that_ends_ruby_is_the_error_of_both() -> None:
    files = {"modules/m/lib/puppet/functions/f.rb": "Puppet::Functions.create_function(:f) { def f = exit!(4) }"}
    with pytest.raises(CompileError, match="Ruby has ended with exit code 4"):
        compile_with("notice(inline_template('<%= scope.call_function(\"f\", []) rescue 1 %>'))", files)


@needs_ruby
def test_ruby_ends_with_the_environment() -> None:
    environment = world({})
    pid = int(in_world(environment, "notice(inline_template('<%= Process.pid %>'))").notices[0])
    environment.close()
    assert not Path(f"/proc/{pid}").exists()


def program(tmp_path: Path, code: str) -> str:
    """A program that is no Ruby."""
    path = tmp_path / "ruby"
    path.write_text(f"#!{sys.executable}\nimport os, sys, time\nsocket = int(sys.argv[2])\n{code}\n")
    path.chmod(0o755)
    return str(path)


def writes(message: str) -> str:
    """Code that sends a message."""
    return f"os.write(socket, {len(message).to_bytes(4, 'big') + message.encode()!r})"


ASKS_NONSENSE = f"""
{writes('{"ask":"end","args":[1],"number":1}')}
told = b""
while b"Ruby asked nonsense" not in told:
    told += os.read(socket, 65536)
sys.exit(8)
"""


@pytest.mark.parametrize(
    ("code", "timeout", "said"),
    [
        ("os.write(socket, b'garbage'); time.sleep(600)", 60, "Ruby answered 1734439522 bytes"),
        ("os.write(socket, b'\\0\\0\\0\\x02{]'); time.sleep(600)", 60, "Ruby answered nonsense"),
        ("os.write(socket, b'\\0\\0\\0\\x02[]'); time.sleep(600)", 60, "Ruby answered nonsense"),
        (writes('{"number":1}') + "; time.sleep(600)", 60, "Ruby answered nonsense"),
        (writes("{}") + "; time.sleep(600)", 60, "Ruby answered another question than it was asked"),
        (writes('{"number":2,"value":null}') + "; time.sleep(600)", 60, "Ruby answered another question than it was asked"),
        (writes('{"number":2,"ask":"version","args":[]}') + "; time.sleep(600)", 60, "Ruby answered another question than it was asked"),
        (ASKS_NONSENSE, 60, "Ruby has ended with exit code 8"),
        ("os.write(socket, b'\\0\\0'); time.sleep(600)", 0.2, r"Ruby took longer than ruby_timeout \(0.2 seconds\)"),
        ("sys.exit(7)", 60, "Ruby has ended with exit code 7"),
    ],
)
def test_a_program_that_does_not_speak_as_it_should_is_ended_with_one_error(tmp_path: Path, code: str, timeout: float, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        compile_with("inline_template('<%= $PROGRAM_NAME %>')", program=RubyProgram(RubySettings(program(tmp_path, code), timeout=timeout)))


@pytest.mark.slow
def test_a_program_that_takes_its_time_to_end_is_not_killed_for_it(tmp_path: Path) -> None:
    settings = RubySettings(program(tmp_path, "os.close(socket); time.sleep(1); sys.exit(3)"))
    with pytest.raises(EvaluationError, match="Ruby has ended with exit code 3"):
        RubyChild(settings, tmp_path).ask({}, dict)


def test_a_program_that_closes_its_socket_and_goes_on_is_killed_and_the_error_says_so(tmp_path: Path) -> None:
    code = """os.write(socket, b'\\0\\0\\0\\x1d{"pid": %7d, "number": 1}' % os.getpid()); os.close(socket); os.kill(os.getpid(), 19)"""
    child = RubyChild(RubySettings(program(tmp_path, code)), tmp_path)
    os.waitid(os.P_PID, child.ask({}, dict)["pid"], os.WSTOPPED)
    with pytest.raises(EvaluationError, match=r"Ruby closed its socket and did not end within ruby_timeout \(60 seconds\)"):
        child.ask({}, dict, lambda: 0.1)
    assert not child.alive


def test_a_program_that_we_have_ended_is_not_said_to_have_ended_by_itself(tmp_path: Path) -> None:
    child = RubyChild(RubySettings(program(tmp_path, "time.sleep(60)")), tmp_path)
    child.end()
    with pytest.raises(EvaluationError, match="Ruby was ended while it was asked"):
        child.ask({}, dict)


@pytest.mark.slow
def test_a_program_is_ended_when_it_should_stop_unless_it_runs_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.ruby.child.STOP_PATIENCE", 1.0)
    stopping, answers = tmp_path / "stopping", writes('{"number":1}')
    runs = f"import subprocess; other = subprocess.Popen(['sleep', '2']); open('{stopping}', 'w'); other.wait()"
    child = RubyChild(RubySettings(program(tmp_path, f"{runs}; {answers}")), tmp_path, stop=stopping.exists)
    assert child.ask({}, dict) == {"number": 1}
    earlier = "import subprocess; subprocess.Popen(['sleep', '4'], stdout=2); time.sleep(0.05)"
    child = RubyChild(RubySettings(program(tmp_path, f"{earlier}; {answers}; time.sleep(600)")), tmp_path, stop=stopping.exists)
    stopping.unlink()
    child.ask({}, dict)
    stopping.touch()
    with pytest.raises(EvaluationError, match="Ruby was ended while it was asked, as the run stops"):
        child.ask({}, dict)
    assert not child.alive


def test_a_program_that_is_not_there_is_named_with_the_setting() -> None:
    with pytest.raises(CompileError, match="Could not start /nowhere/ruby: No such file or directory") as caught:
        compile_with("inline_template('<%= $PROGRAM_NAME %>')", program=RubyProgram(RubySettings("/nowhere/ruby")))
    assert "setting ruby" in caught.value.hint


def test_where_manifests_are_narrowed_ruby_has_to_be_named() -> None:
    assert find_ruby("auto", restricted=True) == ""
    assert find_ruby("/usr/bin/ruby3.1", restricted=True) == "/usr/bin/ruby3.1"
    assert find_ruby("") == ""
