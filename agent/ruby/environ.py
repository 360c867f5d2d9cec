"""The environment variables of processes of Ruby."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

LOADING = ("RUBYLIB", "RUBYOPT", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE")
"""Variables that make Ruby load other code."""
_NOT_INHERITED = (*LOADING, "HOME", "USER", "LOGNAME")


def environment_for_ruby(environ: Mapping[str, str], *, without: Sequence[str] = _NOT_INHERITED) -> dict[str, str]:
    """Return the environment of a process of Ruby: nothing in it makes Ruby load other code, and texts are UTF-8."""
    inherited = {name: value for name, value in environ.items() if name not in without and not name.startswith("BUNDLE_")}
    return inherited | {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
