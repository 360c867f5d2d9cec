"""Of the module neutron."""

from typing import Any

from master.compiler.functions import Context, function


@function("validate_vxlan_udp_port", "Any ranges")
def validate_vxlan_udp_port(context: Context, ranges: Any) -> None:
    """Which are right in our uses."""
