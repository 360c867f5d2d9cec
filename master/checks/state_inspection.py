"""
`python -m master.checks.state_inspection`: the checks of the masters' database before a master starts.

The settings come in JSON over standard input; the problems go to standard output, as a list in JSON. It runs as the account of the master.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from shared.settings import MasterSettings
from shared.state.inspection import inspect_state


def main() -> int:
    """Print the problems; return 0."""
    settings = MasterSettings.model_validate(json.loads(sys.stdin.buffer.read()))
    json.dump([asdict(problem) for problem in inspect_state(settings.state)], sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
