"""
Counts which ERB templates and functions in Ruby of Debian's modules are translated, and says why the others are not.

    python -m tests.modules.templates [--modules FOLDER]          what needs Ruby, with line and reason
    python -m tests.modules.templates [--modules FOLDER] --write  the same in docs/modules.md
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from language.codegen.codecache import CodeCache
from language.loading.erb_templates import ErbTemplates, StoredImpurity
from language.loading.ruby_functions import translated_function
from language.syntax.source import Source

ROOT = Path(__file__).parent.parent.parent
MODULES = Path("/usr/share/puppet/modules")
BEGIN, END = "## Templates", "## Modules"


@dataclass(frozen=True, slots=True)
class Refused:
    """A template or function that needs Ruby; `impurity` is what has its catalogs compiled each time."""

    name: str
    line: int
    reason: str
    impurity: StoredImpurity | None

    def row(self) -> str:
        each_time = f"line {self.impurity[1]}: {self.impurity[0]}" if self.impurity is not None else ""
        return "| " + " | ".join([self.name, str(self.line), _cell(self.reason), _cell(each_time)]) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def refused_templates(modules: Path) -> tuple[int, list[Refused]]:
    """Return how many templates the modules below a folder have, and those that need Ruby. A module with two names counts once."""
    templates = ErbTemplates(CodeCache())
    paths: dict[Path, str] = {}
    for module in sorted(modules.iterdir()):
        for folder, _, names in os.walk(module / "templates"):
            for name in sorted(names):
                path = Path(folder, name)
                if name.endswith(".erb"):
                    paths.setdefault(path.resolve(), str(path.relative_to(modules)))
    refused: list[Refused] = []
    for path, shown in paths.items():
        template = templates.get(path.read_text("utf-8", "surrogateescape"), str(path))
        if template.body is None:
            refused.append(Refused(shown, template.line, template.reason, template.impurity))
    return len(paths), refused


def refused_functions(modules: Path) -> tuple[int, list[Refused]]:
    """Return how many functions in Ruby the modules below a folder have, those of stdlib left out, and those that need Ruby."""
    functions: dict[Path, str] = {}
    for module in sorted(modules.iterdir()):
        if module.name == "stdlib":  # whose functions are part of the compiler
            continue
        for folder in ("lib/puppet/functions", "lib/puppet/parser/functions"):
            for path in sorted((module / folder).rglob("*.rb")):
                functions.setdefault(path.resolve(), str(path.relative_to(module / folder)).removesuffix(".rb").replace("/", "::"))
    refused: list[Refused] = []
    for path, name in functions.items():
        source = Source(path.read_text("utf-8", "surrogateescape"), str(path))
        translated = translated_function(name, source, CodeCache())
        if not translated.methods:
            refused.append(Refused(f"{name}()", translated.line, translated.reason, translated.impurity))
    return len(functions), sorted(refused, key=lambda each: each.name)


def section(total: int, refused: list[Refused], functions: int, refused_functions: list[Refused]) -> list[str]:
    """Return the lines of docs/modules.md about templates and functions."""
    share = 100 * (total - len(refused)) / total
    native = functions - len(refused_functions)
    return [
        BEGIN,
        "",
        f"{total - len(refused)} of {total} ERB templates of these modules ({share:.1f} %) are run as Python and need no Ruby",
        "(`python -m tests.modules.templates --write`). The others go to Ruby as a whole:",
        "",
        "| template | line | what is not translated | why its catalogs are compiled each time |",
        "|---|---|---|---|",
        *(each.row() for each in refused),
        "",
        "## Functions",
        "",
        f"{native} of {functions} functions in Ruby of these modules ({100 * native / functions:.0f} %), stdlib's left out, are run as",
        "Python and need no Ruby. The others go to Ruby as a whole; where the last column is empty they can read nothing but what they are",
        "given, and their catalogs are answered from memory:",
        "",
        "| function | line | what is not translated | why its catalogs are compiled each time |",
        "|---|---|---|---|",
        *(each.row() for each in refused_functions),
        "",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=Path, default=MODULES, help=f"the folder of the modules (default: {MODULES})")
    parser.add_argument("--write", action="store_true", help="write the section of docs/modules.md")
    options = parser.parse_args()
    if not options.modules.is_dir() or not any(options.modules.iterdir()):
        print(f"No module is in {options.modules}; `python -m tests.modules.run --install` installs Debian's", file=sys.stderr)
        return 1
    total, refused = refused_templates(options.modules)
    lines = section(total, refused, *refused_functions(options.modules))
    print("\n".join(lines))
    if options.write:
        page = ROOT / "docs" / "modules.md"
        text = page.read_text()
        before, _, rest = text.partition(END)
        before = re.sub(rf"{BEGIN}.*", "", before, flags=re.DOTALL)
        page.write_text(before + "\n".join(lines) + "\n" + END + rest)
    return 0


if __name__ == "__main__":
    sys.exit(main())
