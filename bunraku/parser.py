"""`puppet parser validate`. Source: command line reference 2.9."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from master.compiler.checker import Issue, check
from master.compiler.parser import parse
from master.compiler.source import Source
from shared.errors import Location, ParseError, PuppetError
from shared.plainjson import dumps_pretty
from shared.settings import MasterSettings, flags_of, load

from .faces import call_of

HELP = """Usage: puppet parser validate [FILE | FOLDER...] [--epp] [--json | --render-as json]

Checks manifests (with --epp: templates): the files given, else what is piped in, else the environment's main manifest. Silent and 0 when
all is well; every error of every file, and 1, when it is not. As JSON: an object by file, with message, full_message, file, line, pos."""


def main(argv: Sequence[str]) -> int:
    """Run `puppet parser …`; the exit code."""
    flags, left = flags_of(list(argv), MasterSettings)
    call = call_of("parser", left, flags=("epp",))
    if call.help or not call.words:
        print(HELP)
        return 0
    if call.words[0] != "validate":
        raise call.unknown_action(call.words[0])
    settings = load(MasterSettings, section="user", flags=flags)
    epp = "epp" in call.flags
    found = {name: problems(source, settings.strict, epp=epp) for name, source in sources(call.words[1:], settings).items()}
    if call.json:
        data = {name: _plain(issues, settings.environment) for name, issues in found.items() if issues}
        sys.stdout.buffer.write(dumps_pretty(data))
    else:
        for each in (issue for issues in found.values() for issue in issues):
            shown = _shown(each, settings.environment) if each.severity == "error" else str(each)
            print(f"{'Error' if each.severity == 'error' else 'Warning'}: {shown}", file=sys.stderr)
            if each.hint:
                print(f"       {each.hint}", file=sys.stderr)
    return 1 if any(each.severity == "error" for issues in found.values() for each in issues) else 0


def _shown(issue: Issue, environment: str) -> str:
    return f"Could not parse for environment {environment}: {issue}".rstrip()


def problems(source: Source, strict: str, *, epp: bool = False) -> list[Issue]:
    """Everything wrong or odd with a text."""
    try:
        return check(parse(source, epp=epp), source, strict=strict)  # type: ignore[arg-type]
    except ParseError as err:
        return [Issue("error", err.message, err.where or Location(source.file), err.hint)]


def sources(words: Sequence[str], settings: MasterSettings) -> dict[str, Source]:
    """What is to be checked, by name."""
    if words:
        missing = [word for word in words if not Path(word).exists()]
        if missing:
            raise PuppetError("One or more file(s) specified did not exist:\n" + "\n".join(f"     {word}" for word in missing))
        files = [file for word in words for file in (sorted(Path(word).rglob("*.pp")) if Path(word).is_dir() else [Path(word)])]
    elif not sys.stdin.isatty():
        return {"STDIN": Source(sys.stdin.read())}
    else:
        from .compilation import environment_of

        manifest = Path(environment_of(settings).manifest or settings.default_manifest)
        print(f"No manifest specified. Validating the default manifest {manifest}", file=sys.stderr)
        files = sorted(manifest.rglob("*.pp")) if manifest.is_dir() else [manifest]
    found: dict[str, Source] = {}
    for file in files:
        try:
            found[str(file)] = Source(file.read_text("utf-8"), str(file.absolute()))
        except (OSError, UnicodeDecodeError) as err:
            raise PuppetError(f"Could not read {file}: {err}") from err
    return found


def _plain(issues: Sequence[Issue], environment: str) -> dict[str, object]:
    """What is wrong with one file: the first error in Puppet's own keys, and all of them in `issues`."""
    first = next((each for each in issues if each.severity == "error"), issues[0])
    return _one(first, environment) | {"issues": [_one(each, environment) | {"severity": each.severity} for each in issues]}


def _one(issue: Issue, environment: str) -> dict[str, object]:
    return {
        "message": issue.message,
        "full_message": _shown(issue, environment),
        "file": issue.where.file,
        "line": issue.where.line,
        "pos": issue.where.column,
        "hint": issue.hint,
    }
