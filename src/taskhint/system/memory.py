"""How much memory there still is, one clear line where it is not enough, and how a process keeps
what tensors give back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from taskhint.system.errors import MachineError, UserError

if TYPE_CHECKING:
    import torch

CGROUPS = Path("/sys/fs/cgroup")
# What torch says; its own class of error is known by name, because importing torch takes seconds.
OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "bad_alloc")
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of glibc's settings
NEVER = (1 << 31) - 1
# Bytes from which blocks are the system's own; older versions take the second.
LARGEST_BLOCKS = (1 << 30, 1 << 25)


def available_bytes() -> int:
    """What this process can still take: of the machine, its control group and its own limit."""
    return max(0, min([_of_machine(), *_of_control_groups(), *_of_limit()]))


def free_bytes(device: torch.device) -> int:
    """What a device can still take."""
    if device.type != "cuda":
        return available_bytes()
    import torch

    return int(torch.cuda.mem_get_info(device)[0])


def check_fits(needed: float, what: str, available: int | None = None) -> None:
    """Refuse, in one line, what would not fit into memory."""
    free = available_bytes() if available is None else available
    if needed > free:
        raise UserError(f"{what} takes about {gigabytes(needed)}; {gigabytes(free)} are free")


def gigabytes(count: float) -> str:
    return f"{count / 1e9:,.1f} GB"


@contextmanager
def memory_errors() -> Iterator[None]:
    """Running out of memory becomes a MachineError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not ran_out(error):
            raise
        raise MachineError(out_of_memory()) from None


def out_of_memory() -> str:
    free = gigabytes(available_bytes())
    advice = "smaller batches, shorter inputs or fewer threads take less"
    return f"out of memory; {free} are free; {advice}"


def ran_out(error: BaseException) -> bool:
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or any(words in str(error) for words in OUT_OF_MEMORY)
    )


def _of_machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line[:13] == "MemAvailable:")
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_limit() -> list[int]:
    """What `ulimit -v` leaves."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return []
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        used = 0
    return [limit - used]


def _of_control_groups() -> list[int]:
    """What containers leave: of this process's group and those above it, in both versions."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[int] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            found += _left(CGROUPS, path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            found += _left(CGROUPS / "memory", path, *names)
    return found


def _left(root: Path, path: str, limit: str, usage: str) -> Iterator[int]:
    folder = root / path.strip("/")
    for place in (folder, *folder.parents):
        if not place.is_relative_to(root):
            return
        try:
            most, used = int((place / limit).read_text()), int((place / usage).read_text())
            yield most - used + _given_back(place)
        except (OSError, ValueError):  # there is none, or it says "max"
            continue


def _given_back(place: Path) -> int:
    """Of the memory in use, copies of files that the system drops when it needs room."""
    lines = (line.split() for line in (place / "memory.stat").read_text().splitlines())
    return sum(int(value) for name, value in lines if name == "inactive_file")


def keep_freed_memory() -> bool:
    """Memory that tensors give back stays with the process; whether it now does.

    glibc returns large blocks to the system at once and fetches new ones for the next update: the
    system clears every page of them again, which is a seventh of an update at width 512. No other
    library than glibc is touched.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(TRIM_THRESHOLD, NEVER)) and any(
        mallopt(MMAP_THRESHOLD, size) for size in LARGEST_BLOCKS
    )
