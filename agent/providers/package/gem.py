"""Ruby's packages by `gem`. Source: resource layer reference 7.3."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from shared.errors import ResourceError
from shared.ral import Output, State
from shared.types.package import Package

from .targeted import Targeted, one_of
from .versions import gem

_LINE = re.compile(r"(\S+)\s+\((.+)\)")
_NO_DOCUMENT = "2.0.0"  # before it, --no-document was two options


def parse(text: str) -> dict[str, list[str]]:
    """Versions by name, newest first, of the output of `gem list`."""
    matches = (_LINE.match(line) for line in text.splitlines())
    return {m[1]: [v.split()[0] for v in re.split(r",\s*", m[2].replace("default: ", "")) if v.split()] for m in matches if m}


class Gem(Targeted, name="gem", features=("version_ranges", "uninstall_options"), confine=[one_of("gem")]):
    """Gems; several versions of one may be installed, so `ensure` is a list of them."""

    programs = ("gem",)
    order = staticmethod(gem)

    async def instances(self) -> Mapping[str, State]:
        said = await self.asked(None, "list", "--local")
        return {name: {"ensure": versions} for name, versions in parse(said.text).items()}

    async def query(self, resource: Package) -> State | None:
        versions = await self._list(resource, "--local")
        return {"ensure": versions} if versions else None

    async def _list(self, resource: Package, *where: str) -> list[str]:
        try:
            said = await self.asked(resource, "list", *where, rf"\A{re.escape(resource.name)}\z")
        except ResourceError as err:
            raise ResourceError(f"Could not list gems: {err.message}") from err
        return parse(said.text).get(resource.name, [])

    async def latest(self, resource: Package, state: State) -> str | None:
        source = ["--source", resource.source] if resource.source else []
        versions = await self._list(resource, "--remote", *source)
        return versions[0] if versions else None

    def satisfies(self, resource: Package, state: State, wanted: str) -> bool:
        # `~> 1.2` and `>= 1, < 2` are RubyGems' own ways to say it.
        terms = [pessimistic(term) for term in wanted.split(",")]
        return any(
            all(inside is not None and inside.has(version) for inside in (self.range_of(term) for term in terms))
            for version in state.get("ensure") or ()
        )

    async def install(self, resource: Package, state: State | None) -> None:
        words = ["install", *self.install_options(resource)]
        version = self.version_wanted(resource)
        if version is not None:
            words += ["-v", self._requirement(version)]
        own = (await self.asked(resource, "--version")).text.strip()
        words += ["--no-document"] if _newer(own) else ["--no-rdoc", "--no-ri"]
        said = await self.run(resource, *words, *self._what(resource))
        self._check("install", said)

    def _requirement(self, version: str) -> str:
        inside = self.range_of(version)
        return ", ".join(f"{operator} {bound}".strip() for operator, bound in inside.terms) if inside else version

    def _what(self, resource: Package) -> list[str]:
        """A gem's name, or its file, or its name and where else to look for it."""
        source = resource.source
        if not source:
            return [resource.name]
        parts = urlsplit(source)
        if parts.scheme == "puppet":
            raise ResourceError(
                "puppet:// URLs are not supported as gem sources", hint="Fetch it with a `file` resource and give its path."
            )
        if parts.scheme == "file":
            return [unquote(parts.path)]
        return ["--source", source, resource.name] if parts.scheme else [source]

    async def uninstall(self, resource: Package, state: State | None) -> None:
        said = await self.run(resource, "uninstall", "--executables", "--all", resource.name, *self.uninstall_options(resource))
        self._check("uninstall", said)

    def _check(self, what: str, said: Output) -> None:
        if "ERROR" in said.text:
            raise ResourceError(f"Could not {what}: {said.text.strip()}")


def pessimistic(term: str) -> str:
    """A term of RubyGems as one or two of ours: `~> 1.2.3` is `>=1.2.3 <1.3`."""
    found = re.fullmatch(r"\s*~>\s*([0-9]+(?:\.[0-9]+)*)\s*", term)
    if found is None:
        return re.sub(r"^=\s*", "", re.sub(r"([<>=]+)\s+", r"\1", term.strip()))
    numbers = [int(n) for n in found[1].split(".")]
    upper = numbers[:-1] if len(numbers) > 1 else numbers
    upper = [*upper[:-1], upper[-1] + 1]
    return f">={found[1]} <{'.'.join(map(str, upper))}"


def _newer(own: str) -> bool:
    try:
        return gem(own, _NO_DOCUMENT) >= 0
    except ValueError:
        return True
