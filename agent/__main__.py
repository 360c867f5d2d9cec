"""`python -m agent` is `puppet agent`."""

import gc
import sys

from .cli import main

if __name__ == "__main__":
    code = main()
    gc.freeze()  # the collections that Python does at its end would look at all objects, and take a fifth of a run
    sys.exit(code)
