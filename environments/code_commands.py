"""
The site's programs for versions of code: the version of an environment, and a file at a version.

They are run without a shell, with a deadline and a limit on their output. Source: protocol reference 3.15.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from shared.errors import BadRequest, ConfigError, Denied, PuppetError
from shared.names import quoted_for_log
from shared.programs import emptied, kill_group, run_bounded, start_program

from .revisions import MAX_CODE_ID, is_code_id

T = TypeVar("T")

MAX_PATH = 4096
CHUNK = 64 * 1024
ENVIRON = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}

_PATH = re.compile(r"[^/]+/[^/]+/(?:files|tasks|scripts|lib)/.+")


def check_code_id(text: str) -> str:
    """Return a code id; BadRequest when it is not one."""
    if not is_code_id(text):
        raise BadRequest(f"Not a code id: {quoted_for_log(text)}", hint="Code ids are made of letters, digits and - _ : ;")
    return text


def check_path(path: str) -> str:
    """Return the path of a file below an environment that static catalogs may name; Denied for every other path."""
    segments = path.split("/")
    odd = any(part in ("", ".", "..") for part in segments) or not path.isprintable() or path.startswith("-")
    if odd or len(path) > MAX_PATH or not _PATH.fullmatch(path):
        raise Denied(f"Only files of modules are served by version, not {quoted_for_log(path)}")
    return path


def _command(name: str, text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as err:
        raise ConfigError(f"The setting {name} cannot be split into words: {err}") from err
    if words and not words[0].startswith("/"):
        raise ConfigError(f"The setting {name} must begin with the absolute path of a program, not {quoted_for_log(words[0])}")
    return words


@dataclass(frozen=True, slots=True)
class CodeCommands:
    """
    The two programs with their first arguments.

    Args:
        timeout: Seconds for a code id, and between two pieces of a file.
        most: Bytes of one file.
        at_once: How many programs may run at a time.
    """

    id: tuple[str, ...]
    content: tuple[str, ...]
    timeout: float = 60.0
    most: int = 2**30
    at_once: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(8))

    @classmethod
    def of(cls, code_id: str, code_content: str, *, timeout: float, most: int) -> CodeCommands | None:
        """Return the commands that two settings name, None when there are none; ConfigError when one is missing or not absolute."""
        identify, contents = _command("code_id_command", code_id), _command("code_content_command", code_content)
        if not identify and not contents:
            return None
        if not (identify and contents):
            missing = "code_content_command" if identify else "code_id_command"
            raise ConfigError(
                f"The setting {missing} is missing", hint="code_id_command and code_content_command are set together or not at all."
            )
        return cls(identify, contents, timeout=timeout, most=most)

    async def code_id(self, environment: str) -> str | None:
        """Return the version of an environment, None when the program prints none; PuppetError: it fails or prints something else."""
        action = f"find the code id of environment {environment}"
        async with self.at_once:
            printed = await run_bounded([*self.id, environment], timeout=self.timeout, most=16 * MAX_CODE_ID, environ=ENVIRON, what=action)
        text = printed.decode("utf-8", "replace").strip()
        if not text:
            return None
        try:
            return check_code_id(text)
        except BadRequest as err:
            raise PuppetError(f"Failed to {action}: {err.message}", hint=err.hint) from err

    async def file(self, environment: str, code_id: str, path: str) -> AsyncGenerator[bytes, None]:
        """
        Yield the bytes of a file at a version. The last piece comes only when the program has ended well.

        Raises:
            BadRequest, Denied: The id or path is invalid.
            PuppetError: The program failed, was slow or printed too much.
        """
        argv = [*self.content, environment, check_code_id(code_id), check_path(path)]
        async with self.at_once, aclosing(self._run(argv, f"fetch {quoted_for_log(path)} at {code_id}")) as pieces:
            async for piece in pieces:
                yield piece

    async def _run(self, argv: list[str], action: str) -> AsyncGenerator[bytes, None]:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await start_program(
                *argv, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=ENVIRON, cwd="/", limit=CHUNK
            )
        except OSError as err:
            raise PuppetError(f"Failed to {action}: {argv[0]}: {err.strerror}") from err
        assert process.stdout is not None and process.stderr is not None
        complaint = asyncio.create_task(_read_beginning(process.stderr, 4096))
        try:
            piece_before, size = b"", 0
            while piece := await self._await_output(process.stdout.read(CHUNK), argv, action):
                if piece_before:
                    yield piece_before
                piece_before, size = piece, size + len(piece)
                if size > self.most:
                    raise PuppetError(f"Failed to {action}: {argv[0]} printed more than {self.most} bytes")
            code = await self._await_output(process.wait(), argv, action)
            if code != 0:
                kill_group(process.pid)
                text = (await complaint).decode("utf-8", "replace").strip()
                raise PuppetError(f"Failed to {action}: {argv[0]} ended with {code}: {text[:500]}")
            if piece_before:
                yield piece_before
        finally:
            kill_group(process.pid)
            await emptied(process.stdout)
            await process.wait()
            complaint.cancel()

    async def _await_output(self, waited: Awaitable[T], argv: list[str], action: str) -> T:
        try:
            async with asyncio.timeout(self.timeout):
                return await waited
        except TimeoutError:
            raise PuppetError(f"Failed to {action}: {argv[0]} printed nothing for {self.timeout:g} seconds") from None


async def _read_beginning(stream: asyncio.StreamReader, most: int) -> bytes:
    """Return the first bytes of a stream, read to its end."""
    beginning = b""
    while chunk := await stream.read(CHUNK):
        beginning += chunk[: most - len(beginning)]
    return beginning
