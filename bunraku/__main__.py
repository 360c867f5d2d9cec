"""`python -m bunraku` is `puppet`."""

import sys

from .puppet import main

sys.exit(main())
