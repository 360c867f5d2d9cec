"""Variables that no manifest may set: their names are the language's own."""

from __future__ import annotations

from typing import Final

RESERVED: Final = frozenset(("trusted", "facts", "server_facts"))
BUILT_IN: Final = frozenset(("module_name", "caller_module_name"))
