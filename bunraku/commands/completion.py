"""`puppet completion`: scripts that complete commands, actions and options in a shell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import ConfigError
from shared.process.cli import CommandOptions, flag, parse_options, text
from shared.settings import AgentSettings, MasterSettings
from shared.suggestions import did_you_mean

HELP = """Usage: puppet completion bash | zsh | fish
       puppet completion faces | actions FACE | options FACE [--described] [--modulepath FOLDERS]

Prints a script for a shell; the Debian package installs all three. To use one without it:

  bash  source <(puppet completion bash)
  zsh   puppet completion zsh > ~/.zfunc/_puppet, with ~/.zfunc in fpath before compinit
  fish  puppet completion fish > ~/.config/fish/completions/puppet.fish

The scripts know all commands that are built in. For subcommands of modules they call this command: faces prints their names, actions and
options what one of them has, a word a line. That is read off their sources; nothing of a module runs.

  --described  with what each does, behind a colon"""

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class CompletionOptions(CommandOptions):
    """The command line of `puppet completion`."""

    described: bool = flag()
    modulepath: str = text()


def main(argv: Sequence[str]) -> int:
    """Run `puppet completion …`; the exit code."""
    options, flags = parse_options(CompletionOptions, "completion", argv, AgentSettings, MasterSettings)
    if options.help:
        print(HELP)
        return 0
    what, *names = options.arguments or ("",)
    if what in SHELLS and not names:
        return print_script(what)
    if (what == "faces" and not names) or (what in ("actions", "options") and len(names) == 1):
        return print_words(what, "".join(names), options, flags)
    known = (*SHELLS, "faces", "actions", "options")
    hint = did_you_mean(what, known, form="puppet completion {}", otherwise="Try 'puppet completion --help'.")
    raise ConfigError(f"puppet completion cannot print '{' '.join(options.arguments)}'", hint=hint)


def print_script(shell: str) -> int:
    """Print the script of a shell; return 0."""
    from ..commandlines import completion
    from ..commandlines.description import describe_all

    print(completion.SHELLS[shell](describe_all()), end="")
    return 0


def print_words(what: str, name: str, options: CompletionOptions, flags: dict[str, Any]) -> int:
    """Print the faces of modules, or what one of them has; the exit code, 1 for a face that is not there."""
    from ..modulefaces.files import face_folders, faces_in, outlines
    from ..puppet import COMMANDS

    faces = faces_in(face_folders(flags, options.modulepath))
    if name:
        faces = {name: faces[name]} if name in faces else {}
    found, _ = outlines(faces, {*COMMANDS, "help", "version"})
    if what == "faces":
        words = {outline.name: outline.summary for outline in found}
    elif what == "actions":
        words = {action: doc for outline in found for action, doc in outline.actions.items()}
    else:
        every = ("help", "json", "yaml", "render-as", "modulepath")
        words = {f"--{option}": "" for outline in found for option in (*outline.options, *every)}
    for word, doc in words.items():
        print(f"{word}:{doc}" if options.described and doc else word)
    return 0 if found or not name else 1
