"""Of the module redis: a variable's value, '' when it has none."""

from typing import Any

from master.compiler.functions import Context, function


@function("getvar_emptystring", "String name")
def getvar_emptystring(context: Context, name: str) -> Any:
    value = context.call_function("getvar", [name])
    return "" if value is None else value
