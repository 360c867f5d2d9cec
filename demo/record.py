"""Runs the demo and draws what it prints: `python demo/record.py` writes docs/demo.svg."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "demo.svg"
STYLES = (
    (re.compile(r"^== .*", re.M), "bold"),
    (re.compile(r"^   \$ .*", re.M), "bold green"),
    (re.compile(r"^   \| +\+.*", re.M), "green"),
    (re.compile(r"^   \| +-(?!-).*", re.M), "red"),
    (re.compile(r"^   \| ! .*", re.M), "bold red"),
)


def main() -> None:
    done = subprocess.run([sys.executable, ROOT / "demo/run.py"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    told = done.stdout.strip().replace(ROOT.as_uri(), "file://…")
    text = Text(f"$ make demo\n{told}")
    for pattern, style in STYLES:
        text.highlight_regex(pattern, style)
    console = Console(record=True, width=max(map(len, told.splitlines())), file=io.StringIO())
    console.print(text, soft_wrap=True)
    picture = console.export_svg(title="make demo")
    # The picture loads nothing: viewers take a monospaced font of their own.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL).replace("Fira Code", "monospace"))


if __name__ == "__main__":
    main()
