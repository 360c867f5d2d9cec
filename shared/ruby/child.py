"""A process that runs a program of ours in Ruby, and the frames between us. Whatever it does wrong ends it and raises one clear error."""

from __future__ import annotations

import math
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import plainjson
from ..errors import BadData, EvaluationError

OUT_OF_STEP = 76
"""The exit code of a program that cannot tell which question it should answer."""
SEARCH = "/usr/bin:/bin"
ENVIRON = {"PATH": f"/opt/puppetlabs/bin:/usr/sbin:{SEARCH}", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "HOME": "/"}
HEAD = struct.Struct(">I")
WATCH_INTERVAL = 0.25
"""Seconds between two looks at a process that has not answered yet."""
STOP_PATIENCE = 2.0
"""Seconds for Ruby to answer when it should stop; while a program runs that it has started for the question, they do not begin."""
MAX_CHILDREN = 4
"""Children of one process. Each environment has its own, because Ruby has only one namespace for classes."""


@dataclass(frozen=True, slots=True)
class RubySettings:
    """
    The settings about Ruby.

    Attributes:
        program: the path of the program; '' for none.
        timeout: seconds that it may take for one answer.
        answer: the most bytes of one message from it.
        memory: the most bytes of memory that it may occupy; 0: no limit.
    """

    program: str = ""
    timeout: float = 60.0
    answer: int = 64 << 20
    memory: int = 0


def find_ruby(setting: str, *, restricted: bool = False, also: str = "") -> str:
    """
    Return the program's path for the setting `ruby`; '' for none.

    Args:
        also: folders that `auto` searches in addition to the system's own, colon-separated.
        restricted: manifests are restricted on this host. Ruby cannot be restricted, so `auto` then finds none.
    """
    if setting == "auto":
        return "" if restricted else shutil.which("ruby", path=f"{SEARCH}:{also}" if also else SEARCH) or ""
    return setting


class RubyProgram:
    """Ruby, and its children of this process; when there are too many, the least recently used one is ended."""

    def __init__(self, settings: RubySettings) -> None:
        self.settings = settings
        self._children: list[RubyChild] = []

    def start(self, script: Path) -> RubyChild:
        """Return a new child that runs `script`; raise EvaluationError when it cannot be started."""
        self._children = [child for child in self._children if child.alive]
        while len(self._children) >= MAX_CHILDREN:
            self._children.pop(0).end()
        child = RubyChild(self.settings, script)
        self._children.append(child)
        return child

    def mark_used(self, child: RubyChild) -> None:
        """Make a child the most recently used one."""
        if self._children[-1] is not child and child in self._children:
            self._children.remove(child)
            self._children.append(child)


