"""The provider of `selboolean`: `getsebool` and `setsebool`."""

from __future__ import annotations

from typing import Any

from shared.errors import ResourceError
from shared.ral import Command, Provider, State
from shared.types.selboolean import Selboolean

SECONDS = 300.0  # a persistent change builds the policy anew


def value_in(output: str) -> str:
    """Return on or off, from the output of `getsebool`."""
    words = output.split()
    if words[-1:] in (["on"], ["off"]):
        return words[-1]
    raise ResourceError(f"Invalid response '{output.strip()}' returned from getsebool")


class Getsetsebool(Provider[Selboolean], type=Selboolean, name="getsetsebool"):
    """Runs one query and one command for each resource."""

    getsebool = Command("/usr/sbin/getsebool")
    setsebool = Command("/usr/sbin/setsebool")

    async def retrieve(self, resource: Selboolean) -> State | None:
        return {"value": value_in((await self.getsebool(resource.name, seconds=SECONDS)).text)}

    async def set_value(self, resource: Selboolean, desired: Any, state: State | None) -> None:
        await self.setsebool(*(["-P"] if resource.persistent else []), resource.name, str(desired), seconds=SECONDS)
