"""The installed Puppet as a compiler, in a process of its own ruby."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from master.pools.jobs import CompileJob, message_of
from shared.errors import EvaluationError, PuppetError
from shared.ruby.child import RubyChild, RubySettings

SCRIPT = Path(__file__).with_name("real.rb")


class RealPuppet:
    """
    A Puppet that compiles nodes, one after the other.

    Args:
        ruby: the program that has it.
        options: settings as words of a command line.
        account: (uid, gid) that it runs as; None: the caller's.
        timeout: seconds for one catalog.
    Raises:
        PuppetError: there is no Puppet, or it cannot read the settings.
    """

    def __init__(self, ruby: str, options: Sequence[str], account: tuple[int, int] | None, timeout: float) -> None:
        self._child = RubyChild(RubySettings(ruby, timeout), SCRIPT, own_session=True)
        uid, gid = account or (None, None)
        try:
            self.version = str(self._ask("begin", [*options], uid, gid))
        except EvaluationError as err:
            raise PuppetError(
                f"The installed Puppet cannot compile: {err.message}", hint="Its own `puppet` has to work on this host."
            ) from err

    def compile(self, job: CompileJob) -> Mapping[str, Any]:
        """Return `catalog` or `error` of a node. Blocks; EvaluationError when the process takes too long or ends."""
        # A job's message has the facts once; Puppet's node has them among its parameters.
        answer: Mapping[str, Any] = self._ask("compile", message_of(job) | {"parameters": job.parameters})
        return answer

    def _ask(self, what: str, *args: Any) -> Any:
        message = self._child.ask({"op": what, "args": list(args)}, _refuse)
        if (error := message.get("error")) is not None:
            raise EvaluationError(error["message"])
        return message["value"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.end()


def _refuse(message: dict[str, Any]) -> dict[str, Any]:
    raise EvaluationError(f"The installed Puppet asks for {message['ask']}, which it has itself")
