"""The faces of the environment's modules, for names that are not built in and for the help of `puppet`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from shared.errors import PuppetError
from shared.settings import AgentSettings, MasterSettings, flags_of

from .files import FaceFile, face_folders, faces_in, outlines


def command_of(name: str, argv: Sequence[str]) -> Callable[[Sequence[str]], int] | None:
    """
    Return the main function of the face with that name in a module of the environment, None when there is none.

    If the environment does not exist, it logs one warning.

    Raises:
        ConfigError: there is one that cannot be used.
    """
    folders, faces = _faces(argv)
    if name not in faces:
        return None
    from .command import FaceCommand  # help does not need it
    from .loading import load_face

    face = load_face(faces[name], folders)
    return FaceCommand(face, faces[name].path, folders).spec


def help_lines(built_in: Collection[str], argv: Sequence[str] = ()) -> dict[str, str]:
    """Return the summaries of the faces that modules have, by name; one warning is printed for each that cannot be used."""
    found, problems = outlines(_faces(argv)[1], built_in)
    for problem in problems:
        _warn(problem)
    return {outline.name: outline.summary for outline in found}


def _faces(argv: Sequence[str]) -> tuple[list[Path], dict[str, FaceFile]]:
    """Return the folders of modules, and the faces in them; neither, after a warning, where the environment cannot be read."""
    try:
        flags, words = flags_of(argv, AgentSettings, MasterSettings)
        folders = face_folders(flags, _modulepath(words))
        return folders, faces_in(folders)
    except PuppetError as err:
        _warn(err)
        return [], {}


def _modulepath(words: Sequence[str]) -> str:
    """Return the value of --modulepath among the words of a command line, the last one, '' when there is none."""
    value = ""
    for index, word in enumerate(words):
        name, equals, rest = word.partition("=")
        if name == "--modulepath":
            value = rest if equals else "".join(words[index + 1 : index + 2])
    return value


def _warn(problem: PuppetError) -> None:
    from shared.process.log import for_console  # few environments have faces that cannot be used

    print(f"Warning: {for_console(str(problem)).replace(chr(10), ' ')}", file=sys.stderr)
