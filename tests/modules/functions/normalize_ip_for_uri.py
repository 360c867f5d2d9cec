"""Of the module openstacklib: IPv6 addresses in brackets."""

import ipaddress
from typing import Any

from master.compiler.functions import Context, function


@function("normalize_ip_for_uri", "Any values*")
def normalize_ip_for_uri(context: Context, *values: Any) -> Any:
    given = values[0] if isinstance(values[0], list) else list(values)
    found = [f"[{each}]" if _is_ipv6(each) else each for each in given]
    return found[0] if len(found) == 1 else found


def _is_ipv6(value: Any) -> bool:
    try:
        return isinstance(value, str) and ipaddress.ip_address(value).version == 6
    except ValueError:
        return False
