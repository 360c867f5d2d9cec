"""What a settled process still gets rid of; in a process of its own, as the collector is one for all."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import weakref
from shared.collector import settle

class Circle:
    def __init__(self):
        self.own = self

settle(circles=CIRCLES)
lived = [Circle() for _ in range(150_000)]  # long enough for the collector to have looked at the first of them twice
first = weakref.ref(lived[0])
lived.clear()
for _ in range(300_000):
    Circle()
print(first() is None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("circles", [True, False])
def test_circles_that_lived_a_little_go_where_the_work_leaves_some(circles: bool) -> None:
    program = PROGRAM.replace("CIRCLES", str(circles))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{circles}\n"
