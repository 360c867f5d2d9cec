"""Sites whose modules have templates and functions in Ruby."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from environments.directories import Environment
from environments.directory_environment import DirectoryEnvironment, EnvironmentServices
from environments.ruby import RubyProgram, RubySettings, find_ruby
from tests.support.compiling import Compiled, compiled
from tests.support.memory_files import MemoryFiles

PROGRAM = find_ruby("auto")


Facts = Mapping[str, Any] | None


def world(files: Mapping[str, str], *, program: RubyProgram | None = None, **settings: Any) -> DirectoryEnvironment:
    """An environment in memory; `settings` are Ruby's."""
    there: dict[str, str | bytes] = {f"/env/{path}": text for path, text in files.items()}
    given = {"strict": "warning", "strict_variables": True}
    ruby = program or RubyProgram(RubySettings(**{"program": PROGRAM, **settings}))
    return DirectoryEnvironment(
        Environment("production", "/env", ("/env/modules",), None),
        MemoryFiles(there),
        settings=given,
        services=EnvironmentServices(ruby=ruby),
    )


def compile_with(
    manifest: str, files: Mapping[str, str] | None = None, *, facts: Mapping[str, Any] | None = None, **settings: Any
) -> Compiled:
    """A catalog of a site manifest, with a Ruby of its own that has ended afterwards."""
    environment = world(files or {}, **settings)
    try:
        return in_world(environment, manifest, facts=facts)
    finally:
        environment.close()


def in_world(environment: DirectoryEnvironment, manifest: str, *, facts: Facts = None) -> Compiled:
    """The same in a world that stays."""
    environment.code = manifest
    return compiled("", world=environment, facts=facts)
