"""What the stages of one gate have found so far, kept in files, since a gate is several commands."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from tests.gate.results import Results

BUILD = Path(__file__).resolve().parents[2] / "build" / "gate"
_STAGES = BUILD / "stages.json"


@dataclass(slots=True)
class Record:
    """The seconds of each stage in the order of their runs, and a line for each cache that could not be made."""

    stages: dict[str, float] = field(default_factory=dict)
    not_made: list[str] = field(default_factory=list)

    @property
    def results(self) -> Results:
        """What the tests of all these stages have found."""
        every = Results()
        for stage in self.stages:
            if results_of(stage).exists():
                every.add(Results.read(results_of(stage)))
        return every

    def write(self) -> None:
        BUILD.mkdir(parents=True, exist_ok=True)
        _STAGES.write_text(json.dumps({"stages": self.stages, "not_made": self.not_made}))

    @classmethod
    def read(cls) -> Record:
        """Return what the gate that was begun last has found so far; an empty record where there was none."""
        return cls(**json.loads(_STAGES.read_text())) if _STAGES.exists() else cls()


def results_of(stage: str) -> Path:
    """Return the file of the results of a stage; there is none for one without tests."""
    return BUILD / f"{stage}.json"
