"""`puppet FACE ACTION`, for a face of a module: its command line, its hooks, its result."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from shared import pluginfiles
from shared.errors import ConfigError, PuppetError
from shared.faces import Face, FaceCall
from shared.faces.core import FaceAction
from shared.faces.parameters import REQUIRED
from shared.process import log as logs
from shared.settings import AgentSettings, load

from ..faces import unknown_action
from .rendering import FORMS, rendered, write_output
from .usage import action_spec, face_options, face_spec

log = logging.getLogger("puppet.face")

Given = dict[str, Any]


class FaceCommand:
    """The command of one face; `path` is its file, `folders` are those of all modules' plugins."""

    def __init__(self, face: type[Face], path: Path | None = None, folders: Sequence[Path] = ()) -> None:
        self.face = face
        self.path = path
        self.folders = folders
        self.name = face.declaration.name
        self.spec = replace(face_spec(face), call=self.run)

    def run(self, argv: Sequence[str]) -> int:
        """Run `puppet FACE …` and return the exit code; raise ConfigError for a wrong command line, PuppetError when the action fails."""
        options, flags = self.spec.parse(argv)
        given: Given = {each: value for each in face_options(self.face) if (value := getattr(options, each)) not in (None, ())}
        declaration, words = self.face.declaration, options.arguments
        action = declaration.actions.get(words[0].replace("-", "_")) if words else None
        if options.help:
            print((self.spec if action is None else action_spec(self.face, action)).help())
            return 0
        if action is not None:
            words = words[1:]
        elif declaration.default_action:
            action = declaration.actions[declaration.default_action]
        elif words:
            raise unknown_action(self.name, words[0], declaration.actions)
        else:
            raise ConfigError(f"'{self.name}' has no default action.  See `puppet help {self.name}`.")
        return self.call(action, words, given, _form(options, action), flags)

    def call(self, action: FaceAction[..., Any], words: Sequence[str], given: Given, form: str, flags: dict[str, Any]) -> int:
        """
        Run an action and return the exit code. Raises as `run`.

        Args:
            given: words of the options by the name of their parameters. flags: the settings of the command line.
        """
        call = FaceCall(action.name, self._values(action, words, given), form)
        settings = load(AgentSettings, section=self.face.declaration.section, flags=flags)
        logs.set_up(level=logs.level_of(settings), colour=settings.color)
        own = {each.name: each.converted(given[each.name]) for each in self.face.declaration.options.values() if each.name in given}
        return asyncio.run(self._called(action, call, settings, own, flags))

    def _values(self, action: FaceAction[..., Any], words: Sequence[str], given: Given) -> dict[str, Any]:
        """Return the values of an action's parameters; ConfigError when the command line does not fit it."""
        parameters = action.parameters
        arguments = [each for each in parameters if not each.is_option]
        least, most = sum(each.is_required for each in arguments), None if any(each.repeated for each in arguments) else len(arguments)
        if len(words) < least or (most is not None and len(words) > most):
            raise ConfigError(
                f"puppet {self.name} {action.name} takes {_count(least, most)}, but you gave {len(words)}", hint=self._try(action)
            )
        options = {**self.face.declaration.options, **{each.name: each for each in parameters if each.is_option}}
        for name in given:
            if name not in options:
                word = face_options(self.face)[name].word
                raise ConfigError(f"--{word} is no option of puppet {self.name} {action.name}", hint=self._try(action))
        in_place = {each.name: words[index:] if each.repeated else words[index] for index, each in enumerate(arguments[: len(words)])}
        given = {**given, **in_place}
        values = {each.name: each.converted(given[each.name]) if each.name in given else each.default for each in parameters}
        if missing := next((each for each in parameters if values[each.name] is REQUIRED), None):
            raise ConfigError(f"puppet {self.name} {action.name} needs --{missing.word}", hint=self._try(action))
        return values

    def _try(self, action: FaceAction[..., Any]) -> str:
        return f"Try 'puppet help {self.name} {action.name}' for usage"

    async def _called(
        self, action: FaceAction[..., Any], call: FaceCall, settings: AgentSettings, own: Mapping[str, Any], flags: dict[str, Any]
    ) -> int:
        """Run hooks and action, print the result, and return the exit code."""
        from .services import Services  # all that a master keeps and a server answers, which many faces do not ask

        async with AsyncExitStack() as stack:
            face = self.face.made(settings, Services(settings, flags, self.folders, stack), own)
            try:
                for before in (type(face).before, *action.hooks_before):
                    await _finished(before(face, call))
                result = await _finished(_apply(action, face, call.parameters))
                for after in (*action.hooks_after, type(face).after):
                    await _finished(after(face, call, result))
                renderer = action.renderers.get(call.render_as)
                output = rendered(result, call.render_as) if renderer is None else renderer(face, result)
            except PuppetError as err:
                err.hint = err.hint or self._try(action)
                raise
            except (asyncio.CancelledError, BrokenPipeError):
                raise
            except Exception as err:
                if self.path is None:
                    raise  # ours
                log.debug("The face %s failed", self.name, exc_info=True)
                where = pluginfiles.place(err, self.path)
                problem = f"The action {action.name} of the face {self.name} failed: {type(err).__name__}: {err}"
                raise PuppetError(problem, where=where, hint="--debug prints more.") from err
        write_output(output)
        return face.exit_code


def _form(options: Any, action: FaceAction[..., Any]) -> str:
    form = options.render_as or ("json" if options.json else "yaml" if options.yaml else "console")
    known = dict.fromkeys([*FORMS, *action.renderers])
    if form not in known:
        raise ConfigError(f"I don't know how to render '{form}'", hint=f"There are {', '.join(known)}.")
    return str(form)


def _count(least: int, most: int | None) -> str:
    number = f"at least {least}" if most is None else str(least) if least == most else f"{least} to {most}"
    return f"{number} argument{'' if (least if most is None else most) == 1 else 's'}"


def _apply(action: FaceAction[..., Any], face: Face, values: Mapping[str, Any]) -> Any:
    """Call the method with the values of its parameters."""
    words, options = list[Any](), dict[str, Any]()
    for each in action.parameters:
        if each.is_option:
            options[each.name] = values[each.name]
        else:
            words += values[each.name] if each.repeated else [values[each.name]]
    return action.function(face, *words, **options)


async def _finished(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
