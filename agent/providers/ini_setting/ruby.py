"""The provider of `ini_setting`; it has the name that it has in inifile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from shared.ral import ABSENT, Provider, State
from shared.types.ini_setting import IniSetting
from shared.types.ini_subsetting import IniSubsetting

from ..parsed.storage import read_file, replace_file
from .text import IniStyle, IniText


def style_of(resource: IniSetting) -> IniStyle:
    return IniStyle(
        resource.key_val_separator, resource.section_prefix, resource.section_suffix, resource.indent_char, resource.indent_width
    )


async def read_ini(resource: IniSetting | IniSubsetting, style: IniStyle) -> IniText:
    """Return the file as it is now; empty when there is none."""
    data = await asyncio.to_thread(read_file, str(resource.path))
    return IniText((data or b"").decode("utf-8", "surrogateescape"), style)


async def write_ini(resource: IniSetting | IniSubsetting, text: IniText) -> None:
    await asyncio.to_thread(replace_file, str(resource.path), str(text).encode("utf-8", "surrogateescape"))


class IniSettingRuby(Provider[IniSetting], type=IniSetting, name="ruby"):
    """
    Reads the file for each resource, and replaces the whole file.

    Args:
        show_diff: returns the setting of that name: whether any values are shown.
    """

    def __init__(self, show_diff: Callable[[], bool] = lambda: False) -> None:
        self.show_diff = show_diff

    async def retrieve(self, resource: IniSetting) -> State | None:
        resource.diffs = self.show_diff()
        text = await read_ini(resource, style_of(resource))
        if not text.has_section(resource.section) and not resource.force_new_section_creation:
            resource.assign("ensure", ABSENT)
            return None
        if resource.setting is None:
            exists = bool(resource.section) and text.has_section(resource.section)
            return {"value": resource.value_of("value") or ABSENT} if exists else None
        value = text.get(resource.section, resource.setting)
        return None if value is None else {"value": value}

    async def create(self, resource: IniSetting, state: State | None) -> None:
        text = await read_ini(resource, style_of(resource))
        if resource.setting is None:
            text.add_section(resource.section)
        else:
            text.set(resource.section, resource.setting, resource.value or "")
        await write_ini(resource, text)

    async def destroy(self, resource: IniSetting, state: State | None) -> None:
        text = await read_ini(resource, style_of(resource))
        if resource.setting is None:
            text.remove_section(resource.section)
        else:
            text.remove(resource.section, resource.setting)
        await write_ini(resource, text)

    async def set_value(self, resource: IniSetting, desired: Any, state: State | None) -> None:
        await self.create(resource, state)

    async def refresh(self, resource: IniSetting) -> None:
        if not resource.refreshonly:
            return
        if resource.ensure == ABSENT:
            await self.destroy(resource, None)
        else:
            await self.create(resource, None)
