"""The library libaugeas, if this system has it. Everything blocks; one tree is used by one thread at a time."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final

from shared.errors import ResourceError, Unsupported

NAME: Final = "libaugeas.so.0"
NO_LOAD: Final = 1 << 5
NO_MODL_AUTOLOAD: Final = 1 << 6
TYPE_CHECK: Final = 1 << 2

_TEXT = ctypes.c_char_p
_LIST = ctypes.POINTER(ctypes.c_void_p)
_SIGNATURES: Final[dict[str, tuple[Any, list[Any]]]] = {
    "aug_init": (ctypes.c_void_p, [_TEXT, _TEXT, ctypes.c_uint]),
    "aug_close": (None, [ctypes.c_void_p]),
    "aug_get": (ctypes.c_int, [ctypes.c_void_p, _TEXT, ctypes.POINTER(_TEXT)]),
    "aug_set": (ctypes.c_int, [ctypes.c_void_p, _TEXT, _TEXT]),
    "aug_setm": (ctypes.c_int, [ctypes.c_void_p, _TEXT, _TEXT, _TEXT]),
    "aug_rm": (ctypes.c_int, [ctypes.c_void_p, _TEXT]),
    "aug_mv": (ctypes.c_int, [ctypes.c_void_p, _TEXT, _TEXT]),
    "aug_rename": (ctypes.c_int, [ctypes.c_void_p, _TEXT, _TEXT]),
    "aug_insert": (ctypes.c_int, [ctypes.c_void_p, _TEXT, _TEXT, ctypes.c_int]),
    "aug_defvar": (ctypes.c_int, [ctypes.c_void_p, _TEXT, _TEXT]),
    "aug_defnode": (ctypes.c_int, [ctypes.c_void_p, _TEXT, _TEXT, _TEXT, ctypes.c_void_p]),
    "aug_match": (ctypes.c_int, [ctypes.c_void_p, _TEXT, ctypes.POINTER(_LIST)]),
    "aug_load": (ctypes.c_int, [ctypes.c_void_p]),
    "aug_save": (ctypes.c_int, [ctypes.c_void_p]),
    "aug_error_message": (_TEXT, [ctypes.c_void_p]),
    "aug_error_minor_message": (_TEXT, [ctypes.c_void_p]),
}


def available() -> bool:
    """Return whether the library is there."""
    try:
        ctypes.CDLL(NAME)
    except OSError:
        return False
    return True


def _bytes(text: str | None) -> bytes | None:
    if text is not None and "\0" in text:
        raise ResourceError("Paths and values of Augeas cannot hold a NUL")
    return None if text is None else text.encode("utf-8", "surrogateescape")


class AugeasTree:
    """One tree over the files below `root`."""

    def __init__(self, root: str, load_path: str, flags: int) -> None:
        try:
            self._library: Any = ctypes.CDLL(NAME)
        except OSError as err:
            raise Unsupported("Augeas is not installed", hint="Install the library: apt-get install libaugeas0 augeas-lenses.") from err
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self._free = ctypes.CDLL(None).free
        self._free.argtypes = [ctypes.c_void_p]
        self._handle: int | None = self._library.aug_init(os.fsencode(root), os.fsencode(load_path), flags)
        if not self._handle:
            raise ResourceError(f"Augeas could not be opened with root {root}")

    def close(self) -> None:
        if self._handle:
            self._library.aug_close(self._handle)
            self._handle = None

    def __enter__(self) -> AugeasTree:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def call(self, function: str, *arguments: str | int | None) -> int:
        """Call `aug_<function>`; return its result, below zero when it failed."""
        converted = [_bytes(argument) if isinstance(argument, str) or argument is None else argument for argument in arguments]
        return int(getattr(self._library, f"aug_{function}")(self._handle, *converted))

    def problem(self) -> str:
        """Return the description of the last failure."""
        parts = (self._library.aug_error_message(self._handle), self._library.aug_error_minor_message(self._handle))
        return ": ".join(part.decode("utf-8", "replace") for part in parts if part)

    def get(self, path: str) -> str | None:
        """Return a node's value; None when it has no value or does not exist."""
        value = _TEXT()
        status = self._library.aug_get(self._handle, _bytes(path), ctypes.byref(value))
        if status < 0:
            raise ResourceError(f"Augeas could not read {path}: {self.problem()}")
        return value.value.decode("utf-8", "surrogateescape") if value.value is not None else None

    def match(self, path: str) -> list[str]:
        """Return the paths of all nodes that match."""
        nodes = _LIST()
        count = self._library.aug_match(self._handle, _bytes(path), ctypes.byref(nodes))
        if count < 0:
            raise ResourceError(f"Error trying to match path '{path}': {self.problem()}")
        paths = []
        for number in range(count):
            pointer = nodes[number]
            paths.append((ctypes.cast(pointer, _TEXT).value or b"").decode("utf-8", "surrogateescape"))
            self._free(pointer)
        if count:
            self._free(ctypes.cast(nodes, ctypes.c_void_p))
        return paths

    def values(self, paths: Sequence[str]) -> list[str | None]:
        return [self.get(path) for path in paths]
