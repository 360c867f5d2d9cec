"""What each command declares, and what is made of it: help, shell completion and manual pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bunraku.commandlines import completion, manpages
from bunraku.commandlines.__main__ import write_files
from bunraku.commandlines.specs import load_specs
from bunraku.puppet import command_names, main
from shared.process.cli import CommandOptions, option_docs
from shared.process.command import CommandSpec
from shared.settings import AgentSettings, MasterSettings
from tests.support.processes import clean_environment

ROOT = Path(__file__).parents[2]
DATE = "2026-01-31"


@pytest.fixture(scope="module")
def lines() -> list[CommandSpec[Any]]:
    return load_specs()


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("share")
    write_files(folder, DATE)
    return folder


# --- the declaration


def test_every_class_of_options_belongs_to_a_command(lines: list[CommandSpec[Any]]) -> None:
    """Which options a command has is declared by a dataclass in its module: none is forgotten."""
    assert [line.name for line in lines] == command_names()
    for line in lines:
        module = import_module(f"bunraku.commands.{line.name}")
        spellings = {spelling for each in line.completed_options() for spelling in each.spellings}
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, CommandOptions) and cls.__module__ == module.__name__:
                for each in option_docs(cls):
                    assert set(each.spellings) <= spellings, (line.name, each)


def test_the_help_says_something_of_each_action_and_option(lines: list[CommandSpec[Any]]) -> None:
    for line in lines:
        for rows in line.tables().values():
            assert all(rows.values()), (line.name, rows)
        assert max(len(row) for part in (line, *line.parts) for row in part.help().splitlines()) <= 100, line.name


@pytest.mark.parametrize(
    ("name", "actions"),
    [
        ("config", "print set delete"),
        ("node", "clean deactivate find status search save destroy info"),
        ("cert", "list sign revoke clean generate print fingerprint verify reinventory adopt rollover"),
        ("ca", "list sign revoke clean generate print fingerprint verify reinventory adopt rollover"),
        ("ssl", "bootstrap submit_request download_cert renew_cert verify show clean"),
        ("completion", "bash zsh fish faces actions options"),
        ("agent", ""),
        ("lookup", ""),
    ],
)
def test_a_command_has_its_actions(lines: list[CommandSpec[Any]], name: str, actions: str) -> None:
    assert list(next(line for line in lines if line.name == name).action_docs) == actions.split()


@pytest.mark.parametrize("name", command_names())
def test_every_action_of_the_help_is_one_of_the_command(
    lines: list[CommandSpec[Any]], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command says of a word that is none: none of those in the help may be told so."""
    folders = [f"--{each}={tmp_path / each}" for each in ("confdir", "vardir", "logdir", "rundir")]
    for action in next(line for line in lines if line.name == name).action_docs:
        if name in ("completion", "config"):
            continue  # their words print, or are said to be wrong in other words
        main([name, action, "--help", *folders])
        assert "has no" not in capsys.readouterr().err


# --- completion


