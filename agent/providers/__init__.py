"""Providers: how resources are read and changed on this machine, one folder a type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shared.ral import Provider

from ..runlog import RunLog

if TYPE_CHECKING:
    from .file.posix import FileContext

Makers = Mapping[str, Callable[[], Sequence[Provider[Any]]]]


def builtin_providers(*, log: RunLog, files: Callable[[], FileContext] | None = None) -> Makers:
    """
    For each type what makes its providers; nothing is imported before a catalog needs it.

    Args:
        files: what the type `file` needs of the run; None: files cannot be managed.
    """

    def notify() -> Sequence[Provider[Any]]:
        from .notify.log import LogMessage

        return [LogMessage(log)]

    def exec_() -> Sequence[Provider[Any]]:
        from .exec.posix import ExecContext, Posix, Shell

        context = ExecContext(log)
        return [Posix(context), Shell(context)]

    def file() -> Sequence[Provider[Any]]:
        from .file.posix import Posix

        return [Posix(files())] if files else []

    return {"notify": notify, "exec": exec_, "file": file}
