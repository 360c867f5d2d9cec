"""The function dns::absolute."""

from __future__ import annotations

from language.functions import Context, function


@function("dns::absolute", "String[1] host", "String[1] zone", returns="String[1]")
def absolute(context: Context, host: str, zone: str) -> str:
    """The full name of a host in a zone; one that has it already stays as it is."""
    return host if host == zone or host.endswith(f".{zone}") else f"{host}.{zone}"
