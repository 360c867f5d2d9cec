"""The Ruby of this machine, as a fact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .host import Host

_SCRIPT = "require 'rbconfig'; puts RUBY_PLATFORM, RbConfig::CONFIG['sitelibdir'], RUBY_VERSION"


def parse_ruby(text: str) -> dict[str, Any]:
    """Return the fact from three lines: platform, folder of the site's own libraries, version; nothing from anything else."""
    lines = text.splitlines()
    return {"ruby": dict(zip(("platform", "sitedir", "version"), lines, strict=True))} if len(lines) == 3 and all(lines) else {}


def ruby_resolver(program: str) -> Callable[[Host], dict[str, Any]]:
    """Return the resolver of the fact `ruby` for this program."""

    def resolve_ruby(host: Host) -> dict[str, Any]:
        return parse_ruby(host.run([program, "--disable=gems", "-e", _SCRIPT]))

    return resolve_ruby
