"""The `puppet` command: finds the subcommand and runs it. Source: command line reference 1."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shared import VERSIONS
from shared.errors import PuppetError
from shared.suggestions import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from shared.process.command import CommandSpec

# Those of Puppet that are not here, and what does the same.
ELSEWHERE: Mapping[str, str] = {
    "device": "Puppet's own program manages devices; this one does not.",
    "script": "Use Bolt, which is a program of its own, to run scripts on machines.",
    "kick": "Have agents run more often (runinterval), or start puppet agent --onetime on them.",
    "inspect": "Use 'puppet resource TYPE' to see what is on a system, and 'puppet agent --test --noop' to see what would change.",
    "queue": "There are no pending stored configurations.",
    "storeconfigs": "'puppet db export' writes all data of a store or a PuppetDB, 'puppet db import' loads them into another one.",
    "key": "Use 'puppet ssl' on the host itself; keys never travel.",
    "secret_agent": "Use 'puppet agent --onetime'.",
    "man": "Use 'puppet help SUBCOMMAND', or man bunraku-puppet-SUBCOMMAND where the Debian package is installed.",
}
SEE_HELP = "See 'puppet help' for help on available puppet subcommands"


def main(argv: Sequence[str] | None = None) -> int:
    """Run `puppet SUBCOMMAND …` and return the exit code."""
    code = 0
    try:
        code = dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has enough; nothing is left to be flushed into the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def dispatch(arguments: Sequence[str]) -> int:
    """Run the command of the first word; return the exit code."""
    if not arguments:
        print(SEE_HELP)
        return 0
    name = arguments[0]
    if name in ("--version", "-V", "version"):
        print(VERSIONS)
        return 0
    if name in ("help", "--help", "-h"):
        about = arguments[1:]
        return run([*about, "--help"]) if about and not about[0].startswith("-") else show_help(about)
    if name.startswith("-") or name.endswith(".pp"):
        return complain(f"Could not parse application options: invalid option: {name}", "Puppet wants a subcommand first.")
    return run(arguments)


def run(arguments: Sequence[str]) -> int:
    """Run the subcommand that `arguments` begin with."""
    name, rest = arguments[0], list(arguments[1:])
    names = command_names()
    if name not in names:
        code = run_face(name, rest)
        if code is not None:
            return code
        program = program_of(name)
        if program:
            os.execv(program, [program, *rest])  # noqa: S606
        if name in ELSEWHERE:
            return complain(f"The subcommand '{name}' of Puppet is not supported here", ELSEWHERE[name])
        hint = did_you_mean(name, [*names, "help"], form="puppet {}", otherwise=SEE_HELP)
        return complain(f"Unknown Puppet subcommand '{name}'", hint)
    if rest[:1] in (["--version"], ["-V"]):
        print(VERSIONS)
        return 0
    code = finished(lambda: command_of(name), rest)
    assert code is not None
    return code


def command_names() -> list[str]:
    """Return the names of the subcommands that are built in: each is the module `bunraku.commands.NAME`, and nothing else lists them."""
    return sorted(path.stem for path in _folder().glob("[a-z]*.py"))


def summary_of(name: str) -> str:
    """Return what a subcommand is for: the first sentence of its module's docstring, which is read without importing the module."""
    with (_folder() / f"{name}.py").open(encoding="utf-8") as file:
        return file.readline().strip('"\n').partition(". ")[0].rstrip(".")


def command_of(name: str) -> CommandSpec[Any]:
    """Return a subcommand, whose module is imported."""
    command: CommandSpec[Any] = import_module(f"bunraku.commands.{name}").main
    return command


def _folder() -> Path:
    from pathlib import Path  # here, since `puppet --version` does without

    return Path(__file__).parent / "commands"


def program_of(name: str) -> str | None:
    """Return the path of a program `puppet-<name>`, which is a subcommand, too; None when there is none."""
    if not name.replace("-", "").replace("_", "").isalnum():
        return None
    from shutil import which  # here, since every command would wait for it

    return which(f"puppet-{name}")


def finished(find: Callable[[], CommandSpec[Any] | None], arguments: Sequence[str]) -> int | None:
    """Find a command and run it; the exit code, after an error or an interruption is printed. None: there is no such command."""
    command = None
    try:
        command = find()
        return None if command is None else command(arguments)
    except PuppetError as err:
        return complain(str(err), err.hint)
    except ModuleNotFoundError as err:
        from shared.process.parts import missing

        lacking = missing(err.name or "")
        if lacking is None:
            raise
        return complain(str(lacking), lacking.hint)
    except KeyboardInterrupt:
        is_face = command is not None and command.is_face
        print("Cancelling Face" if is_face else "Cancelling", file=sys.stderr)
        return 0 if is_face else 1


def run_face(name: str, arguments: Sequence[str]) -> int | None:
    """Run the face of that name, if a module has one; return the exit code, None without such a face."""
    if not (name.isidentifier() and name.isascii()):
        return None
    return finished(lambda: module_faces().command_of(name, arguments), arguments)


def module_faces() -> Any:
    """Return the function that finds faces of modules, which needs settings and environments."""
    return import_module("bunraku.modulefaces.lookup")


def show_help(settings: Sequence[str] = ()) -> int:
    """Print the subcommands, one a line; return 0. `settings`: options that say where the modules are, such as --environment."""
    names = command_names()
    faces: Mapping[str, str] = module_faces().help_lines({*names, "help", "version"}, settings)
    width = max(map(len, [*names, *faces]))
    lines = [f"  {name:<{width}}  {summary_of(name)}" for name in names]
    print("Usage: puppet <subcommand> [options] [arguments]\n\nAvailable subcommands:\n" + "\n".join(lines))
    if faces:
        print("\nSubcommands of modules:\n" + "\n".join(f"  {name:<{width}}  {doc}".rstrip() for name, doc in faces.items()))
    print("\nSee 'puppet <subcommand> --help' for its options. Every setting of puppet.conf is an option too.")
    return 0


def complain(message: str, hint: str = "") -> int:
    """Print `Error: …` and the remedy on standard error; return 1."""
    print(f"Error: {message}", file=sys.stderr)
    if hint:
        print(hint, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
