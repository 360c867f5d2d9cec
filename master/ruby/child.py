"""The process that runs Ruby: started, asked in frames, ended. Whatever it does wrong ends it, and is one clear error."""

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

__all__ = ["Child", "RubyProgram", "RubySettings", "installed"]

HOST = Path(__file__).with_name("host.rb")
SEARCH = "/usr/bin:/bin"
ENVIRON = {"PATH": f"/opt/puppetlabs/bin:/usr/sbin:{SEARCH}", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "HOME": "/"}
HEAD = struct.Struct(">I")
DYING = 0.5
"""Seconds for a process that closed its socket to end by itself."""
MAX_RUNNING = 4
"""Children of one compiling process: one an environment, as Ruby's classes are not told apart by environment."""


@dataclass(frozen=True, slots=True)
class RubySettings:
    """
    What the settings say of Ruby.

    Attributes:
        program: its path; '' for none. timeout: seconds that it may be silent. answer: bytes of one thing that it says.
    """

    program: str = ""
    timeout: float = 60.0
    answer: int = 64 << 20


def installed(named: str, *, narrowed: bool = False) -> str:
    """
    The program's path for the setting `ruby`; '' for none.

    `narrowed`: what manifests may do on this host is narrowed. Nothing narrows Ruby, so it has to be named then.
    """
    if named == "auto":
        return "" if narrowed else shutil.which("ruby", path=SEARCH) or ""
    return named


class RubyProgram:
    """The program, and the children of it that this process has: the one that was used longest ago ends first."""

    def __init__(self, settings: RubySettings) -> None:
        self.settings = settings
        self._running: list[Child] = []

    def start(self) -> Child:
        """A new child; EvaluationError when there is none to be had."""
        self._running = [child for child in self._running if child.alive]
        while len(self._running) >= MAX_RUNNING:
            self._running.pop(0).end()
        child = Child(self.settings)
        self._running.append(child)
        return child

    def used(self, child: Child) -> None:
        """Note that it is used now."""
        if self._running[-1] is not child and child in self._running:
            self._running.remove(child)
            self._running.append(child)


class Child:
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
        self._end = weakref.finalize(self, _ended, self._process, ours)

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._ended and self._process.poll() is None

    def end(self) -> None:
        """End it for certain."""
        self._ended = True
        self._end()

    def send(self, message: dict[str, Any]) -> None:
        """Say something to it; EvaluationError when it has ended."""
        body = plainjson.dumps(message)
        with self._in_time():
            self._socket.sendall(HEAD.pack(len(body)) + body)

    def receive(self) -> dict[str, Any]:
        """What it says next; EvaluationError when that is nothing, nonsense or too much. It is ended then."""
        with self._in_time() as left:
            (size,) = HEAD.unpack(self._exactly(HEAD.size, left))
            if size > self.settings.answer:
                raise EvaluationError(
                    f"Ruby answered {size} bytes, more than ruby_answer allows ({self.settings.answer})", hint="Raise it, or render less."
                )
            body = self._exactly(size, left)
            try:
                message = plainjson.loads(body)
            except BadData as error:
                raise EvaluationError("Ruby answered nonsense", hint=f"Something wrote into its socket: {error.message}") from error
            if not isinstance(message, dict):
                raise EvaluationError("Ruby answered nonsense", hint="Something wrote into its socket.")
            return message

    def _exactly(self, size: int, left: Callable[[], float]) -> bytes:
        parts: list[bytes] = []
        while size:
            self._socket.settimeout(left())
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionResetError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    @contextmanager
    def _in_time(self) -> Iterator[Callable[[], float]]:
        """Whatever goes wrong inside, also from outside such as compile_timeout, leaves it in the middle of a frame: it is ended."""
        end = time.monotonic() + self.settings.timeout

        def left() -> float:
            rest = end - time.monotonic()
            if rest <= 0:
                raise TimeoutError
            return rest

        try:
            self._socket.settimeout(self.settings.timeout)
            yield left
        except TimeoutError:
            self.end()
            raise EvaluationError(
                f"Ruby took longer than ruby_timeout ({self.settings.timeout:g} seconds)",
                hint="Raise it, or look for an endless loop in the template or function.",
            ) from None
        except OSError:
            try:
                self._process.wait(DYING)  # so that its exit code is its own
            except subprocess.TimeoutExpired:
                pass
            self.end()
            raise EvaluationError(
                f"Ruby has ended {_how(self._process.returncode)}", hint="It is started again when it is needed."
            ) from None
        except BaseException:
            self.end()
            raise


def _how(code: int | None) -> str:
    return f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"


def _ended(process: subprocess.Popen[bytes], ours: socket.socket) -> None:
    ours.close()
    process.kill()
    process.wait()
