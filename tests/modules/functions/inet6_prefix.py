"""Of the module openstacklib: `inet6:` before IPv6 addresses, for memcached."""

import ipaddress
import re
from typing import Any

from master.compiler.functions import Context, function


@function("inet6_prefix", "Any values*")
def inet6_prefix(context: Context, *values: Any) -> Any:
    given = values[0] if isinstance(values[0], list) else list(values)
    found = [_prefixed(each) for each in given]
    return found[0] if len(found) == 1 else found


def _prefixed(value: Any) -> Any:
    if not isinstance(value, str) or value.startswith("inet6:"):
        return value
    parts = [part for part in re.split(r"[\s\[\]]", value) if part]
    try:
        if ipaddress.ip_address(parts[0]).version == 6:
            return f"inet6:[{parts[0]}]{''.join(parts[1:])}"
    except (ValueError, IndexError):
        pass
    return value
