"""Command lines: plain words are run directly, other lines by /bin/sh."""

from __future__ import annotations

import re
from typing import Final

SHELL: Final = "/bin/sh"
_SPECIAL: Final = re.compile(r"[*?{}\[\]<>()~&|\\$;'`\"\n#]|^[^ ]*=|%")
_RESERVED: Final = ("!", "{", "}", "case", "do", "done", "elif", "else", "esac", "fi", "for", "if", "in", "then", "until", "while")
_BUILTIN: Final = (".", ":", "break", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift", "times", "trap")
_WORDS_OF_SHELLS: Final = frozenset((*_RESERVED, *_BUILTIN, "unset"))


def argv_of(command: str | list[str]) -> list[str]:
    """
    Return the argv for a command: a list as it is; a line split at blanks, or given to a shell when only a shell understands it.

    Source: resource layer reference 6 (shell).
    """
    if isinstance(command, list):
        return list(command)
    words = command.split()
    if not words or _SPECIAL.search(command) or words[0] in _WORDS_OF_SHELLS:
        return [SHELL, "-c", command]
    return words
