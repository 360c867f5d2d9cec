"""A stand-in for a program: answers as it was told, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.errors import ResourceError
from shared.ral import Output


@dataclass
class Program:
    """`answers`: the beginning of a command line → output, or (output, exit code); the longest that fits counts."""

    path: str
    answers: Mapping[str, str | tuple[str, int]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    given: list[bytes] = field(default_factory=list)

    async def __call__(self, *words: str, stdin: bytes = b"", seconds: float | None = None, fail: bool = True, shown: str = "") -> Output:
        line = " ".join(words)
        self.calls.append(line)
        self.given.append(stdin)
        fitting = max((answer for answer in self.answers if line.startswith(answer)), key=len, default=None)
        output = self.answers[fitting] if fitting is not None else ""
        text, code = output if isinstance(output, tuple) else (output, 0)
        if code and fail:
            raise ResourceError(f"Execution of '{self.path} {line}' returned {code}: {text}")
        return Output(text, code)
