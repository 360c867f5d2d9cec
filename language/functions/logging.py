"""debug info notice warning err alert emerg crit: values to the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..values.core import Value
from ..values.text import join
from .api import Context, Dispatch, Function

LEVELS: Final = ("debug", "info", "notice", "warning", "err", "alert", "emerg", "crit")


def _log_function(level: str) -> Function:
    def log(context: Context, *values: Value) -> None:
        context.log(level, join(values))

    code: Callable[..., Value] = log
    return Function(level, [Dispatch(("Any values*",), code, "Undef")], f"Log the values, joined with blanks, at level {level}.")


debug, info, notice, warning, err, alert, emerg, crit = map(_log_function, LEVELS)
