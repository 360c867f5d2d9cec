"""strftime: times as text."""

from __future__ import annotations

from ..values.times import Timespan, Timestamp
from .api import Context, function


@function("strftime", "Timespan time_object", "String format")
def strftime(context: Context, time_object: Timespan, format_: str) -> str:
    """Return a Timespan or Timestamp as text, in a format."""
    return time_object.format(format_)


@strftime.also("Timestamp time_object", "String format", "String timezone?")
def strftime_timestamp(context: Context, time_object: Timestamp, format_: str, timezone: str | None = None) -> str:
    return time_object.format(format_, timezone)


@strftime.also("String format", "String timezone?")
def strftime_now(context: Context, format_: str, timezone: str | None = None) -> str:
    context.warn_once(
        "deprecations",
        "legacy#strftime",
        "The argument signature (String format, [String timezone]) is deprecated for #strftime. "
        "See #strftime documentation and Timespan type for more info",
        place=True,
    )
    return Timestamp(context.now()).format(format_, timezone)