class RubyChild:
    """
    One process of Ruby.

    Args:
        script: the program, which is given the number of the socket's descriptor.
        environ: its environment.
        cwd: the folder it runs in.
        output: the descriptor of its printed output, which is not an answer.
        own_session: the programs that it has started are ended with it.
        stop: returns whether no caller needs to wait for its answer any more.

    Attributes:
        received: the bytes of all its messages.
    """

    def __init__(
        self,
        settings: RubySettings,
        script: Path,
        *,
        environ: Mapping[str, str] = ENVIRON,
        cwd: str = "/",
        output: int = 2,
        own_session: bool = False,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.settings = settings
        self.received = 0
        self._ended = False
        self._stop = stop
        self._stop_at = 0.0  # when it has to have answered, once it should stop
        self._asked = 0  # questions to it
        self._asked_at = 0.0  # seconds from the start of the system to the last one
        self._heard = 0  # questions of its own
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [settings.program, str(script), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=own_session,
                cwd=cwd,
                env=environ,
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
        self._buffer = bytearray()  # what has been received and not yet read
        self._wait = math.inf  # the socket's timeout
        self._end = weakref.finalize(self, _kill, self._process, ours, group=own_session)

    @property
    def alive(self) -> bool:
        """True if messages can be sent to it."""
        return not self._ended and self._process.poll() is None

    def end(self) -> None:
        """Kill the process and wait for it."""
        self._ended = True
        self._end()

    def ask(
        self,
        question: dict[str, Any],
        answer: Callable[[dict[str, Any]], dict[str, Any]],
        seconds: Callable[[], float] = lambda: math.inf,
    ) -> dict[str, Any]:
        """
        Return the answer to a question, after answering the questions that the process asks first.

        Both sides number their questions, and an answer has the number of its question. Any exception, compile_timeout included, may come
        before the answer and would leave it to the next question. So each ends the process.

        Args:
            answer: returns the answer to a question of the process; it may ask the process in turn.
            seconds: returns the time for the next message, where that is less than the settings allow.
        Raises:
            EvaluationError: there is no answer, or it is malformed, too long, or another question's.
        """
        self._asked += 1
        number = self._asked
        self._asked_at = time.clock_gettime(time.CLOCK_BOOTTIME)
        try:
            self._send({**question, "number": number}, seconds())
            while True:
                message = self._receive(seconds())
                if "ask" not in message:
                    break
                self._heard += 1
                self._expect(message, self._heard)
                self._send({**answer(message), "number": message["number"]}, seconds())
            self._expect(message, number)
            return message
        except BaseException:
            self.end()
            raise

    def _expect(self, message: dict[str, Any], number: int) -> None:
        if message.get("number") != number:
            raise EvaluationError("Ruby answered another question than it was asked", hint="It is started again when it is needed.")

    def _send(self, message: dict[str, Any], seconds: float) -> None:
        """Send a message; raise EvaluationError when the process has ended."""
        body = plainjson.dumps(message)
        data = memoryview(HEAD.pack(len(body)) + body)
        end = time.monotonic() + min(seconds, self.settings.timeout)
        try:
            while data:
                self._limit_wait(end)
                try:
                    data = data[self._socket.send(data) :]
                except TimeoutError:
                    self._watch()
        except OSError as error:
            raise self._failure(error, end) from None

    def _receive(self, seconds: float) -> dict[str, Any]:
        """Return the next message; raise EvaluationError when there is none, or it is malformed or too long."""
        end = time.monotonic() + min(seconds, self.settings.timeout)
        try:
            (size,) = HEAD.unpack(self._receive_exactly(HEAD.size, end))
            if size > self.settings.answer:
                raise EvaluationError(
                    f"Ruby answered {size} bytes, more than ruby_answer allows ({self.settings.answer})", hint="Raise it, or answer less."
                )
            body = self._receive_exactly(size, end)
        except OSError as error:
            raise self._failure(error, end) from None
        self.received += HEAD.size + size
        try:
            message = plainjson.loads(body)
        except BadData as error:
            raise EvaluationError("Ruby answered nonsense", hint=f"Something wrote into its socket: {error.message}") from error
        if not isinstance(message, dict):
            raise EvaluationError("Ruby answered nonsense", hint="Something wrote into its socket.")
        return message

    def _receive_exactly(self, size: int, end: float) -> bytes:
        buffer = self._buffer
        while len(buffer) < size:
            self._limit_wait(end)
            try:
                part = self._socket.recv(min(max(size - len(buffer), 1 << 16), 1 << 20))
            except TimeoutError:
                self._watch()
                continue
            if not part:
                raise ConnectionResetError
            buffer += part
        taken = bytes(buffer[:size])
        del buffer[:size]
        return taken

    def _limit_wait(self, end: float) -> None:
        """Make the next call of the socket return when it is time to check the process; raise TimeoutError when `end` has passed."""
        wait = min(end - time.monotonic(), WATCH_INTERVAL)
        if wait <= 0:
            raise TimeoutError
        if wait != self._wait:
            self._socket.settimeout(wait)
            self._wait = wait

    def _watch(self) -> None:
        """Raise an error when the process has ended, though a child of its own may hold the socket, should, or occupies too much memory."""
        if self._process.poll() is not None:
            raise ConnectionResetError
        if self._stop():
            now = time.monotonic()
            if not self._stop_at or _runs_program(self._process.pid, self._asked_at):
                self._stop_at = now + STOP_PATIENCE
            elif now > self._stop_at:
                raise EvaluationError("Ruby was ended while it was asked, as the run stops")
        occupied = _memory_of(self._process.pid) if self.settings.memory else 0
        if occupied > self.settings.memory:
            raise EvaluationError(
                f"Ruby occupies {occupied} bytes of memory, more than ruby_memory allows ({self.settings.memory})",
                hint="Raise it, or check the module's Ruby code.",
            )

    def _failure(self, error: OSError, end: float) -> EvaluationError:
        """Return the error for one of the socket's."""
        if isinstance(error, TimeoutError):
            return EvaluationError(
                f"Ruby took longer than ruby_timeout ({self.settings.timeout:g} seconds)",
                hint="Raise it, or look for an endless loop in the module's Ruby code.",
            )
        return self._lost_socket(max(0.0, end - time.monotonic()))

    def _lost_socket(self, seconds: float) -> EvaluationError:
        """
        Return the error for a closed socket. It distinguishes an exit of the process, which may take `seconds`, from a kill by this side.
        """
        if self._ended:
            return EvaluationError("Ruby was ended while it was asked", hint="It is started again when it is needed.")
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return EvaluationError(
                f"Ruby closed its socket and did not end within ruby_timeout ({self.settings.timeout:g} seconds)",
                hint="Look in the module's Ruby code for a call that closes all files.",
            )
        if code == -signal.SIGKILL:
            hint = f"Another program has killed process {self._process.pid}; the kernel's log shows whether memory ran out."
            return EvaluationError("Ruby has ended by signal 9", hint=hint)
        if code == OUT_OF_STEP:
            return EvaluationError(
                "Ruby has ended, as a question was left before it was answered",
                hint="Look for a signal's handler or a Fiber that leaves a call of Puppet's, in the module's Ruby code.",
            )
        return EvaluationError(f"Ruby has ended {_describe_exit(code)}", hint="It is started again when it is needed.")


def _memory_of(pid: int) -> int:
    """Return the bytes of memory that a process uses; 0 where the system does not report it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def _runs_program(pid: int, since: float) -> bool:
    """Return whether a program runs that a process has started in that second after the start of the system, or later."""
    first_tick = int(since * os.sysconf("SC_CLK_TCK"))
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _text_of(path).split():
            state = _text_of(Path(f"/proc/{child}/stat")).rpartition(")")[2].split()
            if state and state[0] not in "ZX" and int(state[19]) >= first_tick:
                return True
    return False


def _text_of(path: Path) -> str:
    """Return the kernel's status text of a process; '' when it has ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def _describe_exit(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"


def _kill(process: subprocess.Popen[bytes], ours: socket.socket, *, group: bool) -> None:
    ours.close()
    if group:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
