from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from bunraku.puppet import ELSEWHERE, command_names, command_of, main, summary_of
from shared import PUPPET_VERSION, __version__


def test_without_a_subcommand_it_points_to_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == "See 'puppet help' for help on available puppet subcommands\n"


@pytest.mark.parametrize("argv", [["help"], ["--help"], ["-h"]])
def test_help_names_every_subcommand(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in command_names())


def test_a_summary_is_one_short_line_and_read_off_the_source() -> None:
    for name in command_names():
        summary = summary_of(name)
        assert (import_module(f"bunraku.commands.{name}").__doc__ or "").startswith(f"{summary}.")
        assert summary[0].isupper() and len(summary) <= 70


@pytest.mark.parametrize(
    "argv", [["--version"], ["-V"], ["version"], ["config", "--version"], ["filebucket", "-V"], ["apply", "--version"]]
)
def test_version_goes_before_or_after_the_subcommand(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert capsys.readouterr().out == f"{PUPPET_VERSION}\nBunraku {__version__}\n"


@pytest.mark.parametrize("name", command_names())
@pytest.mark.parametrize("form", [("{}", "--help"), ("{}", "-h"), ("help", "{}")], ids=["long", "short", "help"])
def test_every_subcommand_explains_itself(name: str, form: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word.format(name) for word in form]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"Usage: puppet {name if name != 'ca' else 'c'}")
    assert len(said.out.splitlines()) > 3
    assert said.err == ""


def test_an_unknown_subcommand_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["aply"]) == 1
    assert capsys.readouterr().err == "Error: Unknown Puppet subcommand 'aply'\nDid you mean puppet apply?\n"


@pytest.mark.parametrize("argv", [["frobnicate"], ["help", "frobnicate"], ["../../bin/sh"]])
def test_an_unknown_subcommand_is_an_error(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"Error: Unknown Puppet subcommand '{argv[-1]}'\nSee 'puppet help' for help on available puppet subcommands\n"


@pytest.mark.parametrize("name", ["device", "script", "kick", "key", "man"])
def test_a_subcommand_of_puppet_that_is_not_here_names_what_does_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "list"]) == 1
    assert capsys.readouterr().err.splitlines() == [f"Error: The subcommand '{name}' of Puppet is not supported here", ELSEWHERE[name]]


@pytest.mark.parametrize("word", ["site.pp", "/etc/puppet/site.pp", "--noop", "-t"])
def test_a_file_or_option_first_is_no_subcommand(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"Error: Could not parse application options: invalid option: {word}\n")
    assert "subcommand first" in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hlep", "Did you mean puppet help?"),
        ("agent --tst", "Did you mean --test?"),
        ("agent --sever x", "Did you mean --server?"),
        ("agent --no-daemonise", "Did you mean --no-daemonize?"),
        ("apply --exeucte x", "Did you mean --execute?"),
        ("master --comple x", "Did you mean --compile?"),
        ("catalog compile --fact x", "Did you mean --facts?"),
        ("cert list --al", "Did you mean --all?"),
        ("cert adopt --nop x", "Did you mean --noop?"),
        ("cert sing web1", "Did you mean puppet cert sign?"),
        ("certificate --ca-location local lits", "Did you mean puppet certificate list?"),
        ("catalog comple", "Did you mean puppet catalog compile?"),
        ("ssl bootsrap", "Did you mean puppet ssl bootstrap?"),
        ("filebucket restor", "Did you mean puppet filebucket restore?"),
        ("config prnit", "Did you mean puppet config print?"),
        ("node claen", "Did you mean puppet node clean?"),
        ("parser valdate", "Did you mean puppet parser validate?"),
        ("epp rendr", "Did you mean puppet epp render?"),
        ("generate type", "Did you mean puppet generate types?"),
        ("report submitt", "Did you mean puppet report submit?"),
    ],
)
def test_a_mistyped_command_or_option_is_answered_with_the_nearest(
    line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [f"--{name}={tmp_path / name}" for name in ("confdir", "vardir", "logdir", "rundir")] if " " in line else []
    command, *words = line.split()
    assert main([command, *words, *folders]) in (1, 24)
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", ["apply --execute notice(1)", "config print vardir", "lookup nosuch --default x", "node find n.example.com"]
)
def test_relative_folders_are_below_the_working_directory(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [f"--{name}={name}" for name in ("confdir", "vardir", "logdir", "rundir")]
    assert main([*command.split(), *folders, "--facts_terminus", "yaml"]) == 0
    said = capsys.readouterr()
    assert "Error" not in said.err
    if command.startswith("config"):
        assert said.out == f"{tmp_path}/vardir\n"


def test_an_error_is_one_line_and_its_hint_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "print", "--section", "nosuch"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "Error: There is no section nosuch"
    assert second.startswith("Sections are ")


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("config", 0, "Cancelling Face\n"), ("ca", 0, "Cancelling Face\n"), ("cert", 1, "Cancelling\n"), ("filebucket", 1, "Cancelling\n")],
)
def test_ctrl_c_ends_a_command_in_puppets_words(
    name: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(argv: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"bunraku.commands.{name}.main", replace(command_of(name), call=interrupted))
    assert main([name, "x"]) == code
    assert capsys.readouterr().err == said


def test_a_program_of_that_name_in_path_is_a_subcommand(tmp_path: Path) -> None:
    program = tmp_path / "puppet-greet"
    program.write_text('#!/bin/sh\necho "greetings $*"; exit 7\n')
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "bunraku", "greet", "a", "b c"],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, "greetings a b c\n")


@pytest.mark.slow
def test_a_reader_who_leaves_early_ends_it_quietly() -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; sys.stdin.read(1); from bunraku.puppet import main; sys.exit(main(['config', 'print', 'all']))",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdout.close()
        process.stdin.write(b"x")
        process.stdin.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""
