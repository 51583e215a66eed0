"""Memory that tensors give back stays with the process.

glibc returns large blocks to the system at once and fetches new ones for the next update: the
system clears every page of them again, which is a seventh of an update at width 512. No other
library than glibc is touched.
"""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of glibc's settings
NEVER = (1 << 31) - 1
LARGEST_BLOCKS = (
    1 << 30,
    1 << 25,
)  # bytes from which blocks are the system's own; older versions take the second


def keep_freed_memory() -> bool:
    """Whether the process now keeps it."""
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(TRIM_THRESHOLD, NEVER)) and any(
        mallopt(MMAP_THRESHOLD, size) for size in LARGEST_BLOCKS
    )
