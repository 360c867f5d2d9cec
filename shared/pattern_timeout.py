"""The time limit of one match of a pattern. It is a separate module so that setting it does not load the engine (`shared/regexps.py`)."""

from __future__ import annotations

from contextvars import ContextVar

PATTERN_TIMEOUT: ContextVar[float] = ContextVar("pattern_timeout", default=5.0)
"""Seconds of processor time for one match: the setting `pattern_timeout` of the current master, agent or command."""
