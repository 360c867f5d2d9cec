"""`puppet parser validate`. Source: command line reference 2.9."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from master.compiler.checker import Issue, check
from master.compiler.parser import parse
from master.compiler.source import Source
from shared.errors import ConfigError, ParseError, PuppetError
from shared.plainjson import dumps_pretty
from shared.settings import MasterSettings, flags_of, load

HELP = """Usage: puppet parser validate [FILE...] [--json]

Checks manifests (with --epp: templates): the files given, standard input when something is piped in, otherwise the environment's main
manifest. Silent and 0 when all is well; every error of every file, and 1, when it is not."""


def main(argv: Sequence[str]) -> int:
    """Run `puppet parser …`; the exit code."""
    flags, left = flags_of(list(argv), MasterSettings)
    if "--help" in left or "-h" in left or not left:
        print(HELP)
        return 0
    as_json = any(each in ("--json", "--render-as=json") for each in left)
    epp = "--epp" in left
    action, *words = [each for each in left if each not in ("--json", "--render-as=json", "--epp")]
    if action != "validate":
        raise ConfigError(f"'parser' has no '{action}' action.  See `puppet help parser`.")
    wrong = [each for each in words if each.startswith("--")]
    if wrong:
        raise ConfigError(f"invalid option: {wrong[0]}", hint="Try 'puppet parser --help'.")
    settings = load(MasterSettings, section="user", flags=flags)
    found = {name: problems(source, settings.strict, epp=epp) for name, source in sources(words, settings).items()}
    if as_json:
        sys.stdout.buffer.write(dumps_pretty({name: [_plain(each) for each in issues] for name, issues in found.items()}))
    else:
        for issues in found.values():
            for each in issues:
                kind = "Error: Could not parse for environment production:" if each.severity == "error" else "Warning:"
                print(f"{kind} {each}" + (f"\n       {each.hint}" if each.hint else ""), file=sys.stderr)
    return 1 if any(each.severity == "error" for issues in found.values() for each in issues) else 0


def problems(source: Source, strict: str, *, epp: bool = False) -> list[Issue]:
    """Everything wrong or odd with a text."""
    try:
        return check(parse(source, epp=epp), source, strict=strict)  # type: ignore[arg-type]
    except ParseError as err:
        return [Issue("error", err.message, err.where or source.locate(0), err.hint)]


def sources(words: Sequence[str], settings: MasterSettings) -> dict[str, Source]:
    """What is to be checked, by name."""
    if words:
        missing = [word for word in words if not Path(word).exists()]
        if missing:
            raise PuppetError("One or more file(s) specified did not exist:\n" + "\n".join(f"     {word}" for word in missing))
        files = [file for word in words for file in (sorted(Path(word).rglob("*.pp")) if Path(word).is_dir() else [Path(word)])]
    elif not sys.stdin.isatty() and (piped := sys.stdin.read()):
        return {"STDIN": Source(piped)}
    else:
        folder = next((base / settings.environment for base in settings.environmentpath if (base / settings.environment).is_dir()), None)
        if folder is None:
            raise ConfigError(f"Could not find a directory environment named '{settings.environment}'")
        manifest = folder / settings.default_manifest
        print(f"No manifest specified. Validating the default manifest {manifest}", file=sys.stderr)
        files = sorted(manifest.rglob("*.pp")) if manifest.is_dir() else [manifest]
    found: dict[str, Source] = {}
    for file in files:
        try:
            found[str(file)] = Source(file.read_text("utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as err:
            raise PuppetError(f"Could not read {file}: {err}") from err
    return found


def _plain(issue: Issue) -> dict[str, object]:
    return {
        "severity": issue.severity,
        "message": issue.message,
        "full_message": str(issue),
        "file": issue.where.file,
        "line": issue.where.line,
        "pos": issue.where.column,
        "hint": issue.hint,
    }
