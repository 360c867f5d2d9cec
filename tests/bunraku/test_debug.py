"""`--debug`: what providers do stands in the log, without what is secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.errors import ResourceError
from shared.ral.commands import execute, keep_secret
from tests.support.command_line import Puppet


def debug_lines(out: str) -> list[str]:
    return [line.removeprefix("Debug: ") for line in out.splitlines() if line.startswith("Debug: ")]


def test_debug_names_each_command_its_exit_code_and_how_long_it_took(puppet: Puppet, tmp_path: Path) -> None:
    code = f"file {{ '{tmp_path}/f': content => 'x', validate_cmd => '/bin/grep x %' }} exec {{ '/bin/sh -c \"exit 3\"': returns => 3 }}"
    said = puppet("apply", "--debug", "-e", code)
    assert said.code == 0
    lines = debug_lines(said.out)
    assert any(re.fullmatch(rf"Executing: '/bin/grep x {tmp_path}/f\S+'", line) for line in lines)
    assert any(re.fullmatch(r"'/bin/grep' exited with 0 after \d+\.\d{3} seconds", line) for line in lines)
    assert any(re.search(r"Executing '/bin/sh -c \"exit 3\"'$", line) for line in lines)
    assert any(re.search(r"'/bin/sh -c \"exit 3\"' exited with 3 after \d+\.\d{3} seconds$", line) for line in lines)
    assert "Executing" not in puppet("apply", "-e", code).out


def test_debug_says_which_provider_serves_a_type_and_what_the_others_lack(puppet: Puppet, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    said = puppet(
        "apply", "--debug", "--noop", "-e", f"host {{ ['a.b', 'c.d']: ip => '10.0.0.1', target => '{hosts}' }} package {{ 'x': }}"
    )
    lines = debug_lines(said.out)
    assert lines.count("Provider parsed of host is used: the default on this host") == 1
    assert "Prefetching parsed resources for host" in lines
    assert any(re.match(r"Provider \w+ of package is not suitable: it needs .*program ", line) for line in lines)


async def test_what_is_secret_stands_in_no_line_about_a_command(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "puppet")
    with keep_secret(["s3cr3t", "s3cr3t-longer", ""]), pytest.raises(ResourceError) as caught:
        await execute(["/bin/sh", "-c", "echo s3cr3t; exit 4", "s3cr3t-longer"])
    assert str(caught.value) == "Execution of '/bin/sh -c echo [redacted]; exit 4 [redacted]' returned 4: [redacted]"
    assert "s3cr3t" not in caplog.text and "Executing: '/bin/sh -c echo [redacted]" in caplog.text
    await execute(["/bin/echo", "s3cr3t"])
    assert "Executing: '/bin/echo s3cr3t'" in caplog.text  # nothing is kept secret any more


def test_sensitive_checks_and_commands_are_redacted_in_the_debug_log_and_the_report(puppet: Puppet, tmp_path: Path) -> None:
    code = """
      exec { 'a': command => Sensitive('/bin/echo s3cr3t') }
      exec { 'b': command => '/bin/true', unless => Sensitive('/bin/sh -c "exit 1" s3cr3t') }
      exec { 'c': command => Sensitive('/bin/sh -c "exit 1" s3cr3t') }
    """
    said = puppet("apply", "--debug", "-e", code)
    assert "Executing" in said.out
    assert "s3cr3t" not in said.out + said.err
    assert "s3cr3t" not in (tmp_path / "vardir/state/last_run_report.yaml").read_text()
