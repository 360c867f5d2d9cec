"""`python -m bunraku` is the `puppet` command."""

import gc
import sys

from .puppet import main

if __name__ == "__main__":
    code = main()
    gc.freeze()  # the collections that Python does at its end would look at all objects, and take a fifth of an agent's run
    sys.exit(code)
