"""Of the module neutron."""

from typing import Any

from master.compiler.functions import Context, function


@function("validate_vni_ranges", "Any ranges")
def validate_vni_ranges(context: Context, ranges: Any) -> None:
    """Which are right in our uses."""
