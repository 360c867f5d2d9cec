"""A face's class, out of the file of a module."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from shared import pluginfiles
from shared.errors import ConfigError, Location
from shared.faces import Face
from shared.filesystem.trust import check_place_of_code
from shared.indirector.plugins import find_models
from shared.ral.plugins import make_importable
from shared.settings import IGNORED_SETTINGS, AgentSettings, MasterSettings

from .files import FaceFile

LOADING_TIME = 30.0  # seconds
OWN_WORDS = frozenset({"help", "version", "render-as", "json", "yaml", "modulepath"})
"""Options that every face has."""


def load_face(file: FaceFile, folders: Sequence[Path] = ()) -> type[Face]:
    """
    Return the class in a file, which is run as a module of its own. Blocks.

    Args:
        folders: those of all modules' plugins, whose models, types and providers it may import.
    Raises:
        ConfigError: others may write to it, it cannot be loaded within LOADING_TIME, it would end this process, it is not the face that
            its name says, or an option of it is taken.
    """
    file.check()
    find_models(folders, check_place_of_code)
    make_importable(folders, check_place_of_code)
    name = f"puppet_face_{file.name}"
    with _bounded(LOADING_TIME):
        module = pluginfiles.load(file.path, name, f"the face {file.name}", beside=file.folder)
    cls = pluginfiles.only(module, Face, lambda cls: "declaration" in vars(cls))
    if cls.declaration.name != file.name:
        raise ConfigError(f"{file.path} defines the face {cls.declaration.name}, not {file.name}")
    try:
        _check_options(cls)
    except ConfigError as err:
        raise ConfigError(f"Could not load the face {file.name}: {err.message}", where=Location(str(file.path)), hint=err.hint) from err
    return cls


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Raise an error in code that takes longer, or that would end this process without a word."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it takes longer than {seconds:g} seconds")

    def leave(code: int) -> None:
        raise SystemExit(f"it calls os._exit({code})")

    exit_before, is_main = os._exit, threading.current_thread() is threading.main_thread()
    os._exit = leave  # type: ignore[assignment]
    if is_main:
        before = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again, should it catch the first
    try:
        yield
    finally:
        os._exit = exit_before
        if is_main:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def _check_options(cls: type[Face]) -> None:
    """Raise ConfigError when an option has the name of a setting, of one that all faces have, or two kinds in two actions."""
    settings = {*AgentSettings.model_fields, *MasterSettings.model_fields, *IGNORED_SETTINGS, "serverport"}
    kinds: dict[str, bool] = {}
    own = cls.declaration.options
    of_actions = [(name, each) for name, action in cls.declaration.actions.items() for each in action.parameters() if each.is_option]
    for owner, parameter in [*(("", each) for each in own.values()), *of_actions]:
        if parameter.word in OWN_WORDS:
            raise ConfigError(f"--{parameter.word} is an option of every face")
        if (setting := parameter.word.replace("-", "_")) in settings:
            raise ConfigError(f"--{parameter.word} is a setting", hint=f"Read self.settings.{setting}.")
        if owner and parameter.name in own:
            raise ConfigError(f"--{parameter.word} is an option of all actions, and of {owner}")
        if kinds.setdefault(parameter.word, parameter.is_flag) is not parameter.is_flag:
            raise ConfigError(f"--{parameter.word} takes a value in one action, and none in another")
