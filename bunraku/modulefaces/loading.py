"""A face's class, out of the file of a module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shared import pluginfiles
from shared.errors import ConfigError
from shared.faces import Face
from shared.filesystem.trust import check_place_of_code
from shared.indirector.plugins import find_models
from shared.ral.plugins import make_importable

from .files import FaceFile


def load_face(file: FaceFile, folders: Sequence[Path] = ()) -> type[Face]:
    """
    Return the class in a file, which is run as a module of its own. Blocks.

    Args:
        folders: those of all modules' plugins, whose models, types and providers it may import.
    Raises:
        ConfigError: others may write to it, it cannot be loaded, or it is not the face that its name says.
    """
    file.check()
    find_models(folders, check_place_of_code)
    make_importable(folders, check_place_of_code)
    module = pluginfiles.load(file.path, f"puppet_face_{file.name}", f"the face {file.name}", beside=file.folder)
    cls = pluginfiles.only(module, Face, lambda cls: "declaration" in vars(cls))
    if cls.declaration.name != file.name:
        raise ConfigError(f"{file.path} defines the face {cls.declaration.name}, not {file.name}")
    return cls
