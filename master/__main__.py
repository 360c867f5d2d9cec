"""`python -m master` is `puppet master`."""

import signal
import sys

if __name__ == "__main__":
    # Before the imports, which take time: HUP must not end a daemon's start.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    from .cli import main

    sys.exit(main())
