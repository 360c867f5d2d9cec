"""The pictures of the docs: the demo's preview in Chromium. Each has its page's text inside, with which a test finds one that is old."""

from __future__ import annotations

import re
import struct
import tempfile
import zlib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from demo import run
from tests.interop.clients import CHROMIUM, answers_of, served

DOCS = Path(__file__).parents[2] / "docs"
VISITS = {
    "preview-changes": {"scheme": "light", "click": ["[data-view=changes]"], "until": ["TLSv1.3"], "picture": [1000, 600]},
    "preview-errors": {"scheme": "dark", "click": [], "until": ["Only in"], "picture": [1000, 500]},
}
KEYWORD = b"Description\0\1\0\0\0"  # of a compressed text in UTF-8
OF_ONE_RUN = re.compile(r"\b[0-9a-f]{12}\b|\d{4}-\d\d-\d\d \d\d:\d\d|\d+\.\d seconds")


def taken(folder: Path) -> dict[str, bytes]:
    """Return the pictures by their names, as files. `folder` is a new one."""
    with redirect_stdout(StringIO()):
        run.preview(folder)
    visits = [{"name": name, "path": f"/{run.PAGE.name}?{name}", "fill": {}, **visit} for name, visit in VISITS.items()]
    with served(run.PAGE.parent) as base:
        seen = answers_of("browser.py", {"chromium": CHROMIUM, "folder": str(folder), "base": base, "visits": visits})
    assert [each["complaints"] + each["violations"] for each in seen.values()] == [[]] * len(VISITS)
    return {name: with_text((folder / f"{name}.png").read_bytes(), OF_ONE_RUN.sub("…", each["text"])) for name, each in seen.items()}


def with_text(png: bytes, text: str) -> bytes:
    """Return a picture with a text inside, before its end."""
    chunk = b"iTXt" + KEYWORD + zlib.compress(text.encode(), 9)
    end = png.rindex(b"IEND") - 4
    return png[:end] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[end:]


def text_in(png: bytes) -> str:
    """Return the text inside a picture."""
    start = png.rindex(b"iTXt" + KEYWORD)
    (length,) = struct.unpack(">I", png[start - 4 : start])
    return zlib.decompress(png[start + 4 + len(KEYWORD) : start + 4 + length]).decode()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, png in taken(Path(folder)).items():
            (DOCS / f"{name}.png").write_bytes(png)


if __name__ == "__main__":
    main()
