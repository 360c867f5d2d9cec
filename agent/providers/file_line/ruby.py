"""The provider of `file_line`; it has the name that it has in stdlib."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from shared.errors import ResourceError
from shared.ral import Provider, State
from shared.types.file_line import FileLine

from ..parsed.storage import read_file, replace_file


def split(text: str) -> list[str]:
    """Return the lines with their ends."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _without_newline(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _with_newline(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"


def _count_matching(resource: FileLine, lines: Sequence[str]) -> int:
    """Return how many lines the attribute `match` matches; 0 without one."""
    pattern = resource.match
    if pattern is None:
        return 0
    others = resource.replace_all_matches_not_matching_line
    return sum(1 for line in lines if pattern.search(line) and not (others and _without_newline(line) == resource.line))


def is_in_sync(resource: FileLine, lines: Sequence[str]) -> bool:
    """Return whether the file is as `ensure` and the other attributes ask for."""
    present = any(_without_newline(line) == resource.line for line in lines)
    if resource.match is None:
        return present
    matching = _count_matching(resource, lines)
    if resource.ensure == "absent":
        return present or (matching > 0 and bool(resource.match_for_absence))
    if matching == 0:
        return present or not resource.append_on_no_match
    if resource.replace_all_matches_not_matching_line:
        return False
    return present or not resource.replace


def with_line(resource: FileLine, lines: Sequence[str]) -> list[str]:
    """Return the lines with the managed one; ResourceError when more of them match than may."""
    new = f"{resource.line}\n"
    terminated = [_with_newline(line) for line in lines]
    after = resource.after
    if resource.match is not None:
        match, matching = resource.match, _count_matching(resource, lines)
        if matching > 1 and not resource.multiple:
            raise ResourceError(f"More than one line in file '{resource.path}' matches pattern '{match.source}'")
        if matching:
            return [new if match.search(line) else line for line in terminated]
        at = next((i for i, line in enumerate(lines) if after and after.search(line)), None)
        return [*terminated, new] if at is None else [*terminated[: at + 1], new, *terminated[at + 1 :]]
    if after is not None:
        count = sum(1 for line in lines if after.search(line))
        if count > 1 and not resource.multiple:
            raise ResourceError(
                f"{count} lines match pattern '{after.source}' in file '{resource.path}'. One or no line must match the pattern."
            )
        if count:
            return [copy for line in terminated for copy in ([line, new] if after.search(line) else [line])]
    return [*terminated, new]


def without_line(resource: FileLine, lines: Sequence[str]) -> list[str]:
    """Return the lines without the managed one, or those that match; ResourceError when more of them match than may."""
    if not (resource.match_for_absence and resource.match):
        return [line for line in lines if _without_newline(line) != resource.line]
    match = resource.match
    if _count_matching(resource, lines) > 1 and not resource.multiple:
        raise ResourceError(f"More than one line in file '{resource.path}' matches pattern '{match.source}'")
    return [line for line in lines if not match.search(line)]


class FileLineRuby(Provider[FileLine], type=FileLine, name="ruby"):
    """Reads the file for each resource, and replaces the whole file."""

    async def retrieve(self, resource: FileLine) -> State | None:
        return {"line": resource.line} if is_in_sync(resource, await self._lines(resource)) else None

    async def create(self, resource: FileLine, state: State | None) -> None:
        lines = await self._lines(resource)
        if resource.replace or not _count_matching(resource, lines):
            await self._write(resource, with_line(resource, lines))

    async def destroy(self, resource: FileLine, state: State | None) -> None:
        await self._write(resource, without_line(resource, await self._lines(resource)))

    async def _lines(self, resource: FileLine) -> list[str]:
        data = await asyncio.to_thread(read_file, str(resource.path))
        if data is None:
            if resource.simulated:
                return []
            raise ResourceError(
                f"No such file or directory - {resource.path}", hint="file_line changes files that exist; manage the file too."
            )
        try:
            return split(data.decode(resource.encoding, _errors(resource)))
        except (LookupError, UnicodeError) as err:
            raise ResourceError(f"Could not read {resource.path} as {resource.encoding}: {err}") from err

    async def _write(self, resource: FileLine, lines: Sequence[str]) -> None:
        try:
            data = "".join(lines).encode(resource.encoding, _errors(resource))
        except UnicodeError as err:
            raise ResourceError(f"Could not write {resource.path} as {resource.encoding}: {err}") from err
        await asyncio.to_thread(replace_file, str(resource.path), data)


def _errors(resource: FileLine) -> str:
    """Return the error handler for decoding, which preserves bytes that are not UTF-8."""
    return "surrogateescape" if resource.encoding.lower() in ("utf-8", "utf8") else "strict"
