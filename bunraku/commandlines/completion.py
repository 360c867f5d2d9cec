"""Shell completion: scripts that know all built-in commands, and ask `puppet completion` about subcommands of modules."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from shared.process.command import CommandSpec
from shared.settings import Settings
from shared.settings.base import is_flag

PROGRAMS = ("puppet", "bunraku-puppet")

_BASH = """# Completion of puppet for bash, made by 'puppet completion bash'.
_bunraku_puppet() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command= action= words= valued= index word
  COMPREPLY=()
  [[ $previous == = || $current == = ]] && { compopt -o default; return; }
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=${COMP_WORDS[index]}
    if [[ $word == -* ]]; then
      [[ -n $command && " $valued " == *" $word "* ]] && ((index++))
    elif [[ -z $command ]]; then
      command=$word
      _bunraku_puppet_command "$command"
      if [[ $command == help ]]; then command=; fi
    elif [[ -z $action ]]; then
      action=$word
    fi
  done
  if [[ -z $command ]]; then
    [[ $current == -* ]] && words='--help --version' || words="@COMMANDS@ help $("$program" completion faces 2> /dev/null)"
  elif [[ $previous == -* && " $valued " == *" $previous "* ]]; then
    compopt -o default
    return
  elif [[ $current == -* ]]; then
    words=$options
  elif [[ -z $action ]]; then
    words=$actions
    compopt -o default
  else
    compopt -o default
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
_bunraku_puppet_command() {
  actions= options= valued=
@SETTINGS@
  case $1 in
@CASES@    help | -*) ;;
    *)
      actions=$("$program" completion actions "$1" 2> /dev/null)
      options=$("$program" completion options "$1" 2> /dev/null)
      ;;
  esac
}
complete -F _bunraku_puppet @PROGRAMS@
"""

_ZSH = """#compdef @PROGRAMS@
# Completion of puppet for zsh, made by 'puppet completion zsh'.
_bunraku_puppet() {
  local program=$words[1] command= action= index word
  local -a commands actions faces
  local -aU options valued
@SETTINGS@
  commands=(
@COMMANDS@
  )
  for ((index = 2; index < CURRENT; index++)); do
    word=$words[index]
    if [[ $word == -* ]]; then
      [[ -n $command && -n ${valued[(r)$word]} ]] && ((index++))
    elif [[ -z $command && $word != help ]]; then
      command=$word
      case $command in
@CASES@        *)
          actions=(${(f)"$("$program" completion actions --described "$command" 2> /dev/null)"})
          options=(${=$("$program" completion options "$command" 2> /dev/null)})
          ;;
      esac
    elif [[ -n $command && -z $action ]]; then
      action=$word
    fi
  done
  if [[ -z $command ]]; then
    faces=(${(f)"$("$program" completion faces --described 2> /dev/null)"})
    commands+=($faces)
    _describe -t commands 'subcommand' commands
  elif [[ -n ${valued[(r)$words[CURRENT - 1]]} ]]; then
    _files
  elif [[ $PREFIX == -* ]]; then
    compadd -- $options
  elif [[ -z $action && -n $actions ]]; then
    _describe -t actions 'action' actions
  else
    _files
  fi
}
if [[ $funcstack[1] == _bunraku_puppet || $funcstack[1] == _puppet || $funcstack[1] == _bunraku-puppet ]]; then
  _bunraku_puppet "$@"
else
  compdef _bunraku_puppet @PROGRAMS@
