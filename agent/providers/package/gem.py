"""Ruby's packages by `gem`. Source: resource layer reference 7.3."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from shared.errors import BadData, ResourceError
from shared.ral import Output, State, execute, which
from shared.ral.providers import program
from shared.types.package import Package

from .packages import LISTING_SECONDS
from .targeted import Targeted, one_of
from .versions import Order, compare_gem

PUPPETS_GEM = "/opt/puppetlabs/puppet/bin/gem"
PUPPETSERVER = "/opt/puppetlabs/bin/puppetserver"
_LINE = re.compile(r"(\S+)\s+\((.+)\)")
_NO_DOCUMENT = "2.0.0"  # before it, --no-document was two options


def parse(text: str) -> dict[str, list[str]]:
    """Return versions by name, newest first, from the output of `gem list`."""
    matches = (_LINE.match(line) for line in text.splitlines())
    return {m[1]: [v.split()[0] for v in re.split(r",\s*", m[2].replace("default: ", "")) if v.split()] for m in matches if m}


class Gems(Targeted, name="gems", features=("version_ranges", "uninstall_options")):
    """Manages gems of one Ruby; several versions of one may be installed, so `ensure` is a list of them."""

    order: Order | None = staticmethod(compare_gem)

    async def instances(self) -> Mapping[str, State]:
        output = await self.query_manager(None, "list", "--local")
        return {name: {"ensure": versions} for name, versions in parse(output.text).items()}

    async def query(self, resource: Package) -> State | None:
        versions = await self._list(resource, "--local")
        return {"ensure": versions} if versions else None

    async def _list(self, resource: Package, *where: str) -> list[str]:
        try:
            output = await self.query_manager(resource, "list", *where, rf"\A{re.escape(resource.name)}\z")
        except ResourceError as err:
            raise ResourceError(f"Could not list gems: {err.message}") from err
        return parse(output.text).get(resource.name, [])

    async def latest(self, resource: Package, state: State) -> str | None:
        source = ["--source", resource.source] if resource.source else []
        versions = await self._list(resource, "--remote", *source)
        return versions[0] if versions else None

    def satisfies(self, resource: Package, state: State, desired: str) -> bool:
        # `~> 1.2` and `>= 1, < 2` are RubyGems' own ways to say it.
        terms = [pessimistic(term) for term in desired.split(",")]
        return any(
            all(inside is not None and inside.has(version) for inside in (self.range_of(term) for term in terms))
            for version in state.get("ensure") or ()
        )

    async def install(self, resource: Package, state: State | None) -> None:
        words = ["install", *self.install_options(resource)]
        version = self.version_in_ensure(resource)
        if version is not None:
            words += ["-v", self._requirement(version)]
        words += await self._no_document_options(resource)
        output = await self.run(resource, *words, *self._gem_words(resource))
        self._check("install", output)

    async def _no_document_options(self, resource: Package) -> list[str]:
        own = (await self.query_manager(resource, "--version")).text.strip()
        return ["--no-document"] if _knows_no_document(own) else ["--no-rdoc", "--no-ri"]

    def _requirement(self, version: str) -> str:
        inside = self.range_of(version)
        return ", ".join(f"{operator} {bound}".strip() for operator, bound in inside.terms) if inside else version

    def _gem_words(self, resource: Package) -> list[str]:
        """Return the words that name a gem: its name, or its file, or its name and another source."""
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
        output = await self.run(resource, "uninstall", "--executables", "--all", resource.name, *self.uninstall_options(resource))
        self._check("uninstall", output)

    def _check(self, action: str, output: Output) -> None:
        if "ERROR" in output.text:
            raise ResourceError(f"Could not {action}: {output.text.strip()}")


class Gem(Gems, name="gem", confine=[one_of("gem")]):
    """Manages gems of the system's Ruby."""

    programs = ("gem",)


