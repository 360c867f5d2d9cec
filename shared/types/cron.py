"""`cron`: a job of a user's crontab. Source: resource layer reference 10.1."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..ral import ABSENT, Param, Property, Ref, State, Type, ensurable
from ..ral.attributes import as_list, text_of
from .kinds.lines import breaks_line, one_line

SPECIALS = ("reboot", "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly", ABSENT)
TIME_FIELDS = ("minute", "hour", "monthday", "month", "weekday")
_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS = (
    "", "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_SPAN = re.compile(r"\*/[0-9]+|[0-9]+-[0-9]+(/[0-9]+)?", re.ASCII)
_ENVIRONMENT = re.compile(r"\s*(\w+)\s*=\s*(.*)\s*")


class CronTimes(Property[list[str]]):
    """One field of a schedule: numbers within limits, names, steps and spans; `*` is absent."""

    lowest, highest = 0, 59
    names: Sequence[str] = ()

    def accept(self, resource: Type, raw: Any) -> list[Any]:
        values = [self._accept_one(resource, value) for value in as_list(raw)]
        return [ABSENT] if values and values[0] == ABSENT else values

    def munge(self, resource: Type, value: Any) -> Any:
        text = text_of(value)
        if text in (ABSENT, "*"):
            return ABSENT
        if _SPAN.fullmatch(text):
            return text
        number = self._number(text)
        if number is None:
            quoted = f'"{text}"' if isinstance(value, str) else text
            raise ValueError(f"Munging failed for value {quoted} in class {self.name}: {text} is not a valid {self.name}")
        return number

    def _number(self, text: str) -> str | None:
        if text.isascii() and text.isdigit():
            return text if self.lowest <= int(text) <= self.highest else None
        low = text.lower()
        position = next((i for i, name in enumerate(self.names) if name and low in (name, name[:3])), None)
        return None if position is None else str(position)

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get(self.name, ABSENT)
        return ([ABSENT] if current == ABSENT else list(current)) == desired

    def should_text(self, resource: Type, value: Any) -> str:
        return super().should_text(resource, ABSENT if value == [ABSENT] else value)

    def should(self, resource: Type, state: State, desired: list[Any]) -> Any:
        return ABSENT if desired == [ABSENT] else desired


class CronHours(CronTimes):
    lowest, highest = 0, 23


class CronWeekdays(CronTimes):
    lowest, highest, names = 0, 7, _WEEKDAYS


class CronMonths(CronTimes):
    lowest, highest, names = 1, 12, _MONTHS


class CronMonthdays(CronTimes):
    lowest, highest = 1, 31


class CronEnvironment(Property[list[str]]):
    """Settings above the job; their order does not matter."""

    def validate(self, resource: Type, value: Any) -> None:
        text = text_of(value)
        if text != ABSENT and (breaks_line(text) or not _ENVIRONMENT.fullmatch(text)):
            raise ValueError(f'Invalid environment setting "{text}"')

    def insync(self, resource: Type, state: State, desired: list[Any]) -> bool:
        current = state.get("environment", ABSENT)
        return bool(sorted(current) == sorted(desired)) if isinstance(current, list) else [current] == desired

    def should_text(self, resource: Type, value: Any) -> str:
        return ",".join(map(text_of, value)) if isinstance(value, list) else super().should_text(resource, value)


class CronSpecial(Property[str]):
    def validate(self, resource: Type, value: Any) -> None:
        if value not in SPECIALS:
            raise ValueError(f'Invalid special schedule "{text_of(value)}"')


def _owner(resource: Any) -> str:
    """Return the job's user, by default the one that this process runs as."""
    user = resource.value_of("user")
    if user:
        return str(user)
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return "root"


class Cron(Type, name="cron"):
    """A command that runs at certain times, in a user's crontab; a comment above it has the name."""

    ensure = ensurable()
    command = Property(
        str, check=one_line("Command"), munge=lambda v: text_of(v).strip(), doc="What to run; a percent sign needs a backslash."
    )
    special = CronSpecial(str, doc="reboot, hourly, daily, … in place of times; absent for times.")
    minute = CronTimes(str, many=True, doc="0 to 59.")
    hour = CronHours(str, many=True, doc="0 to 23.")
    weekday = CronWeekdays(str, many=True, doc="0 to 7 (both Sunday), or names.")
    month = CronMonths(str, many=True, doc="1 to 12, or names.")
    monthday = CronMonthdays(str, many=True, doc="1 to 31.")
    environment = CronEnvironment(str, many=True, doc="Settings for the job, each `NAME=value`.")
    user = Property(str, check=one_line("User"), doc="Whose crontab; by default who runs this.")
    target = Property(str, check=one_line("Target"), default=_owner, doc="Whose crontab; leave it out and use `user`.")

    name = Param(str, namevar=True, check=one_line("Name"), doc="What the job is called.")

    def validate(self) -> None:
        if self.value_of("special") in (None, ABSENT):
            return
        for field in ("minute", "hour", "weekday", "monthday", "month"):
            if self.wanted(field) not in (None, [ABSENT]):
                raise ValueError(f"{self.ref} cannot specify both a special schedule and a value for {field}")

    def autorequire(self) -> Iterator[Ref]:
        user = self.value_of("user")
        if user:
            yield Ref("user", str(user))

    def fits(self, values: Mapping[str, Any]) -> bool:
        """Return whether a job without a name is this one: it has the same command and all desired times."""
        if values.get("command") != self.value_of("command"):
            return False
        for field in (*TIME_FIELDS, "special"):
            desired = self.wanted(field)
            if desired is None:
                continue
            current = values.get(field, ABSENT)
            if ([current] if isinstance(current, str) else current) != desired:
                return False
        return True
