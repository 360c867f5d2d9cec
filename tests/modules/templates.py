"""
Counts which ERB templates of Debian's modules are translated and which functions in Ruby read nothing else, and says why the others do not.

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
from language.loading.ruby_functions import impurity_of_function
from language.syntax.source import Source
from tests.support.markdown import wrapped

ROOT = Path(__file__).parent.parent.parent
MODULES = Path("/usr/share/puppet/modules")
BEGIN, END = "## Templates", "## Types in Ruby"


@dataclass(frozen=True, slots=True)
class Refused:
    """A template that needs Ruby; `impurity` is what has its catalogs compiled each time."""

    name: str
    line: int
    reason: str
    impurity: StoredImpurity | None

    def row(self) -> str:
        return "| " + " | ".join([self.name, str(self.line), _cell(self.reason), _cell(_shown(self.impurity))]) + " |"


def _shown(impurity: StoredImpurity | None) -> str:
    return f"line {impurity[1]}: {impurity[0]}" if impurity is not None else ""


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


def impure_functions(modules: Path) -> tuple[int, dict[str, StoredImpurity]]:
    """Return how many functions in Ruby the modules below a folder have, those of stdlib left out, and what may give something else."""
    functions: dict[Path, str] = {}
    for module in sorted(modules.iterdir()):
        if module.name == "stdlib":  # whose functions are part of the compiler
            continue
        for folder in ("lib/puppet/functions", "lib/puppet/parser/functions"):
            for path in sorted((module / folder).rglob("*.rb")):
                functions.setdefault(path.resolve(), str(path.relative_to(module / folder)).removesuffix(".rb").replace("/", "::"))
    impure: dict[str, StoredImpurity] = {}
    for path, name in functions.items():
        source = Source(path.read_text("utf-8", "surrogateescape"), str(path))
        impurity = impurity_of_function(source, CodeCache())
        if impurity is not None:
            impure[f"{name}()"] = impurity
    return len(functions), dict(sorted(impure.items()))


def section(total: int, refused: list[Refused], functions: int, impure: dict[str, StoredImpurity]) -> list[str]:
    """Return the lines of docs/modules.md about templates and functions."""
    share = 100 * (total - len(refused)) / total
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
        f"{functions - len(impure)} of {functions} functions in Ruby of these modules, stdlib's left out, can read nothing but what they",
        "are given, and their catalogs are answered from memory. The others:",
        "",
        "| function | why its catalogs are compiled each time |",
        "|---|---|",
        *(f"| {name} | {_cell(_shown(impurity))} |" for name, impurity in impure.items()),
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
    lines = section(total, refused, *impure_functions(options.modules))
    print("\n".join(lines))
    if options.write:
        page = ROOT / "docs" / "modules.md"
        text = page.read_text()
        before, _, rest = text.partition(END)
        before = re.sub(rf"{BEGIN}.*", "", before, flags=re.DOTALL)
        page.write_text(wrapped(before + "\n".join(lines) + "\n" + END + rest))
    return 0


if __name__ == "__main__":
    sys.exit(main())
