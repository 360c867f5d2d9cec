"""Print references of types, functions and settings. Source: command line reference 2.11."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from language.functions.stdlib import stdlib_functions
from language.loading.builtins import all_functions
from shared.data.plainjson import dumps_pretty
from shared.errors import ConfigError, NotFound
from shared.process.cli import CommandOptions, flag, text
from shared.process.command import CommandSpec
from shared.settings import IGNORED_SETTINGS, AgentSettings, MasterSettings, setting_text
from shared.types import builtin_types


@dataclass(frozen=True, slots=True)
class ReferenceEntry:
    """One entry of a reference; `details` by their headings, `code` is true for code of the language."""

    name: str
    text: str
    details: Mapping[str, Sequence[str]]
    code: bool = False

    def markdown(self) -> str:
        """As a section."""
        lines = [f"## {self.name}", "", self.text.strip()]
        if self.code:
            lines += [line for texts in self.details.values() if texts for line in ("", "```puppet", *texts, "```")]
        else:
            lines += [line for name, texts in self.details.items() if texts for line in ("", f"- *{name}*: {', '.join(texts)}")]
        return "\n".join(lines) + "\n"

    def data(self) -> dict[str, Any]:
        """Return the entry in the form of JSON."""
        return {"name": self.name, "text": self.text.strip(), **{name: list(texts) for name, texts in self.details.items()}}


def functions() -> Iterator[ReferenceEntry]:
    """Yield the functions of the language and of stdlib."""
    functions_by_name = {**stdlib_functions(), **all_functions()}
    for name in sorted(functions_by_name):
        yield ReferenceEntry(name, functions_by_name[name].doc, {"signatures": functions_by_name[name].usages()}, code=True)


def settings() -> Iterator[ReferenceEntry]:
    """Return the entries of all settings of puppet.conf."""
    fields = {**AgentSettings.model_fields, **MasterSettings.model_fields}
    for name in sorted({*fields, *IGNORED_SETTINGS}):
        if name in IGNORED_SETTINGS:
            ignored = IGNORED_SETTINGS[name]
            text = "Only the default is accepted" if ignored.refused else "Without effect here"
            yield ReferenceEntry(name, f"{text}: {ignored.why}", {"default": [ignored.default] if ignored.default else []})
            continue
        default = setting_text(fields[name].default)
        yield ReferenceEntry(name, fields[name].description, {"default": [default] if default else []})


def types() -> Iterator[ReferenceEntry]:
    """Yield the resource types, each with its attributes."""
    for name, cls in sorted(builtin_types().items()):
        attributes = sorted(each for each, attribute in cls.declaration.attributes.items() if not attribute.meta)
        yield ReferenceEntry(name, cls.declaration.doc, {"attributes": attributes})


def metaparameters() -> Iterator[ReferenceEntry]:
    """The attributes that all types have."""
    declared = builtin_types()["notify"].declaration.attributes
    for name in sorted(each for each, attribute in declared.items() if attribute.meta):
        yield ReferenceEntry(name, declared[name].doc, {"values": [str(each.value) for each in declared[name].values]})


REFERENCES: Mapping[str, tuple[str, Callable[[], Iterator[ReferenceEntry]]]] = {
    "configuration": ("All settings, with their defaults", settings),
    "function": ("All functions of the language and of stdlib", functions),
    "metaparameter": ("The attributes that all resource types have", metaparameters),
    "type": ("All resource types and their attributes", types),
}


@dataclass(frozen=True, slots=True)
class DocOptions(CommandOptions):
    """The command line; its arguments are names of entries."""

    reference: str = text("NAME", "configuration, function, metaparameter or type (the default)", "-r", default="type")
    list: bool = flag("list the references", "-l")
    json: bool = flag("print JSON: of each entry its name, its text, and signatures, values or a default")


@CommandSpec(
    "doc",
    DocOptions,
    (),
    usage=["[--reference NAME] [--json] [ENTRY ...]", "--list"],
    text="Prints a reference in Markdown, or those entries of it that are named. Functions of modules are not in it.",
    notes="See also: puppet describe TYPE.",
    is_face=False,
).main
def main(options: DocOptions, flags: dict[str, Any]) -> int:
    if options.list:
        print("\n".join(f"{name} - {summary}" for name, (summary, _) in REFERENCES.items()))
        return 0
    chosen, names = options.reference, options.arguments
    if chosen not in REFERENCES:
        raise ConfigError(f"Could not find reference {chosen}", hint=f"There are {', '.join(REFERENCES)}.")
    entries = {entry.name: entry for entry in REFERENCES[chosen][1]()}
    for name in names:
        if name not in entries:
            raise NotFound(f"The reference {chosen} has no {name}")
    chosen_entries = [entries[name] for name in names or entries]
    if options.json:
        sys.stdout.buffer.write(dumps_pretty([entry.data() for entry in chosen_entries]))
    else:
        print(
            "\n".join(([] if names else [f"# {chosen.capitalize()} Reference\n"]) + [entry.markdown() for entry in chosen_entries]).rstrip()
        )
    return 0
