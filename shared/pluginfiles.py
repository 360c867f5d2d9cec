"""Python files of modules: loaded without a trace on disk; errors name file and line."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TypeVar

from .errors import ConfigError, Location

B = TypeVar("B")
Check = Callable[[Path], None]


class _FromSource(SourceFileLoader):
    """Compiles the file each time and writes no bytecode file, which pluginsync would take for a stray file."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class PluginFinder(MetaPathFinder):
    """
    Lets files of modules import each other, by names that begin with one of `prefixes`.

    Args:
        check: is called with each file before it is loaded; an exception prevents loading.
    """

    def __init__(self, files: Mapping[str, Path], prefixes: tuple[str, ...], check: Check | None = None) -> None:
        self.files = files
        self.prefixes = prefixes
        self.check = check

    def install(self) -> None:
        """
        Discard modules loaded by an earlier run, and resolve imports from now on. The interpreter's own tables are the only place for
        both.
        """
        for name in [module for module in sys.modules if module.startswith(self.prefixes)]:
            del sys.modules[name]
        sys.meta_path[:] = [
            finder for finder in sys.meta_path if not (isinstance(finder, PluginFinder) and finder.prefixes == self.prefixes)
        ]
        sys.meta_path.append(self)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        file = self.files.get(fullname)
        if file is not None and self.check is not None:
            self.check(file)
        return None if file is None else spec(file, fullname)


def spec(path: Path, name: str) -> ModuleSpec | None:
    """Return the import specification of a file as the module `name`."""
    return importlib.util.spec_from_file_location(name, path, loader=_FromSource(name, str(path)))


def load(path: Path, name: str, what: str, *, beside: Path | None = None) -> ModuleType:
    """
    Run the file as the module `name`, which others can import afterwards.

    Args:
        what: the kind of file, for the error's text.
        beside: a folder of files that this one may import; an error's place may be in them.
    Raises:
        ConfigError: the fault, with its place.
    """
    module_spec = spec(path, name)
    assert module_spec is not None and module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module
    try:
        module_spec.loader.exec_module(module)
    except (Exception, SystemExit) as err:
        del sys.modules[name]
        text = err.msg if isinstance(err, SyntaxError) else str(err)
        raise ConfigError(f"Could not load {what}: {type(err).__name__}: {text}", where=place(err, path, beside=beside)) from err
    return module


def place(err: BaseException, path: Path, *, beside: Path | None = None) -> Location:
    """Return the place of an error in the code of a file: its innermost line, or that of another file below `beside`."""
    if isinstance(err, SyntaxError) and err.filename:
        return Location(err.filename, err.lineno)
    file, line = str(path), None
    step = err.__traceback__
    while step is not None:
        name = step.tb_frame.f_code.co_filename
        if name == str(path) or (beside is not None and name.startswith(f"{beside}/")):
            file, line = name, step.tb_lineno
        step = step.tb_next
    return Location(file, line)


def only(module: ModuleType, base: type[B], counts: Callable[[type[B]], bool] = lambda cls: True) -> type[B]:
    """Return the one class of a kind that a loaded file defines; names with an underscore in front do not count."""
    classes = [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, base)
        and cls.__module__ == module.__name__
        and not cls.__name__.startswith("_")
        and counts(cls)
    ]
    if len(classes) != 1:
        raise ConfigError(f"{module.__file__} must define one subclass of {base.__name__}, not {len(classes)}")
    return classes[0]
