"""Shell completion: scripts that know all built-in commands, and ask `puppet completion` about subcommands of modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared.settings import Settings
from shared.settings.base import is_flag

from .description import CommandLine

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
@CASES@
    help | -*) ;;
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
@CASES@
        *)
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


def bash(lines: Sequence[CommandLine], programs: Sequence[str] = PROGRAMS) -> str:
    """Return the script for bash, which completes `programs`."""
    cases = []
    for line in lines:
        options, valued = _own_options(line)
        options += [f"${_variable(cls)}_options" for cls in line.settings]
        valued += [f"${_variable(cls)}_valued" for cls in line.settings]
        parts = [f"      actions='{' '.join(line.actions)}'", f'      options="{" ".join(options)}"', f'      valued="{" ".join(valued)}"']
        cases.append("\n".join([f"    {line.name})", *parts, "      ;;"]))
    settings = []
    for cls in _settings(lines):
        flags, named = _of_settings(cls)
        settings.append(
            f"  local {_variable(cls)}_options='{' '.join([*flags, *named])}'\n  local {_variable(cls)}_valued='{' '.join(named)}'"
        )
    names = " ".join(line.name for line in lines)
    return _filled(_BASH, programs, COMMANDS=names, CASES="\n".join(cases), SETTINGS="\n".join(settings))


def zsh(lines: Sequence[CommandLine]) -> str:
    """Return the script for zsh, which is also a file `_puppet` on fpath."""
    cases = []
    for line in lines:
        options, valued = _own_options(line)
        options += [f"${_variable(cls)}_options" for cls in line.settings]
        valued += [f"${_variable(cls)}_valued" for cls in line.settings]
        actions = " ".join(_zsh_item(name, doc) for name, doc in line.actions.items())
        parts = [f"          actions=({actions})", f"          options=({' '.join(options)})", f"          valued=({' '.join(valued)})"]
        cases.append("\n".join([f"        {line.name})", *parts, "          ;;"]))
    settings = []
    for cls in _settings(lines):
        flags, named = _of_settings(cls)
        name = _variable(cls)
        settings.append(f"  local -a {name}_options=({' '.join([*flags, *named])})\n  local -a {name}_valued=({' '.join(named)})")
    items = [f"    {_zsh_item(line.name, line.summary)}" for line in lines]
    return _filled(_ZSH, PROGRAMS, COMMANDS="\n".join(items), CASES="\n".join(cases), SETTINGS="\n".join(settings))


def fish(lines: Sequence[CommandLine]) -> str:
    """Return the script for fish."""
    text = ["# Completion of puppet for fish, made by 'puppet completion fish'."]
    for program in PROGRAMS:
        text += [f"complete -c {program} {rest}" for rest in _fish_rules(program, lines)]
    return "\n".join(text) + "\n"


def _fish_rules(program: str, lines: Sequence[CommandLine]) -> Iterator[str]:
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
        if line.actions:
            unseen = f"{seen}; and not __fish_seen_subcommand_from {' '.join(line.actions)}"
            for action, doc in line.actions.items():
                yield f"-n {_quoted(unseen)} -a {action}" + (f" -d {_quoted(_short(doc))}" if doc else "")
        options, valued = _own_options(line)
        for word in options:
            doc = line.descriptions.get(word, "")
            yield f"-n {_quoted(seen)} {_fish_option(word, word in valued)}" + (f" -d {_quoted(_short(doc))}" if doc else "")
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


def _own_options(line: CommandLine) -> tuple[list[str], list[str]]:
    """Return all options of a command but for settings, and those of them that want a value."""
    options = dict.fromkeys(spelling for each in line.options for spelling in each.spellings)
    valued = dict.fromkeys(spelling for each in line.options if each.takes_value for spelling in each.spellings)
    return [*options], [*valued]


def _settings(lines: Sequence[CommandLine]) -> list[type[Settings]]:
    return [*dict.fromkeys(cls for line in lines for cls in line.settings)]


def _variable(cls: type[Settings]) -> str:
    return cls.__name__.removesuffix("Settings").lower()


def _of_settings(cls: type[Settings]) -> tuple[list[str], list[str]]:
    """Return the options of a class of settings: those without a value, and those with one."""
    flags = [name for name, field in cls.model_fields.items() if is_flag(field)]
    named = [name for name in cls.model_fields if name not in flags]
    return [f"--{sign}{name}" for name in sorted(flags) for sign in ("", "no-")], [f"--{name}" for name in sorted(named)]


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
