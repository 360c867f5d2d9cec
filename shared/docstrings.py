"""The help texts in a docstring: summary, description, parameters, result, examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SECTION = re.compile(r"(Args|Arguments|Options|Raises|Examples?|Notes?|Returns):\s*((?<=Returns: ).*)?")
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring taken apart; `parameters` by name, `examples` with their own indentation."""

    summary: str = ""
    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    returns: str = ""
    examples: str = ""


def parse_docstring(text: str | None) -> Docstring:
    """Return the parts of a docstring in Google's style: a first line, paragraphs, and sections such as `Args:` and `Examples:`."""
    sections: dict[str, list[str]] = {"": []}
    name = ""
    for line in inspect.cleandoc(text or "").splitlines():
        heading = _SECTION.fullmatch(line)
        if heading is not None:
            name = heading[1]
            sections.setdefault(name, []).append(heading[2] or "")
        elif line and not line[0].isspace() and name:
            name = ""
            sections[""].append(line)
        else:
            sections[name].append(line)
    summary, _, description = "\n".join(sections.pop("")).strip().partition("\n\n")
    parts = {name: inspect.cleandoc("\n" + "\n".join(lines)) for name, lines in sections.items()}
    parameters = "\n".join(parts.get(name, "") for name in ("Args", "Arguments", "Options"))
    return Docstring(
        " ".join(summary.split()),
        description.strip(),
        _parameters(parameters),
        " ".join(parts.get("Returns", "").split()),
        "\n".join(parts[name] for name in ("Example", "Examples") if parts.get(name)),
    )


def _parameters(text: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        match = None if line[:1].isspace() else _PARAMETER.fullmatch(line.strip())
        if match is not None:
            name = match[1]
            parameters[name] = match[2]
        elif name:
            parameters[name] = f"{parameters[name]} {line.strip()}".strip()
    return parameters
