"""The fenced blocks of README and docs/: what each is, and a shell that types the commands among them on a prepared host."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import clean_environment

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")))
_HARMLESS = ("cat", "flock", "install", "openssl", "tar")
_OF_THE_MACHINE = re.compile(r"""(?:^|[\s='"])/(?!dev/null)\w""")
_REAL_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_BLOCK = re.compile(r"(?:^ *<!-- not run: (?P<reason>.+) -->\n)?^(?P<indent> *)```(?P<info>.*)\n(?P<body>(?:.*\n)*?)(?P=indent)```$", re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """
    A fenced block.

    Attributes:
        kind: The first word behind the fence: its language.
        name: The words behind that, which tell it from others of its page or say which file it is.
        reason: Why it is not run, as the comment `<!-- not run: … -->` above it says; '' without one.
    """

    page: str
    line: int
    kind: str
    name: str
    body: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str, kind: str = "") -> list[Block]:
    """Return the blocks of a page, or those of a kind, without the indentation of lists."""
    text, found = (ROOT / page).read_text("utf-8"), []
    for match in _BLOCK.finditer(text):
        first, _, name = match["info"].partition(" ")
        body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.M)
        line = text.count("\n", 0, match.start("info")) + 1
        found.append(Block(page, line, first, name, body, match["reason"] or ""))
    assert 2 * len(found) == len(re.findall(r"^ *```", text, re.M)), f"a block of {page} does not end"
    return [block for block in found if kind in ("", block.kind)]


def block(page: str, kind: str, name: str = "") -> Block:
    """Return the one block of a page that has this kind and name."""
    (only,) = (each for each in blocks(page, kind) if each.name == name)
    return only


@dataclass(frozen=True)
class Shell:
    """
    A shell on a prepared host. It finds `puppet`, the stand-ins and a few harmless programs, and no other program of the machine.

    Args:
        folder: A new folder, for the programs and as the working directory.
        options: Of each `puppet`, behind those that are typed; by the subcommand, '' for all others.
        places: What stands where the commands name paths and hosts that only the documentation has.
        programs: Scripts in place of other programs, by their names.
    """

    folder: Path
    options: Mapping[str, Collection[str]]
    places: Mapping[str, str]
    programs: Mapping[str, str]

    def __post_init__(self) -> None:
        tools = self.folder / "bin"
        tools.mkdir(parents=True)
        for name in _HARMLESS:
            if (program := shutil.which(name, path=_REAL_PATH)) is not None:
                (tools / name).symlink_to(program)
        start = f'PATH={_REAL_PATH} exec {sys.executable} -I -m bunraku "$@"'
        cases = "".join(f"{name or '*'}) {start} {shlex.join(options)};;\n" for name, options in sorted(self.options.items(), reverse=True))
        for name, text in {"puppet": f'case "$1" in\n{cases}esac\n', **self.programs}.items():
            (tools / name).write_text(f"#!/bin/bash\n{text}\n")
            (tools / name).chmod(0o755)

    def type(self, text: str, codes: Collection[int] = (0,)) -> str:
        """Run commands as they are printed, but for the places; return what they print. They must end with one of these codes."""
        place = re.compile("|".join(map(re.escape, sorted(self.places, key=len, reverse=True))) or r"\Z")
        assert not _OF_THE_MACHINE.search(place.sub("x", text)), f"nothing stands in for a path of: {text}"
        text = place.sub(lambda match: self.places.get(match[0], ""), text)
        environ = clean_environment(PATH=str(self.folder / "bin"), HOME=str(self.folder))
        done = subprocess.run(
            ["/bin/bash", "-e", "-o", "pipefail", "-c", text],
            env=environ, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=180, check=False,
        )  # fmt: skip
        assert done.returncode in codes, f"{text}\nended with {done.returncode}:\n{done.stdout}"
        return done.stdout
