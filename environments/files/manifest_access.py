"""The files of the compiling host that manifests may read by name, and the programs that they may start."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from shared.errors import EvaluationError
from shared.names import quoted_for_log


@dataclass(frozen=True, slots=True)
class ManifestAccess:
    """
    The rules for reads by `file`, `epp`, `template`, `find_file` and the like, and for running programs with `generate`.

    Attributes:
        roots: Folders below which files may be read, in addition to the environment's own; none: any, as in Puppet.
        hidden: Files and folders that are never read, even if another rule allows it: the master's own keys.
        programs: Whether `generate` starts programs.
    """

    roots: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    programs: bool = True

    def __post_init__(self) -> None:
        # Resolved once: the links on the way to these folders are the administrator's; a file's own links are followed at each check.
        for name in ("roots", "hidden"):
            object.__setattr__(self, name, _real(getattr(self, name)))

    def check_read(self, path: str, own_folders: Iterable[str]) -> None:
        """Raise EvaluationError unless `path` may be read; `own_folders` are the environment's. Called before it is known to exist."""
        if not self.roots and not self.hidden:
            return
        try:
            real = os.path.realpath(path)
        except ValueError:
            return  # no file has a name like this
        if _below(real, self.hidden):
            raise EvaluationError(f"Manifests may not read {quoted_for_log(path, 200)}", hint="The master stores its own keys there.")
        if self.roots and not _below(real, (*self.roots, *_real(own_folders))):
            raise EvaluationError(
                f"Manifests may not read {quoted_for_log(path, 200)}",
                hint="The setting compile_read_roots names the folders that they may read.",
            )

    def check_program(self, program: str) -> None:
        """Raise EvaluationError unless programs may be started."""
        if not self.programs:
            raise EvaluationError(f"Manifests may not start {quoted_for_log(program, 200)}", hint="The setting compile_programs is false.")


def _real(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(os.path.realpath(folder) for folder in folders)


def _below(real: str, folders: Iterable[str]) -> bool:
    return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in folders)
