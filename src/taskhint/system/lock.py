"""One process per run directory. The kernel holds the lock for the process, so a dead process
holds none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taskhint.system.errors import UserError
from taskhint.system.files import make_directory, storing, write_all

try:
    import fcntl
except ImportError:  # whatever writes or reads runs comes by here, before it does anything
    raise UserError(
        "this system has no fcntl, which keeps runs from being written by two processes: taskhint "
        "works on Linux and macOS; on Windows use it inside WSL (wsl --install)"
    ) from None

LOCK_FILE = ".lock"
_TRIES = 20


@contextmanager
def only_process(directory: Path) -> Iterator[None]:
    """Refuses a second process at once, and names the first."""
    with _opened(directory) as handle:
        for _ in range(_TRIES):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = _holder(handle)
                if holder is not None:
                    raise UserError(
                        f"{directory} is in use by process {holder}; wait for it or stop it"
                    ) from None
                time.sleep(0.05)  # it has the lock but has not written its number yet
        else:
            raise UserError(f"{directory} is in use by another process")
        with storing(directory):
            os.ftruncate(handle, 0)
            write_all(handle, f"{os.getpid()}\n".encode())
        yield


@contextmanager
def one_at_a_time(directory: Path) -> Iterator[None]:
    """Waits until no other process is here: for short work, such as adding to a file."""
    with _opened(directory) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    with storing(directory):
        make_directory(directory)
        handle = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        yield handle
    finally:
        os.close(handle)  # which gives up the lock


def _holder(handle: int) -> int | None:
    """The number in the lock file, if a process of that number lives."""
    text = os.pread(handle, 20, 0).decode(errors="replace").strip()
    if not text.isdecimal() or int(text) == 0:
        return None
    try:
        os.kill(int(text), 0)
    except PermissionError:
        pass  # it lives, under another user
    except (ProcessLookupError, OverflowError):
        return None
    return int(text)
