"""`python -m bunraku` is the `puppet` command."""

import gc
import signal
import sys

if __name__ == "__main__":
    if sys.argv[1:2] in (["agent"], ["master"], ["db"]):  # before the imports, which take time: HUP must not end a daemon's start
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    gc.set_threshold(50_000, 20, 100)  # imports make many objects and drop none
    from .puppet import main

    code = main()
    gc.freeze()  # the collections that Python does at its end would look at all objects, and take a fifth of an agent's run
    sys.exit(code)
