"""The process that runs Ruby and the frames exchanged with it. Whatever it does wrong ends it and raises one clear error."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.data import plainjson
from shared.errors import BadData, EvaluationError

HOST = Path(__file__).with_name("host.rb")
SEARCH = "/usr/bin:/bin"
ENVIRON = {"PATH": f"/opt/puppetlabs/bin:/usr/sbin:{SEARCH}", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "HOME": "/"}
HEAD = struct.Struct(">I")
EXIT_TIMEOUT = 0.5
"""Seconds for a process that closed its socket to end by itself."""
MAX_CHILDREN = 4
"""Children of one compiling process. Each environment has its own, because Ruby has only one namespace for classes."""


@dataclass(frozen=True, slots=True)
class RubySettings:
    """
    The settings about Ruby.

    Attributes:
        program: the path of the program; '' for none.
        timeout: seconds that it may take for one answer.
        answer: the most bytes of one message from it.
    """

    program: str = ""
    timeout: float = 60.0
    answer: int = 64 << 20


def find_ruby(setting: str, *, restricted: bool = False) -> str:
    """
    Return the program's path for the setting `ruby`; '' for none.

    Args:
        restricted: manifests may not do everything on this host. Ruby cannot be restricted, so `auto` then finds none.
    """
    if setting == "auto":
        return "" if restricted else shutil.which("ruby", path=SEARCH) or ""
    return setting


class RubyProgram:
    """The program, and its children of this process; when there are too many, the least recently used one is ended."""

    def __init__(self, settings: RubySettings) -> None:
        self.settings = settings
        self._children: list[RubyChild] = []

    def start(self) -> RubyChild:
        """Return a new child; raise EvaluationError when the program cannot be started."""
        self._children = [child for child in self._children if child.alive]
        while len(self._children) >= MAX_CHILDREN:
            self._children.pop(0).end()
        child = RubyChild(self.settings)
        self._children.append(child)
        return child

    def mark_used(self, child: RubyChild) -> None:
        """Make a child the most recently used one."""
        if self._children[-1] is not child and child in self._children:
            self._children.remove(child)
            self._children.append(child)


class RubyChild:
    """One process of Ruby."""

    def __init__(self, settings: RubySettings) -> None:
        self.settings = settings
        self._ended = False
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [settings.program, str(HOST), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what a template prints, not what it renders
                cwd="/",
                env=ENVIRON,
                pass_fds=[theirs.fileno()],
            )
        except OSError as error:
            ours.close()
            raise EvaluationError(
                f"Could not start {settings.program}: {error.strerror}", hint="The setting ruby names the program; '' for none."
            ) from error
        finally:
            theirs.close()
        self._socket = ours
        self._end = weakref.finalize(self, _kill, self._process, ours)

    @property
    def alive(self) -> bool:
        """Whether messages can be sent to it."""
        return not self._ended and self._process.poll() is None

    def end(self) -> None:
        """Kill the process and wait for it."""
        self._ended = True
        self._end()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; raise EvaluationError when the process has ended."""
        body = plainjson.dumps(message)
        with self._deadline():
            self._socket.sendall(HEAD.pack(len(body)) + body)

    def receive(self) -> dict[str, Any]:
        """Return the next message; end the process and raise EvaluationError when there is none, or it is malformed or too long."""
        with self._deadline() as remaining:
            (size,) = HEAD.unpack(self._receive_exactly(HEAD.size, remaining))
            if size > self.settings.answer:
                raise EvaluationError(
                    f"Ruby answered {size} bytes, more than ruby_answer allows ({self.settings.answer})", hint="Raise it, or render less."
                )
            body = self._receive_exactly(size, remaining)
            try:
                message = plainjson.loads(body)
            except BadData as error:
                raise EvaluationError("Ruby answered nonsense", hint=f"Something wrote into its socket: {error.message}") from error
            if not isinstance(message, dict):
                raise EvaluationError("Ruby answered nonsense", hint="Something wrote into its socket.")
            return message

    def _receive_exactly(self, size: int, remaining: Callable[[], float]) -> bytes:
        parts: list[bytes] = []
        while size:
            self._socket.settimeout(remaining())
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionResetError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    @contextmanager
    def _deadline(self) -> Iterator[Callable[[], float]]:
        """
        Yield a function that returns the seconds that remain of the timeout.

        Any exception in the block, compile_timeout included, may come in the middle of a frame. So each ends the process.
        """
        end = time.monotonic() + self.settings.timeout

        def remaining() -> float:
            seconds = end - time.monotonic()
            if seconds <= 0:
                raise TimeoutError
            return seconds

        try:
            self._socket.settimeout(self.settings.timeout)
            yield remaining
        except TimeoutError:
            self.end()
            raise EvaluationError(
                f"Ruby took longer than ruby_timeout ({self.settings.timeout:g} seconds)",
                hint="Raise it, or look for an endless loop in the template or function.",
            ) from None
        except OSError:
            try:
                self._process.wait(EXIT_TIMEOUT)  # so that its exit code is its own
            except subprocess.TimeoutExpired:
                pass
            self.end()
            raise EvaluationError(
                f"Ruby has ended {_describe_exit(self._process.returncode)}", hint="It is started again when it is needed."
            ) from None
        except BaseException:
            self.end()
            raise


def _describe_exit(code: int | None) -> str:
    return f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"


def _kill(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    ours.close()
    process.kill()
    process.wait()