class OwnGems(Gems, name="own_gems"):
    """Manages gems of a Ruby of Puppet's own: there is one command, and versions are meant literally."""

    order = None

    def __init__(self) -> None:
        super().__init__()
        self.features = self.features - {"targetable", "version_ranges"}


class PuppetGem(OwnGems, name="puppet_gem", confine=[program(PUPPETS_GEM)]):
    """Manages gems of the Ruby in Puppet's own agent package."""

    programs = (PUPPETS_GEM,)
    environment: ClassVar[Mapping[str, str]] = {"PKG_CONFIG_PATH": "/opt/puppetlabs/puppet/lib/pkgconfig"}


class PuppetserverGem(OwnGems, name="puppetserver_gem", confine=[program(PUPPETSERVER)]):
    """
    Manages gems of puppetserver's JRuby.

    Its own command starts a Java each time; so Puppet's Ruby, if it is installed, lists the gems. Gems that belong to a Ruby itself cannot
    be managed.
    """

    programs = (PUPPETSERVER,)
    lister: ClassVar[str] = PUPPETS_GEM
    configuration: ClassVar[Path] = Path("/etc/puppetlabs/puppetserver/conf.d/puppetserver.conf")

    async def run(self, resource: Package | None, *words: str, seconds: float | None = None, fail: bool = True) -> Output:
        return await super().run(resource, "gem", *words, seconds=seconds, fail=fail)

    async def query_manager(self, resource: Package | None, *words: str, fail: bool = True) -> Output:
        if words[:2] != ("list", "--local"):
            return await super().query_manager(resource, *words, fail=fail)
        if which(self.lister) is None:
            output = await super().query_manager(resource, *words, fail=fail)
        else:
            variables = await asyncio.to_thread(server_gem_environment, self.configuration)
            output = await execute([self.lister, *words], environment=variables, seconds=LISTING_SECONDS, fail=fail)
        return replace(output, text="".join(line for line in output.text.splitlines(keepends=True) if "(default: " not in line))

    async def _no_document_options(self, resource: Package) -> list[str]:
        return ["--no-document"]


def server_gem_environment(configuration: Path) -> dict[str, str]:
    """Return the variables of a `gem` that lead to puppetserver's gems: by its configuration, else as it is packaged. Blocks."""
    from shared.data import hocon

    server = "/opt/puppetlabs/server/data/puppetserver"
    home, path = f"{server}/jruby-gems", None
    try:
        settings = hocon.loads(configuration.read_text("utf-8"))
        jruby = settings.get("jruby-puppet") if isinstance(settings, dict) else None
        if isinstance(jruby, dict):
            home, path = jruby.get("gem-home", home), jruby.get("gem-path")
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError, BadData) as err:
        raise ResourceError(f"Could not list gems: {configuration} cannot be read: {err}") from err
    if not isinstance(path, list):
        path = [home, f"{server}/vendored-jruby-gems", "/opt/puppetlabs/puppet/lib/ruby/vendor_gems"]
    return {"GEM_HOME": str(home), "GEM_PATH": ":".join(map(str, path))}


def pessimistic(term: str) -> str:
    """Return a term of RubyGems as one or two of ours: `~> 1.2.3` is `>=1.2.3 <1.3`."""
    match = re.fullmatch(r"\s*~>\s*([0-9]+(?:\.[0-9]+)*)\s*", term)
    if match is None:
        return re.sub(r"^=\s*", "", re.sub(r"([<>=]+)\s+", r"\1", term.strip()))
    numbers = [int(n) for n in match[1].split(".")]
    upper = numbers[:-1] if len(numbers) > 1 else numbers
    upper = [*upper[:-1], upper[-1] + 1]
    return f">={match[1]} <{'.'.join(map(str, upper))}"


def _knows_no_document(own: str) -> bool:
    try:
        return compare_gem(own, _NO_DOCUMENT) >= 0
    except ValueError:
        return True
