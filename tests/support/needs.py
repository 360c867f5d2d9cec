"""
What tests need that not every machine has.

Tests with the same need have the same reason, so that the summary of a run counts them together.
"""

from __future__ import annotations

import os
import shutil

import pytest

from shared.ruby import find_ruby
from tests.support.processes import has_real_puppet

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="Git is not installed")
needs_puppet = pytest.mark.skipif(not has_real_puppet(), reason="Debian's puppet-agent is not installed")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the tests are not run by root")
needs_ruby = pytest.mark.skipif(not find_ruby("auto"), reason="Ruby is not installed")
