"""The help of a face and of its actions, made of their declarations."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from shared.faces import Face, FaceAction
from shared.faces.parameters import FaceParameter

from .rendering import FORMS

WIDTH = 140


def face_usage(face: type[Face]) -> str:
    """Return what `puppet help FACE` prints."""
    declaration = face.declaration
    name, default = declaration.name, declaration.default_action
    lines = [_synopsis(name, each) for each in declaration.actions.values()]
    parts = [_usage_lines(lines), _prose(declaration.doc.summary, declaration.doc.description)]
    width = max(map(len, declaration.actions), default=0)
    actions = [
        f"  {each:<{width}}  {one.doc.summary}{' (the default)' if each == default else ''}" for each, one in declaration.actions.items()
    ]
    parts.append("\n".join(["Actions:", *(line.rstrip() for line in actions)]))
    parts.append(_options([*declaration.options.values()], ()))
    if declaration.doc.examples:
        parts.append(f"Examples:\n{textwrap.indent(declaration.doc.examples, '  ')}")
    parts.append(f"See 'puppet help {name} ACTION' for one of them. Every setting of puppet.conf is an option too.")
    return "\n\n".join(part for part in parts if part)


def action_usage(face: type[Face], action: FaceAction[..., object]) -> str:
    """Return what `puppet help FACE ACTION` prints."""
    declaration, doc = face.declaration, action.doc
    parameters = action.parameters()
    arguments = [each for each in parameters if not each.is_option]
    parts = [_usage_lines([_synopsis(declaration.name, action)]), _prose(doc.summary, doc.description)]
    if arguments:
        parts.append(_table(arguments))
    parts.append(_options([*(each for each in parameters if each.is_option), *declaration.options.values()], action.renderers))
    if doc.returns:
        parts.append(f"Returns: {doc.returns}")
    if doc.examples:
        parts.append(f"Examples:\n{textwrap.indent(doc.examples, '  ')}")
    return "\n\n".join(part for part in parts if part)


def _synopsis(face: str, action: FaceAction[..., object]) -> str:
    parameters = action.parameters()
    words = [each.usage for is_option in (False, True) for each in parameters if each.is_option is is_option]
    return " ".join(["puppet", face, action.name, *words])


def _usage_lines(lines: Iterable[str]) -> str:
    return "\n".join(f"{'Usage:' if number == 0 else '      '} {line}" for number, line in enumerate(lines))


def _prose(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _options(parameters: list[FaceParameter], own_forms: Iterable[str]) -> str:
    forms = "|".join(dict.fromkeys([*FORMS, *own_forms]))
    return _table(
        parameters,
        (f"--render-as {forms}", "the form of the result"),
        ("--modulepath FOLDERS", "modules from there, not those of the environment"),
    )


def _table(parameters: list[FaceParameter], *more: tuple[str, str]) -> str:
    rows = [(each.spelling, each.doc + _default(each)) for each in parameters] + list(more)
    width = min(max(len(name) for name, _ in rows), 40)
    lines: list[str] = []
    for name, doc in rows:
        wrapped = textwrap.wrap(doc, WIDTH - width - 4) or [""]
        lines.append(f"  {name:<{width}}  {wrapped[0]}".rstrip())
        lines += [f"{'':{width + 4}}{line}" for line in wrapped[1:]]
    return "\n".join(lines)


def _default(parameter: FaceParameter) -> str:
    if parameter.is_required or parameter.is_flag or parameter.default in (None, "", ()):
        return ""
    return f" ({parameter.default})" if parameter.doc else f"({parameter.default})"
