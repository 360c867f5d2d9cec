"""Of the module openstacklib: whether a setting is to be left to the service."""

from master.compiler.functions import Context, function


@function("is_service_default", "Any value")
def is_service_default(context: Context, value: object) -> bool:
    return value == "<SERVICE DEFAULT>"
