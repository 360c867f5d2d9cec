"""The actions of indirections in commands that are built in, by the same mechanism as in faces of modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.errors import NotFound
from shared.faces import IndirectionFace

from ..faces import IndirectionOptions
from .command import FaceCommand
from .files import face_folders


class _Catalogs(IndirectionFace, name="catalog"): ...


class _Facts(IndirectionFace, name="facts"): ...


class _Nodes(IndirectionFace, name="node"): ...


class _Reports(IndirectionFace, name="report"): ...


class _Requests(IndirectionFace, name="certificate_request", without=("save", "destroy")):
    """Find requests for certificates at the CA."""


class _RevocationLists(IndirectionFace, name="certificate_revocation_list", without=("search", "save", "destroy")):
    """
    Fetch the CA's revocation list.

    Examples:
        puppet certificate_revocation_list find ca
    """


class _BucketFiles(IndirectionFace, name="file", indirection="file_bucket_file", without=("search", "save", "destroy")):
    """
    Fetch files of the master's filebucket; 'puppet filebucket' does more.

    Examples:
        puppet file find sha256/b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c
    """


class _ResourceTypes(IndirectionFace, name="resource_type", without=("save", "destroy")):
    """
    Find classes, defined types and nodes of the master's manifests.

    Examples:
        puppet resource_type search 'apache.*'
    """


class _Statuses(IndirectionFace, name="status", without=("search", "save", "destroy")):
    """
    Ask whether the master answers.

    Examples:
        puppet status find master.example.com --server master.example.com
    """


_FACES: dict[str, type[IndirectionFace]] = {
    face.declaration.name: face
    for face in (_BucketFiles, _Catalogs, _Facts, _Nodes, _Reports, _Requests, _ResourceTypes, _RevocationLists, _Statuses)
}


def command_for(name: str) -> FaceCommand:
    """Return the command of an indirection's face, with its own line of options."""
    return FaceCommand(_FACES[name])


def run_action(options: IndirectionOptions, flags: dict[str, Any], *own_actions: str) -> int:
    """
    Run an action that a command does not have itself; the exit code.

    Raises:
        ConfigError: the indirection has no such action either; `own_actions` are those of the command.
    """
    face = _FACES[options.face]
    action = face.declaration.actions.get(options.action)
    if action is None:
        raise options.unknown_action([*face.declaration.actions, *own_actions])
    given = {name: value for name, value in (("terminus", options.terminus), ("extra", options.extra)) if value}
    form = "json" if options.as_json else "yaml" if options.as_yaml else "console"
    return FaceCommand(face, folders=plugin_folders(flags)).call(action, options.names, given, form, flags)


def plugin_folders(flags: dict[str, Any]) -> Sequence[Any]:
    """Return the folders of modules' plugins, none where the environment is not there."""
    try:
        return face_folders(flags)
    except NotFound:
        return ()