def environment(tmp_path: Path) -> dict[str, str]:
    """A `puppet` in PATH that is this one, with a module that has a face."""
    face = tmp_path / "modules/lights/lib/puppet/face/lamps.py"
    face.parent.mkdir(parents=True)
    face.write_text(
        'from shared.faces import Face, action\nclass X(Face, name="lamps"):\n    """See lamps."""\n    @action\n'
        '    def dim(self, name: str, *, slow: bool = False) -> None:\n        """Dim one: slowly."""\n'
    )
    program = tmp_path / "bin" / "puppet"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\ncd {ROOT}\nexec {sys.executable} -m bunraku "$@" --modulepath {tmp_path}/modules --confdir {tmp_path}/conf\n'
    )
    program.chmod(0o755)
    return clean_environment() | {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def shell(program: str, script: str, tmp_path: Path, *options: str) -> str:
    """What a shell prints for a script, without an error."""
    done = subprocess.run(
        [program, *options, "-c", script], env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


CASES = [
    ("puppet ag", {"agent"}, {"apply"}),
    ("puppet la", {"lamps"}, {"lookup"}),
    ("puppet help lo", {"lookup"}, {"agent"}),
    ("puppet node ", {"clean", "find", "info"}, {"agent", "print"}),
    ("puppet node --terminus yaml c", {"clean"}, {"yaml"}),
    ("puppet node --term", {"--terminus"}, {"--clean"}),
    ("puppet agent --serv", {"--server", "--server_list"}, {"--test"}),
    ("puppet agent --no-d", {"--no-daemonize"}, {"--daemonize"}),
    ("puppet lamps d", {"dim"}, {"slow"}),
    ("puppet lamps dim --s", {"--slow"}, {"dim"}),
]

BASH = """
source SCRIPT
compopt() { :; }
while IFS= read -r line; do
  read -ra COMP_WORDS <<< "$line"
  [[ $line == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _bunraku_puppet
  printf '%s\\n' "$line=>${COMPREPLY[*]}"
done < LINES
"""
ZSH = """
compdef() { }
source SCRIPT
shown=()
compadd() { shown+=(${(M)@:#$PREFIX*}) }
_describe() { local name; for name in ${(P)4}; do [[ $name == $PREFIX* ]] && shown+=(${name%%:*}); done }
_files() { shown+=(a-file) }
while IFS= read -r line; do
  words=(${=line})
  [[ $line == *' ' ]] && words+=('')
  CURRENT=$#words PREFIX=$words[-1] shown=()
  _bunraku_puppet
  print -r -- "$line=>$shown"
done < LINES
"""
FISH = """
source SCRIPT
while read -l read_line
  set line (string replace '|' '' -- $read_line)
  echo "$line=>"(complete -C "$line" | string replace -r '\\t.*' '' | string join ' ')
end < LINES
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "script", "options"), [("bash", BASH, ["--norc"]), ("zsh", ZSH, ["-f"]), ("fish", FISH, ["--no-config"])])
def test_a_shell_completes_commands_actions_and_options(
    name: str, script: str, options: list[str], lines: list[CommandSpec[Any]], tmp_path: Path
) -> None:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    (tmp_path / "script").write_text(completion.SHELLS[name](lines))
    (tmp_path / "lines").write_text("".join(f"{line}{'|' if name == 'fish' else ''}\n" for line, _, _ in CASES))
    text = shell(program, script.replace("SCRIPT", f"{tmp_path}/script").replace("LINES", f"{tmp_path}/lines"), tmp_path, *options)
    offered = {line: set(words.split()) for line, _, words in (each.partition("=>") for each in text.splitlines())}
    for line, some, others in CASES:
        words = offered[line]
        assert some <= words, (line, words)
        assert not others & words, (line, words)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_script_has_every_command_and_option(name: str, lines: list[CommandSpec[Any]]) -> None:
    words = set(re.findall(r"[\w-]+", completion.SHELLS[name](lines)))
    for line in lines:
        assert {line.name, *line.action_docs} <= words
        for each in line.completed_options():
            bare = {spelling.lstrip("-") if name == "fish" else spelling for spelling in each.spellings}
            assert bare <= words, (line.name, each)
    prefix = "" if name == "fish" else "--"
    assert {f"{prefix}{setting}" for setting in (*AgentSettings.model_fields, *MasterSettings.model_fields)} <= words


def test_puppet_completion_prints_the_script(lines: list[CommandSpec[Any]], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == completion.bash(lines)
    assert main(["completion", "csh"]) == 1
    assert capsys.readouterr().err.startswith("Error: puppet completion cannot print 'csh'\n")


# --- manual pages


def test_there_is_a_page_of_every_command_and_one_of_the_settings(share: Path) -> None:
    pages = {path.name for path in share.glob("man/man?/*")}
    assert pages == {"bunraku-puppet.1", "bunraku-puppet.conf.5", *(f"bunraku-puppet-{name}.1" for name in command_names())}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_has_nothing_to_say_about_a_page_and_shows_every_option(share: Path, lines: list[CommandSpec[Any]]) -> None:
    for path in sorted(share.glob("man/man?/*")):
        done = subprocess.run(
            ["groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-P-c", "-rLL=200n", str(path)],
            env=clean_environment() | {"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), path.name
        text = re.sub(".\b", "", done.stdout)
        line = next((each for each in lines if path.name == f"{manpages.PROGRAM}-{each.name}.1"), None)
        if line is not None:
            assert f"{manpages.PROGRAM}-{line.name} - {line.summary}" in " ".join(text.split()).replace("‐", "-")
            words = set(re.findall(r"[\w-]+", text))
            assert {*line.action_docs} <= words
            for each in line.completed_options():
                assert {*each.spellings} & {word.replace("_", "-") for word in words}, (line.name, each)
        elif path.name.endswith(".5"):
            assert {*AgentSettings.model_fields, *MasterSettings.model_fields} <= set(re.findall(r"\w+", text))
        else:
            assert {*command_names()} <= set(re.findall(r"\w+", text))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("lexgrog") is None, reason="lexgrog is not installed (Debian: man-db)")
def test_whatis_finds_every_page(share: Path) -> None:
    paths = sorted(share.glob("man/man?/*"))
    done = subprocess.run(["lexgrog", *map(str, paths)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0
    assert len(re.findall(r': "bunraku-puppet[\w.-]* - .', done.stdout)) == len(paths)


def test_what_looks_like_a_request_is_text() -> None:
    assert manpages.escaped(".so /etc/passwd") == r"\&.so /etc/passwd"
    assert manpages.escaped(r"\n'x-y'") == r"\en\(aqx\-y\(aq"
