"""Of the module neutron."""

from typing import Any

from master.compiler.functions import Context, function


@function("validate_network_vlan_ranges", "Any ranges")
def validate_network_vlan_ranges(context: Context, ranges: Any) -> None:
    """Which are right in our uses."""
