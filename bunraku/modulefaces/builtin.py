"""The actions of indirections in commands that are built in, by the same mechanism as in faces of modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.errors import NotFound
from shared.faces import IndirectionFace

from ..faces import IndirectionOptions
from .command import FaceCommand
from .files import face_folders


def indirection_command(name: str, doc: str, example: str = "", *, indirection: str = "", without: tuple[str, ...] = ()) -> FaceCommand:
    """
    Return a command with the actions of an indirection.

    Args:
        indirection: Its name, if it is not the command's.
        without: The actions that are left out.
    """

    class OwnFace(IndirectionFace, name=name, indirection=indirection or name, without=without):
        __doc__ = f"{doc}\n\nExamples:\n    {example}" if example else doc

    return FaceCommand(OwnFace)


def run_action(options: IndirectionOptions, flags: dict[str, Any], *own_actions: str) -> int:
    """
    Run an action that a command does not have itself; return the exit code.

    Raises:
        ConfigError: the indirection has no such action either; `own_actions` are those of the command.
    """
    command = indirection_command(options.command, "")
    actions = command.face.declaration.actions
    if options.action not in actions:
        raise options.unknown_action([*actions, *own_actions])
    given = {name: value for name, value in (("terminus", options.terminus), ("extra", options.extra)) if value}
    form = "json" if options.as_json else "yaml" if options.as_yaml else "console"
    command.folders = plugin_folders(flags)
    return command.call(actions[options.action], options.names, given, form, flags)


def plugin_folders(flags: dict[str, Any]) -> Sequence[Any]:
    """Return the folders of modules' plugins, none where the environment is not there."""
    try:
        return face_folders(flags)
    except NotFound:
        return ()
