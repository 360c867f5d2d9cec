"""The provider of `yumrepo`: sections of yum.conf and of the files in its folders of repositories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.ral import ABSENT, Provider, State
from shared.types.yumrepo import Yumrepo

from ..ini_setting.text import IniStyle, IniText
from ..parsed.storage import read_file, replace_file

STYLE = IniStyle(separator="=")


@dataclass
class _File:
    text: IniText
    modified: bool = False


class Inifile(Provider[Yumrepo], type=Yumrepo, name="inifile"):
    """
    Reads all files once; changes a section in place, and writes new sections to files of their own.

    Args:
        conf: yum's configuration, which names the folders of the other files.
        folders: the folders when it names none.
    """

    def __init__(
        self, conf: Path = Path("/etc/yum.conf"), folders: Sequence[Path] = (Path("/etc/yum.repos.d"), Path("/etc/yum/repos.d"))
    ) -> None:
        self.conf = conf
        self.folders = tuple(folders)
        self._files: dict[str, _File] | None = None

    # --- reading

    async def prefetch(self, resources: Mapping[str, Yumrepo]) -> Mapping[str, State | None]:
        await self._load()
        return {key: self._state(key) for key in resources}

    async def instances(self) -> Mapping[str, State]:
        names = [s.name for file in (await self._load()).values() for s in file.text.sections if s.header is not None and s.name != "main"]
        return {name: state for name in dict.fromkeys(names) if (state := self._state(name)) is not None}

    async def _load(self) -> dict[str, _File]:
        if self._files is None:
            self._files = await asyncio.to_thread(self._read)
        return self._files

    def _read(self) -> dict[str, _File]:
        paths = [self.conf, *(path for folder in self._repo_folders() for path in sorted(folder.glob("*.repo")))]
        files = {}
        for path in paths:
            data = read_file(str(path))
            if data is not None:
                files[str(path)] = _File(IniText(data.decode("utf-8", "surrogateescape"), STYLE))
        return files

    def _repo_folders(self) -> list[Path]:
        """Return the folders of repositories, by yum's own setting or the usual ones; those that exist."""
        data = read_file(str(self.conf))
        output = IniText((data or b"").decode("utf-8", "replace"), STYLE).get("main", "reposdir")
        folders = [Path(part) for part in output.replace(",", " ").split()] if output else list(self.folders)
        return [folder for folder in folders if folder.is_dir()]

    def _path_of(self, name: str) -> str | None:
        return next((path for path, file in (self._files or {}).items() if file.text.has_section(name)), None)

    def _state(self, name: str) -> State | None:
        path = self._path_of(name)
        if path is None or self._files is None:
            return None
        text = self._files[path].text
        values = {attribute: text.get(name, key) for attribute, key in Yumrepo.section_keys().items()}
        return {"ensure": "present"} | {attribute: value for attribute, value in values.items() if value is not None}

    # --- changing

    async def create(self, resource: Yumrepo, state: State | None) -> None:
        files = await self._load()
        path = self._path_of(resource.name)
        if path is None:
            folders = await asyncio.to_thread(self._repo_folders)
            path = str((folders[-1] if folders else self.folders[0]) / f"{resource.name}.repo")
            files.setdefault(path, _File(IniText("", STYLE)))
        files[path].text.add_section(resource.name)
        files[path].modified = True
        for attribute in Yumrepo.section_keys():
            desired = resource.wanted(attribute)
            if desired:
                await self.set(resource, attribute, desired[0], state)

    async def destroy(self, resource: Yumrepo, state: State | None) -> None:
        path = self._path_of(resource.name)
        if path is not None:
            file = (await self._load())[path]
            file.text.sections = [section for section in file.text.sections if section.name != resource.name or section.header is None]
            file.modified = True

    async def set(self, resource: Yumrepo, attribute: str, desired: Any, state: State | None) -> None:
        path = self._path_of(resource.name)
        if path is None:
            return
        file = (await self._load())[path]
        key = Yumrepo.section_keys()[attribute]
        if desired == ABSENT:
            file.text.remove(resource.name, key)
            file.text.add_section(resource.name)
        else:
            file.text.set(resource.name, key, str(desired))
        file.modified = True

    async def flush(self, resource: Yumrepo, now: State | None) -> None:
        for path, file in list((await self._load()).items()):
            if file.modified:
                await asyncio.to_thread(self._write, path, str(file.text))
                file.modified = False

    def _write(self, path: str, text: str) -> None:
        """Write a file; one without any section is removed, unless it is yum's own. Blocks."""
        if not text.strip() and path != str(self.conf):
            Path(path).unlink(missing_ok=True)
            return
        replace_file(path, text.encode("utf-8", "surrogateescape"), mode=0o644)
