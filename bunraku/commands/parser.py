"""Check manifests. Source: command line reference 2.9."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.listings.manifests import manifests_below, problems, source_of
from language.syntax.checker import Diagnostic
from language.syntax.dump import as_data, notation_of
from language.syntax.nodes import Program
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.data.plainjson import dumps_pretty
from shared.errors import Location, ParseError, PuppetError, Unsupported
from shared.process.cli import flag, maybe_text, text
from shared.process.command import CommandSpec
from shared.settings import MasterSettings, load

from ..faces import JsonFaceOptions


@dataclass(frozen=True, slots=True)
class ParserOptions(JsonFaceOptions):
    """The command line of `puppet parser`."""

    e: str | None = maybe_text("SOURCE", "a manifest as text, instead of files", "-e")
    format: str = text("FORMAT", "dump: pn (Puppet's notation, the default), or the same as json", default="pn")
    epp: bool = flag("the input is EPP templates")
    pretty: bool = flag("dump: on many lines")
    validate: bool = flag("dump: report all errors, not only those of syntax", negatable=True)


@CommandSpec(
    "parser",
    ParserOptions,
    (MasterSettings,),
    actions={
        "validate [FILE | FOLDER...]": "check the given files, or a source, or standard input if it is a pipe, or the main manifest",
        "dump [FILE | FOLDER...]": "print the syntax tree of the given files, of a source, or of standard input",
    },
    help_if_bare=True,
    notes="""validate prints nothing and exits with 0 when all is well; else it prints every error of every file, and exits with 1. As
    JSON: an object by file, with message, full_message, file, line, pos.""",
).main
def main(options: ParserOptions, flags: dict[str, Any]) -> int:
    if options.action == "dump":
        return dump(options, load(MasterSettings, section="user", flags=flags))
    if options.action != "validate":
        raise options.unknown_action(("validate", "dump"))
    settings = load(MasterSettings, section="user", flags=flags)
    text = options.e
    texts = {"": Source(text)} if text is not None else sources(options.names, settings)
    issues_by_name = {name: problems(source, settings.strict, epp=options.epp) for name, source in texts.items()}
    if options.as_json:
        data = {name: _plain(issues, settings.environment) for name, issues in issues_by_name.items() if issues}
        sys.stdout.buffer.write(dumps_pretty(data))
    else:
        for diagnostic in (issue for issues in issues_by_name.values() for issue in issues):
            message = _error_text(diagnostic, settings.environment) if diagnostic.severity == "error" else str(diagnostic)
            print(f"{'Error' if diagnostic.severity == 'error' else 'Warning'}: {message}", file=sys.stderr)
            if diagnostic.hint:
                print(f"       {diagnostic.hint}", file=sys.stderr)
    return 1 if any(diagnostic.severity == "error" for issues in issues_by_name.values() for diagnostic in issues) else 0


def dump(options: ParserOptions, settings: MasterSettings) -> int:
    """Print syntax trees; 1 when a text is wrong."""
    form = options.format
    if form not in ("pn", "json"):
        hint = "There are pn (Puppet's notation) and json (the same graph)."
        raise Unsupported(f"A dump in the format {form} is not supported", hint=hint)
    text = options.e
    if text is None and not options.names and sys.stdin.isatty():
        raise PuppetError("No input to parse given on command line or stdin")
    texts = {"": Source(text)} if text is not None else sources(options.names, settings)
    code = 0
    for name, source in texts.items():
        if options.names:
            print(f"--- {name}")
        issues = problems(source, settings.strict, epp=options.epp) if options.validate else []
        errors = [issue for issue in issues if issue.severity == "error"]
        if not errors:
            try:
                _print_dump(parse(source, epp=options.epp), form, pretty=options.pretty)
                continue
            except ParseError as err:
                errors = [Diagnostic("error", err.message, err.where or Location(source.file), err.hint)]
        code = 1
        for issue in errors:
            print(f"Error: {issue}", file=sys.stderr)
    return code


def _print_dump(program: Program, form: str, *, pretty: bool) -> None:
    if form == "pn":
        print(notation_of(program, pretty=pretty))
    else:
        print(json.dumps(as_data(program), ensure_ascii=False, indent=2 if pretty else None, separators=None if pretty else (",", ":")))


def _error_text(issue: Diagnostic, environment: str) -> str:
    return f"Could not parse for environment {environment}: {issue}".rstrip()


def sources(words: Sequence[str], settings: MasterSettings) -> dict[str, Source]:
    """Return the sources to check, by name."""
    if words:
        missing = [word for word in words if not Path(word).exists()]
        if missing:
            raise PuppetError("One or more file(s) specified did not exist:\n" + "\n".join(f"     {word}" for word in missing))
        files = [file for word in words for file in (sorted(manifests_below(Path(word))) if Path(word).is_dir() else [Path(word)])]
    elif not sys.stdin.isatty():
        return {"STDIN": Source(sys.stdin.read())}
    else:
        from ..environment import environment_of

        manifest = Path(environment_of(settings).manifest or settings.default_manifest)
        print(f"No manifest specified. Validating the default manifest {manifest}", file=sys.stderr)
        files = sorted(manifests_below(manifest)) if manifest.is_dir() else [manifest]
    return {str(file): source_of(file) for file in files}


def _plain(issues: Sequence[Diagnostic], environment: str) -> dict[str, object]:
    """Return the errors of one file: the first in Puppet's own keys, and all of them in `issues`."""
    first = next((issue for issue in issues if issue.severity == "error"), issues[0])
    return _issue_data(first, environment) | {
        "issues": [_issue_data(issue, environment) | {"severity": issue.severity} for issue in issues]
    }


def _issue_data(issue: Diagnostic, environment: str) -> dict[str, object]:
    return {
        "message": issue.message,
        "full_message": _error_text(issue, environment),
        "file": issue.where.file,
        "line": issue.where.line,
        "pos": issue.where.column,
        "hint": issue.hint,
    }
