"""Freed memory stays with the process."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import resource
from taskhint.system.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        bytearray(16 << 20)  # cleared, so that every page of it is touched
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
print(keep_freed_memory(), before, faults())
"""


def test_pages_are_fetched_once() -> None:
    kept, before, after = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    ).stdout.split()
    assert kept == "False" or int(after) < int(before) / 3
