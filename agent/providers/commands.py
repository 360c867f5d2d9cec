"""Command lines: plain words are run directly, other lines by /bin/sh."""

from __future__ import annotations

import re
from typing import Final

from shared.ral import Output, execute
from shared.types.exec import Words

SHELL: Final = "/bin/sh"
_SPECIAL: Final = re.compile(r"[*?{}\[\]<>()~&|\\$;'`\"\n#]|^[^ ]*=|%")
_RESERVED: Final = ("!", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then", "until", "while")
_BUILTIN: Final = (".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "times", "trap")
_WORDS_OF_SHELLS: Final = frozenset((*_RESERVED, *_BUILTIN, "unset"))


def needs_shell(command: Words) -> bool:
    """Return whether only a shell understands a command; a list is never given to one. Source: resource layer reference 6 (shell)."""
    if isinstance(command, list):
        return False
    words = command.split()
    return not words or bool(_SPECIAL.search(command)) or words[0] in _WORDS_OF_SHELLS


def argv_of(command: Words) -> list[str]:
    """
    Return the argv for a command: a list as it is; a line split at blanks, or given to a shell.

    The shell, which is SHELL, is called `sh`, as Ruby calls it: its messages begin with that.
    """
    if isinstance(command, list):
        return list(command)
    return ["sh", "-c", command] if needs_shell(command) else command.split()


async def execute_command(command: Words, *, seconds: float | None = None, fail: bool = True) -> Output:
    """Run a command to its end; messages show a line as it is written. See `shared.ral.execute`."""
    shown = command if isinstance(command, str) else ""
    return await execute(argv_of(command), seconds=seconds, fail=fail, shown=shown, program=SHELL if needs_shell(command) else "")
