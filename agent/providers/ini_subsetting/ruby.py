"""The provider of `ini_subsetting`; it has the name that it has in inifile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared.ral import Provider, State
from shared.types.ini_subsetting import IniSubsetting

from ..ini_setting.ruby import read_ini, write_ini
from ..ini_setting.text import IniStyle, IniText
from .words import Words


class IniSubsettingRuby(Provider[IniSubsetting], type=IniSubsetting, name="ruby"):
    """
    Reads the file for each resource, and replaces the whole file.

    Args:
        show_diff: returns the setting of that name: whether any values are shown.
    """

    def __init__(self, show_diff: Callable[[], bool] = lambda: False) -> None:
        self.show_diff = show_diff

    async def _read(self, resource: IniSubsetting) -> tuple[IniText, Words]:
        text = await read_ini(resource, IniStyle(resource.key_val_separator))
        words = Words.of(
            text.get(resource.section, str(resource.setting)),
            separator=resource.subsetting_separator,
            quote=resource.quote_char,
            joiner=resource.subsetting_key_val_separator,
            exact=resource.use_exact_match,
        )
        return text, words

    async def retrieve(self, resource: IniSubsetting) -> State | None:
        resource.diffs = self.show_diff()
        _, words = await self._read(resource)
        value = words.get(str(resource.subsetting))
        if value is None:
            return None
        return {"value": resource.value_of("value") or "" if resource.use_exact_match else value}

    async def create(self, resource: IniSubsetting, state: State | None) -> None:
        text, words = await self._read(resource)
        words.set(str(resource.subsetting), resource.value or "", resource.insert_type, resource.insert_value or "")
        text.set(resource.section, str(resource.setting), str(words))
        await write_ini(resource, text)

    async def set_value(self, resource: IniSubsetting, desired: Any, state: State | None) -> None:
        await self.create(resource, state)

    async def destroy(self, resource: IniSubsetting, state: State | None) -> None:
        text, words = await self._read(resource)
        words.remove(str(resource.subsetting))
        if not words.items and resource.delete_if_empty:
            text.remove(resource.section, str(resource.setting))
        else:
            text.set(resource.section, str(resource.setting), str(words))
        await write_ini(resource, text)
