"""Which faces the modules of the environment have: what `puppet` asks for a name that is not built in, and for its help."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from shared.errors import PuppetError
from shared.settings import AgentSettings, MasterSettings, flags_of

from .files import FaceFile, face_folders, faces_in, outlines

T = TypeVar("T")


def command_of(name: str, argv: Sequence[str]) -> Callable[[Sequence[str]], int] | None:
    """
    Return the main function of the face of that name which a module of the environment has, None when there is none.

    Where nobody can say, because the environment is not there, one warning does.

    Raises:
        ConfigError: there is one that cannot be used.
    """
    folders = _folders(argv)
    faces = _or_warning(lambda: faces_in(folders), dict[str, FaceFile]())
    if name not in faces:
        return None
    from .command import FaceCommand  # help does not need it
    from .loading import load_face

    face = load_face(faces[name], folders)
    return lambda argv: FaceCommand(face, faces[name].path, folders).run(argv)


def help_lines(built_in: Collection[str], argv: Sequence[str] = ()) -> dict[str, str]:
    """Return the summaries of the faces that modules have, by name; one warning is printed for each that cannot be used."""
    found, problems = outlines(_or_warning(lambda: faces_in(_folders(argv)), dict[str, FaceFile]()), built_in)
    for problem in problems:
        _warn(problem)
    return {outline.name: outline.summary for outline in found}


def _folders(argv: Sequence[str]) -> list[Path]:
    def folders() -> list[Path]:
        flags, words = flags_of(argv, AgentSettings, MasterSettings)
        return face_folders(flags, _modulepath(words))

    return _or_warning(folders, [])


def _modulepath(words: Sequence[str]) -> str:
    """Return the value of --modulepath among the words of a command line, the last one, '' when there is none."""
    value = ""
    for index, word in enumerate(words):
        name, equals, rest = word.partition("=")
        if name == "--modulepath":
            value = rest if equals else "".join(words[index + 1 : index + 2])
    return value


def _or_warning(read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except PuppetError as err:
        _warn(err)
        return otherwise


def _warn(problem: PuppetError) -> None:
    from shared.process.log import for_console  # few environments have faces that cannot be used

    print(f"Warning: {for_console(str(problem)).replace(chr(10), ' ')}", file=sys.stderr)
