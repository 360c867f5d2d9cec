"""Generate metadata of Ruby types, which isolates environments. Source: command line reference 2.17; language reference 17."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from environments.files.code_files import DiskFiles
from environments.module_types.generated import FOLDER, generated_manifest
from environments.module_types.models import DeclaredAttribute, DeclaredType
from environments.module_types.ruby_types import read_ruby_type
from shared.errors import PuppetError, Unsupported
from shared.filesystem.files import make_directory, write_atomic
from shared.process.cli import flag, text
from shared.process.command import CommandSpec
from shared.settings import MasterSettings, load

from ..environment import environment_of, modules_of
from ..faces import FaceOptions


@dataclass(frozen=True, slots=True)
class GenerateOptions(FaceOptions):
    """The command line of `puppet generate`."""

    format: str = text("FORMAT", "pcore, the only one", default="pcore")
    force: bool = flag("also overwrite files that are newer than their source")


@CommandSpec(
    "generate",
    GenerateOptions,
    (MasterSettings,),
    actions={"types": "write metadata of the Ruby types in the environment's modules to its folder .resource_types"},
    help_if_bare=True,
    notes="""Masters need these files to keep the types of environments apart. Files that are newer than their source stay; files of
    types that no longer exist are removed. The Ruby source is read, not run: types whose source cannot be read are listed, and the exit
    code is 1.""",
).main
def main(options: GenerateOptions, flags: dict[str, Any]) -> int:
    if options.action != "types":
        raise options.unknown_action(("types",))
    options.exactly(0)
    form = options.format
    if form != "pcore":
        raise Unsupported(f"'{form}' is not a supported format for type generation.", hint="There is pcore.")
    settings = load(MasterSettings, section="user", flags=flags)
    environment = environment_of(settings)
    target = Path(environment.root) / FOLDER
    if target.exists() and not target.is_dir():
        raise PuppetError(f"The output directory '{target}' exists and is not a directory")
    if not Path(environment.root).is_dir():
        raise PuppetError(f"The environment {environment.name} has no folder: {environment.root}")
    return generate(modules_of(environment), target, force=options.force, now=datetime.now(UTC), say=print)


def generate(modules: Sequence[Path], target: Path, *, force: bool, now: datetime, say: Callable[[str], None]) -> int:
    """
    Update the files in `target`; return 1 when a type could not be written, otherwise 0.

    Args:
        modules: folders of modules; of two types with one name the first module's is written.
        say: is called with each step; errors are written to standard error.
    """
    sources: dict[str, Path] = {}
    for module in modules:
        for path in sorted((module / "lib" / "puppet" / "type").glob("*.rb")):
            sources.setdefault(path.stem, path)
    make_directory(target)
    obsolete = sorted(file.name for file in target.iterdir() if file.name.removesuffix(".pp") not in sources or file.suffix != ".pp")
    for name in obsolete:
        (target / name).unlink()
    if obsolete:
        say(f"Notice: Removed output '{', '.join(obsolete)}' for non existing inputs")
    if not sources:
        say("Notice: No custom types were found.")
        return 0
    say("Notice: Generating Puppet resource types.")
    libs, files = [str(module / "lib") for module in modules], DiskFiles()
    done = failed = 0
    for name, path in sorted(sources.items()):
        output = target / f"{name}.pp"
        if not force and _up_to_date(path, output):
            continue
        declared = _with_provider(read_ruby_type(name, str(path), files.read, libs, docs=True), modules)
        try:
            text = generated_manifest(declared, now)
        except ValueError as err:
            failed += 1
            output.unlink(missing_ok=True)  # of an older source, it would be believed
            print(f"Error: {path}: Failed to generate '{output}': {err}", file=sys.stderr)
            continue
        say(f"Notice: Generating '{output}' using 'pcore' format.")
        write_atomic(output, text.encode())
        done += 1
    if failed:
        print("Types without a file are read from their source when a catalog is compiled.", file=sys.stderr)
    elif not done:
        say("Notice: No files were generated because all inputs were up-to-date.")
    return 1 if failed else 0


def _up_to_date(source: Path, output: Path) -> bool:
    try:
        status = source.stat()  # with a time of modification that an archive or rsync may have restored
        return max(status.st_mtime_ns, status.st_ctime_ns) <= output.stat().st_mtime_ns
    except OSError:
        return False


def _with_provider(declared: DeclaredType, modules: Sequence[Path]) -> DeclaredType:
    """A type that has providers has the parameter `provider`."""
    if any(parameter.name == "provider" for parameter in declared.parameters):
        return declared
    if not any(next((module / "lib" / "puppet" / "provider" / declared.name).glob("*.*"), None) for module in modules):
        return declared
    return replace(declared, parameters=(*declared.parameters, DeclaredAttribute("provider")))
