"""
Counts which ERB templates of Debian's modules are translated, and says why the others are not.

    python -m tests.modules.templates [--modules FOLDER]          the templates that need Ruby, with line and reason
    python -m tests.modules.templates [--modules FOLDER] --write  the same in docs/modules.md
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from master.compiler.codegen.codecache import CodeCache
from master.compiler.loading.erb_templates import ErbTemplates

ROOT = Path(__file__).parent.parent.parent
MODULES = Path("/usr/share/puppet/modules")
BEGIN, END = "## Templates", "## Modules"


@dataclass(frozen=True, slots=True)
class Refused:
    """A template that needs Ruby."""

    name: str
    line: int
    reason: str


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
            refused.append(Refused(shown, template.line, template.reason))
    return len(paths), refused


def section(total: int, refused: list[Refused]) -> list[str]:
    """Return the lines of docs/modules.md about templates."""
    share = 100 * (total - len(refused)) / total
    return [
        BEGIN,
        "",
        f"{total - len(refused)} of {total} ERB templates of these modules ({share:.1f} %) are run as Python and need no Ruby",
        "(`python -m tests.modules.templates --write`). The others go to Ruby as a whole:",
        "",
        "| template | line | what is not translated |",
        "|---|---|---|",
        *(f"| {each.name} | {each.line} | {each.reason.replace('|', chr(92) + '|')} |" for each in refused),
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
    lines = section(total, refused)
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