fi
"""


def bash(lines: Sequence[CommandSpec[Any]], programs: Sequence[str] = PROGRAMS) -> str:
    """Return the script for bash, which completes `programs`."""
    cases = [_case(line, "    ", "''", '""', " ".join(line.action_docs)) for line in lines]
    settings = _setting_lists(lines, "  local {0}_options='{1}'\n  local {0}_valued='{2}'")
    names = " ".join(line.name for line in lines)
    return _filled(_BASH, programs, COMMANDS=names, CASES="".join(cases), SETTINGS=settings)


def zsh(lines: Sequence[CommandSpec[Any]]) -> str:
    """Return the script for zsh, which is also a file `_puppet` on fpath."""
    cases = [_case(line, " " * 8, "()", "()", " ".join(itertools.starmap(_zsh_item, line.action_docs.items()))) for line in lines]
    settings = _setting_lists(lines, "  local -a {0}_options=({1})\n  local -a {0}_valued=({2})")
    items = [f"    {_zsh_item(line.name, line.summary)}" for line in lines]
    return _filled(_ZSH, PROGRAMS, COMMANDS="\n".join(items), CASES="".join(cases), SETTINGS=settings)


def fish(lines: Sequence[CommandSpec[Any]]) -> str:
    """Return the script for fish."""
    text = ["# Completion of puppet for fish, made by 'puppet completion fish'."]
    for program in PROGRAMS:
        text += [f"complete -c {program} {rest}" for rest in _fish_rules(program, lines)]
    return "\n".join(text) + "\n"


def _fish_rules(program: str, lines: Sequence[CommandSpec[Any]]) -> Iterator[str]:
    yield "-n __fish_use_subcommand -f"
    yield "-n __fish_use_subcommand -f -a help -d 'Print how a subcommand is called'"
    for line in lines:
        yield f"-n __fish_use_subcommand -f -a {line.name} -d {_quoted(line.summary)}"
    names = " ".join(line.name for line in lines)
    faces = f"{program} completion faces --described 2> /dev/null | string replace : \\t"
    yield f"-n __fish_use_subcommand -f -a {_quoted(f'({faces})')}"
    of_face = _quoted(f"not __fish_use_subcommand; and not __fish_seen_subcommand_from help {names}")
    for what in ("actions --described", "options"):
        words = f"{program} completion {what} (commandline -opc)[2] 2> /dev/null | string replace : \\t"
        yield f"-n {of_face} -a {_quoted(f'({words})')}"
    yield f"-n '__fish_seen_subcommand_from help' -f -a {_quoted(names)}"
    commands_by_setting: dict[str, list[str]] = {}
    for line in lines:
        seen = f"__fish_seen_subcommand_from {line.name}"
        if line.action_docs:
            unseen = f"{seen}; and not __fish_seen_subcommand_from {' '.join(line.action_docs)}"
            for action, doc in line.action_docs.items():
                yield f"-n {_quoted(unseen)} -a {action}" + (f" -d {_quoted(_short(doc))}" if doc else "")
        for each in line.completed_options():
            for word in each.spellings:
                yield f"-n {_quoted(seen)} {_fish_option(word, each.takes_value)} -d {_quoted(_short(each.doc))}"
        for name in dict.fromkeys(name for cls in line.settings for name in cls.model_fields):
            commands_by_setting.setdefault(name, []).append(line.name)
    settings = {name: field for cls in _settings(lines) for name, field in cls.model_fields.items()}
    for name, field in settings.items():
        seen = f"__fish_seen_subcommand_from {' '.join(commands_by_setting[name])}"
        for word in (f"--{name}", f"--no-{name}") if is_flag(field) else (f"--{name}",):
            yield f"-n {_quoted(seen)} {_fish_option(word, not is_flag(field))} -d {_quoted(_short(field.description))}"


def _fish_option(word: str, takes_value: bool) -> str:
    return (f"-l {word[2:]}" if word.startswith("--") else f"-s {word[1:]}") + (" -r" if takes_value else "")


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def _case(line: CommandSpec[Any], indent: str, fixed: str, expanded: str, actions: str) -> str:
    """Return the branch of a `case` for a command; `fixed` and `expanded` are the brackets of words, and of words with variables."""
    options, valued = _own_options(line)
    options += [f"${_variable(cls)}_options" for cls in line.settings]
    valued += [f"${_variable(cls)}_valued" for cls in line.settings]
    rows = [f"{line.name})", f"  actions={fixed[0]}{actions}{fixed[1]}"]
    rows += [f"  {name}={expanded[0]}{' '.join(words)}{expanded[1]}" for name, words in (("options", options), ("valued", valued))]
    return textwrap.indent("\n".join([*rows, "  ;;"]), indent) + "\n"


def _own_options(line: CommandSpec[Any]) -> tuple[list[str], list[str]]:
    """Return all options of a command without settings, and those of them that take a value."""
    docs = line.completed_options()
    return [word for each in docs for word in each.spellings], [word for each in docs if each.takes_value for word in each.spellings]


def _settings(lines: Sequence[CommandSpec[Any]]) -> list[type[Settings]]:
    return [*dict.fromkeys(cls for line in lines for cls in line.settings)]


def _variable(cls: type[Settings]) -> str:
    return cls.__name__.removesuffix("Settings").lower()


def _setting_lists(lines: Sequence[CommandSpec[Any]], form: str) -> str:
    """Return, by class of settings, its options, those without a value first, and those with one; `form` takes the name and both lists."""
    texts = []
    for cls in _settings(lines):
        flags = [f"--{sign}{name}" for name, each in sorted(cls.model_fields.items()) if is_flag(each) for sign in ("", "no-")]
        named = [f"--{name}" for name, each in sorted(cls.model_fields.items()) if not is_flag(each)]
        texts.append(form.format(_variable(cls), " ".join([*flags, *named]), " ".join(named)))
    return "\n".join(texts)


def _filled(script: str, programs: Sequence[str], **parts: str) -> str:
    for name, text in {"PROGRAMS": " ".join(programs), **parts}.items():
        script = script.replace(f"@{name}@", text)
    return script


def _zsh_item(name: str, doc: str) -> str:
    return _quoted(f"{name}:{_short(doc)}".rstrip(":"))


def _short(doc: str) -> str:
    text = doc.split(". ")[0].rstrip(".")
    return text if len(text) <= 70 else f"{text[:69]}…"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "'\\''") + "'"
