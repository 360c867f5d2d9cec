"""Actions that every indirection has for free. Source: command line reference 1.2."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

from ..data import plainjson, plainyaml
from ..errors import BadData, ConfigError, NotFound, PuppetError
from ..indirector import Binding, Model, Option, Request
from .core import Face, action, option

MAX_INSTANCE = 64 << 20  # bytes of a file or of standard input


class IndirectionFace(Face):
    """
    A face with the actions find, search, save, destroy and info of an indirection.

    Subclass it as `class Ocsp(IndirectionFace, name="ocsp", indirection="ocsp")`; an action of the subclass replaces one of these, and
    `without=("save",)` leaves some out.
    """

    indirection: ClassVar[str]
    default_terminus: ClassVar[str]

    terminus: str = option("", "Where the instances are, if not at the terminus that the settings name.")
    extra: str = option("", "Options of the request, as an object in JSON or YAML.")

    def __init_subclass__(cls, *, indirection: str = "", terminus: str = "", **more: Any) -> None:
        if indirection or "name" in more:
            cls.indirection = indirection or more["name"]
            cls.default_terminus = terminus
        super().__init_subclass__(**more)

    async def bound(self) -> Binding[Any]:
        """Return the indirection at the terminus of the command line; ConfigError when it has none of that name."""
        binding: Binding[Any] = await self.services.binding(self.indirection, self.terminus or self.default_terminus)
        return binding

    def request(self, key: str, body: Model | None = None) -> Request[Any]:
        """Return the request for a key, with the options of `--extra`; ConfigError when these are not an object."""
        return Request(key, self.settings.environment or "production", body=body, options=self.extra_options)

    @property
    def extra_options(self) -> Mapping[str, Option]:
        """The value of `--extra` as options of a request; raises ConfigError when it is not an object."""
        if not self.extra:
            return {}
        try:
            options = plainyaml.loads(self.extra)
        except BadData as err:
            raise ConfigError(f"Could not set --extra: {err.message}") from err
        if not isinstance(options, dict):
            raise ConfigError("Could not set --extra: expected an object", hint='As in --extra \'{"checksum_type": "sha256"}\'')
        return {str(name): [*map(_text, value)] if isinstance(value, list) else _text(value) for name, value in options.items()}

    @action
    async def find(self, key: str) -> Model:
        """
        Print one instance.

        Args:
            key: its name.
        """
        instance: Model | None = await (await self.bound()).find(self.request(key))
        if instance is None:
            raise NotFound(f"Could not find {self.indirection} {key}")
        return instance

    @action
    async def search(self, query: str) -> list[Model]:
        """
        Print all instances that a query finds.

        Args:
            query: the terminus' search term, often a part of a name.
        """
        instances: list[Model] | None = await (await self.bound()).search(self.request(query))
        if instances is None:
            raise NotFound(f"Could not find any {self.indirection} by {query}")
        return instances

    @action
    async def save(self, file: str = "-") -> None:
        """
        Store an instance.

        Args:
            file: the instance, in JSON or YAML; - for standard input.
        """
        binding = await self.bound()
        instance = binding.indirection.model.from_data(await asyncio.to_thread(_data, file))
        await binding.save(self.request(instance.name, instance))

    @action
    async def destroy(self, key: str) -> None:
        """
        Remove an instance.

        Args:
            key: its name.
        """
        await (await self.bound()).destroy(self.request(key))

    @action
    async def info(self) -> str:
        """Print which terminus answers."""
        name = self.terminus or self.default_terminus or await self.services.default_terminus(self.indirection)
        return f"Run mode '{self.declaration.section}': {name}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _data(file: str) -> Any:
    """Return the data in a file, or on standard input. Blocks; PuppetError."""
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else Path(file).open("rb") as stream:
            body = stream.read(MAX_INSTANCE + 1)
        if len(body) > MAX_INSTANCE:
            raise PuppetError(f"Could not read {file}: it is larger than {MAX_INSTANCE} bytes")
        return plainjson.loads(body) if body.lstrip().startswith((b"{", b"[")) else plainyaml.loads(body)
    except OSError as err:
        raise PuppetError(f"Could not read {file}: {err.strerror}") from err
    except BadData as err:
        raise BadData(f"Could not read {file}: {err.message}", hint=err.hint) from err
