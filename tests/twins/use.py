"""A use of modules that both twins are applied to: a manifest, what is there before it, what is asked after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import yaml

USES = Path(__file__).parent / "uses"


@dataclass(frozen=True)
class Use:
    """
    One file of `uses/`.

    Args:
        manifest: What is applied, twice.
        modules: Modules that this use is a proof of; a module is judged by all of its uses.
        before: A shell script that runs on each twin before the first run.
        between: A shell script that runs on each twin before the second run.
        ask: Shell commands whose output has to be the same on both afterwards.
        ignored: Differences that are no fault, by a pattern that the line of a difference matches; each with its reason.
        second: "unchanged" when the second run changes nothing, or why it changes something with the reference too.
    """

    name: str
    manifest: str
    modules: Sequence[str]
    before: str = ""
    between: str = ""
    ask: Sequence[str] = ()
    ignored: Mapping[str, str] = field(default_factory=dict)
    second: str = "unchanged"

    @property
    def digest(self) -> str:
        """A text that changes with what is done on the twins."""
        return sha256("\0".join([self.manifest, self.before, self.between, *self.ask]).encode()).hexdigest()


def read_uses(names: Sequence[str] = ()) -> list[Use]:
    """Return the uses of these names, or all, in the order of their names."""
    paths = [USES / f"{name}.yaml" for name in names] or sorted(USES.glob("*.yaml"))
    return [Use(path.stem, **yaml.safe_load(path.read_text("utf-8"))) for path in paths]
