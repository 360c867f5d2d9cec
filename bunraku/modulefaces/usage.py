"""A face and its actions as commands, made from their declarations: options, and help."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import make_dataclass
from typing import Any

from shared.faces import Face
from shared.faces.core import FaceAction
from shared.faces.parameters import FaceParameter
from shared.process.cli import CommandOptions, flag, maybe_flag, maybe_text, text, texts
from shared.process.command import CommandSpec

from .rendering import FORMS


def face_options(face: type[Face]) -> dict[str, FaceParameter]:
    """Return the options of a face and of all its actions, by name."""
    declaration = face.declaration
    own = {each.name: each for action in declaration.actions.values() for each in action.parameters if each.is_option}
    return {**own, **declaration.options}


def face_spec(face: type[Face]) -> CommandSpec[Any]:
    """Return the command of a face. Its command line has the options of all actions: which of them has one is known when the action is."""
    declaration = face.declaration
    default = " (the default)"
    return CommandSpec(
        declaration.name,
        _options_class(face_options(face).values(), FORMS),
        actions={_usage(each): f"{each.doc.summary}{default if each.is_default else ''}" for each in declaration.actions.values()},
        text=_paragraphs(declaration.doc.summary, declaration.doc.description),
        notes=_paragraphs(_examples(declaration.doc.examples), f"See 'puppet help {declaration.name} ACTION' for one of them."),
    )


def action_spec(face: type[Face], action: FaceAction[..., Any]) -> CommandSpec[Any]:
    """Return an action as a command, for its help."""
    doc, parameters = action.doc, action.parameters
    options = [*(each for each in parameters if each.is_option), *face.declaration.options.values()]
    return CommandSpec(
        face.declaration.name,
        _options_class(options, dict.fromkeys([*FORMS, *action.renderers])),
        usage=[_usage(action)],
        arguments={each.spelling: _doc(each) for each in parameters if not each.is_option},
        text=_paragraphs(doc.summary, doc.description),
        notes=_paragraphs(f"Returns: {doc.returns}" if doc.returns else "", _examples(doc.examples)),
    )


def _options_class(parameters: Iterable[FaceParameter], forms: Iterable[str]) -> type[CommandOptions]:
    fields: list[Any] = []
    for each in parameters:
        value, doc = "|".join(each.choices) or each.word.upper(), _doc(each)
        declared = maybe_flag(doc) if each.is_flag else texts(value, doc) if each.repeated else maybe_text(value, doc)
        fields.append((each.name, Any, declared))
    fields += [("render_as", str | None, maybe_text("|".join(forms), "the form of the result"))]
    fields += [("modulepath", str, text("FOLDERS", "modules from there, not those of the environment"))]
    fields += [("json", bool, flag(None)), ("yaml", bool, flag(None))]
    return make_dataclass("FaceOptionsOfModule", fields, bases=(CommandOptions,), frozen=True)


def _usage(action: FaceAction[..., Any]) -> str:
    parameters = action.parameters
    return " ".join([action.name, *(each.usage for is_option in (False, True) for each in parameters if each.is_option is is_option)])


def _examples(examples: str) -> str:
    return f"Examples:\n{textwrap.indent(examples, '  ')}" if examples else ""


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _doc(parameter: FaceParameter) -> str:
    if parameter.is_required or parameter.is_flag or parameter.default in (None, "", ()):
        return parameter.doc
    return f"{parameter.doc} ({parameter.default})".lstrip()
