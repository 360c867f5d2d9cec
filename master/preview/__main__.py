"""
The process that compiles for previews: `python -I -m master.preview`.

It gives way to all others before it loads what compiles, and that in a session of its own, since Linux shares the processors between
sessions.
"""

import os
import sys

from shared.process.daemon import give_way

NICENESS = 10
"""The difference between the priority of these processes and that of the processes for agents' catalogs."""

if __name__ == "__main__":
    os.setsid()
    give_way(NICENESS)
    from ..pools.compile_worker import main
    from .worker import PreviewWorker

    sys.exit(main("compiling for a preview", PreviewWorker))
