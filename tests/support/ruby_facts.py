"""Custom facts in Ruby that are the same here and with the real Facter, and what that answered."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent.parent / "data" / "ruby_facts"
FACTS = FOLDER / "lib" / "facter"
FAULTS = FOLDER / "faults"
RECORDED = FOLDER / "facter-4.3.json"


def external_folder(folder: Path) -> Path:
    """Write external facts that compete with those of the files, and return their folder."""
    external = folder / "external"
    external.mkdir()
    names = ("from_external", "from_external_light", "from_external_heavy", "from_environment")
    (external / "facts.txt").write_text("".join(f"{name}=external\n" for name in names))
    return external
