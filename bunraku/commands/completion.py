"""Print a shell completion script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.errors import ConfigError
from shared.process.cli import CommandOptions, flag, text
from shared.process.command import CommandSpec
from shared.suggestions import did_you_mean

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class CompletionOptions(CommandOptions):
    """The command line of `puppet completion`."""

    described: bool = flag("actions, options: add a description, after a colon")
    modulepath: str = text("FOLDERS", "directories of modules, instead of the environment's; colon-separated")


@CommandSpec(
    "completion",
    CompletionOptions,
    usage=["bash | zsh | fish", "faces | actions FACE | options FACE [--described] [--modulepath FOLDERS]"],
    actions={
        "bash": "print the script for bash, as in: source <(puppet completion bash)",
        "zsh": "puppet completion zsh > ~/.zfunc/_puppet, with ~/.zfunc in fpath before compinit",
        "fish": "puppet completion fish > ~/.config/fish/completions/puppet.fish",
        "faces": "print the names of modules' subcommands",
        "actions FACE": "print the actions of one of them, one per line",
        "options FACE": "print its options",
    },
    notes="""The Debian package installs all three scripts. They know all commands that are built in; for subcommands of modules they call
    this command. It reads the modules' sources and runs none of their code.""",
    is_face=False,
).main
def main(options: CompletionOptions, flags: dict[str, Any]) -> int:
    what, *names = options.arguments or ("",)
    if what in SHELLS and not names:
        return print_script(what)
    if (what == "faces" and not names) or (what in ("actions", "options") and len(names) == 1):
        return print_words(what, "".join(names), options, flags)
    hint = did_you_mean(what, main.action_docs, form="puppet completion {}", otherwise="Try 'puppet completion --help'.")
    raise ConfigError(f"puppet completion cannot print '{' '.join(options.arguments)}'", hint=hint)


def print_script(shell: str) -> int:
    """Print the script of a shell; return 0."""
    from ..commandlines import completion
    from ..commandlines.specs import load_specs

    print(completion.SHELLS[shell](load_specs()), end="")
    return 0


def print_words(what: str, name: str, options: CompletionOptions, flags: dict[str, Any]) -> int:
    """Print the faces of modules, or the parts of one; return the exit code, 1 for an unknown face."""
    from ..modulefaces.files import face_folders, faces_in, outlines
    from ..puppet import command_names

    faces = faces_in(face_folders(flags, options.modulepath))
    if name:
        faces = {name: faces[name]} if name in faces else {}
    found, _ = outlines(faces, {*command_names(), "help", "version"})
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
