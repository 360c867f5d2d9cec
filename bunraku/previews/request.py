"""The sides and nodes of a preview: from a command line to the two sides and the certnames."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from environments.directories import Environments
from master.preview.nodes import PreviewNodes
from master.preview.pool import Sides
from master.preview.result import PreviewSide
from shared.errors import BadName, ConfigError, NotFound, PuppetError
from shared.names import valid_certname, valid_environment

from .revisions import exported

PUPPETFILE = "Puppetfile"
SUBMODULES = ".gitmodules"


@dataclass(frozen=True, slots=True)
class SideNames:
    """The sides as they were given: environments, folders, or revisions of `repository`, where that is not ''."""

    before: str
    after: str
    repository: str = ""

    @contextmanager
    def opened(self, environments: Environments, environment: str, timeout: float) -> Iterator[Sides]:
        """
        Lend the two sides; those of a repository are removed at the end. Blocks.

        Args:
            environment: how the environment is called in both; '': as `before`, or `production` when that is not an environment.
            timeout: seconds for each step of `git`.
        Raises:
            NotFound: There is no such environment or folder. ConfigError, PuppetError: see `exported`.
        """
        name = environment or self._environment()
        if not self.repository:
            yield Sides(name, _side(environments, self.before), _side(environments, self.after))
            return
        with exported(self.repository, (self.before, self.after), timeout=timeout) as (before, after):
            sides = [
                PreviewSide(word, str(revision.folder), revision.commit, revision.subject)
                for word, revision in ((self.before, before), (self.after, after))
            ]
            yield Sides(name, *sides)

    def _environment(self) -> str:
        if self.repository or "/" in self.before:
            return "production"
        return valid_environment(self.before)


def _side(environments: Environments, word: str) -> PreviewSide:
    """Return the side that a word names: a folder when it has a slash in it, else an environment, as it is deployed now."""
    if "/" not in word and word not in (".", ".."):
        return PreviewSide.of_environment(word, environments.root_of(word))
    folder = Path(word).resolve()
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}", hint="A side is an environment, or a folder with a slash in its name.")
    return PreviewSide(word, str(folder))


def notes_about(sides: Sides) -> Iterator[str]:
    """Yield notes about the parts of a side that are not in a commit: modules of a Puppetfile, submodules."""
    folders = [Path(side.root) for side in (sides.before, sides.after) if side.revision is not None]
    if not folders:
        return
    puppetfiles = [_content(folder / PUPPETFILE) for folder in folders]
    if any(puppetfiles):
        differs = "It differs between the two sides. " if puppetfiles[0] != puppetfiles[1] else ""
        yield f"The modules of the {PUPPETFILE} are not fetched. {differs}Name folders with modules with --modules, or deploy both sides"
    if any((folder / SUBMODULES).exists() for folder in folders):
        yield "The submodules of the repository are not fetched"


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """The selection of nodes: one of the four fields is set."""

    names: tuple[str, ...] = ()
    file: str | None = None
    query: str | None = None
    all: bool = False

    def check(self) -> None:
        """Raise ConfigError unless one way to select nodes was chosen."""
        chosen = [bool(self.names), self.file is not None, self.query is not None, self.all]
        if sum(chosen) != 1:
            raise ConfigError("Say which nodes", hint="Give one of --nodes NAME,…, --file FILE, --query PQL and --all.")

    async def certnames(self, nodes: PreviewNodes) -> list[str]:
        """Return the certnames, each once. Raises BadName, PuppetError."""
        if self.all:
            return await nodes.all()
        if self.query is not None:
            return await nodes.matching(self.query)
        return self.listed()

    def listed(self) -> list[str]:
        """Return the certnames that were given, or that are in the file, each once. Raises BadName, PuppetError."""
        words = list(self.names) if self.file is None else _lines_of(self.file)
        return list(dict.fromkeys(valid_certname(word) for word in words))


def _lines_of(file: str) -> list[str]:
    """Return the names in a file, one a line; empty lines and those that begin with `#` do not count."""
    try:
        text = Path(file).read_text("utf-8")
    except OSError as err:
        raise PuppetError(f"Could not read {file}: {err.strerror}") from err
    except UnicodeDecodeError as err:
        raise BadName(f"{file} is no text of names of nodes") from err
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
