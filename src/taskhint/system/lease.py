"""One worker per run directory, on whatever machine: a lease that its holder keeps renewing.

`flock` may not reach other machines, and their clocks may differ. So nobody compares times of two
machines: who finds a lease watches it, and takes it over when its heartbeat has not changed for
`STALE` seconds of the watcher's own clock.

A directory holds one file `.lease-N`. Whoever wants the lease makes the file of number N + 1,
which only one can, then removes that of number N. The file of the largest number is never removed,
so a number is not used twice.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from taskhint.system.files import make_directory, storing, write_all

PREFIX = ".lease-"
BEAT = 5.0  # seconds between two heartbeats
STALE = 30.0  # without a heartbeat for so long, its holder is taken for dead
LOST = 75  # the exit code of a process whose lease was taken over
_GLANCE = 0.25
_FREE = b"free\n"
_LARGEST = 1 << 12


class Busy(Exception):  # noqa: N818
    """Another worker holds the lease and is alive."""


@dataclass(frozen=True)
class Seen:
    """The newest lease of a directory, as somebody saw it; number 0 if there is none."""

    number: int
    content: bytes

    @property
    def free(self) -> bool:
        """Given back, never taken, or left behind by a dead process of this machine."""
        return not self.number or self.content == _FREE or self._alive() is False

    @property
    def certain(self) -> bool:
        """Whether this machine can tell at once that its holder lives, or that there is none."""
        return self.free or self._alive() is True

    @property
    def holder(self) -> str:
        """Who holds it, in words."""
        about = self._about()
        return f"process {about.get('pid', '?')} on {about.get('host', 'another machine')}"

    def _about(self) -> dict[str, Any]:
        _, _, text = self.content.partition(b" ")
        try:
            about = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        return about if isinstance(about, dict) else {}

    def _alive(self) -> bool | None:
        """None where the holder is no process of this machine."""
        about = self._about()
        if not _machine() or about.get("machine") != _machine():
            return None
        if type(about.get("pid")) is not int:
            return None
        return _started(about["pid"]) == about.get("started")


class Lease:
    """While it is entered, no other worker has this directory. Busy if one has it already.

    A thread renews it. If it finds that another worker has taken the lease over, because this
    process or its machine was halted for too long, `lost` is called: by default it ends the
    process before it can write anything.
    """

    def __init__(
        self,
        directory: Path,
        beat: float = BEAT,
        stale: float = STALE,
        lost: Callable[[], None] = lambda: os._exit(LOST),
    ) -> None:
        self.directory = directory
        self._beat, self._stale, self._lost = beat, stale, lost
        self._done = threading.Event()
        self._number = 0
        self._thread = threading.Thread(target=self._keep_alive, daemon=True)

    def __enter__(self) -> Self:
        with storing(self.directory):
            make_directory(self.directory)
            self._number = self._claim()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        with suppress(OSError):
            if newest(self.directory).number == self._number:
                _write(self._path(self._number), _FREE)

    def _claim(self) -> int:
        while True:
            before = wait_until_free(self.directory, self._stale)
            number = before.number + 1
            try:
                _write(self._path(number), _content(0), os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                continue  # another was quicker
            except OSError:  # a lease without a word in it would be watched for nothing
                with suppress(OSError):
                    self._path(number).unlink(missing_ok=True)
                raise
            if self._still(before):
                self._path(before.number).unlink(missing_ok=True)
                return number
            self._path(number).unlink(missing_ok=True)

    def _still(self, before: Seen) -> bool:
        """Whether nobody has had the lease since it was seen."""
        there = numbers(self.directory)
        if not before.number:
            return there == [1]
        unchanged = _read(self._path(before.number)) == before.content
        return max(there) == before.number + 1 and unchanged

    def _keep_alive(self) -> None:
        count, last = 0, time.monotonic()
        while not self._done.wait(self._beat):
            count += 1
            try:
                if newest(self.directory).number != self._number:
                    return self._lost()
                _write(self._path(self._number), _content(count))
                last = time.monotonic()
            except FileNotFoundError:
                return self._lost()
            except OSError:  # storage can be away for a moment
                if time.monotonic() - last > self._stale:
                    return self._lost()
        return None

    def _path(self, number: int) -> Path:
        return self.directory / f"{PREFIX}{number:08d}"


def wait_until_free(directory: Path, stale: float = STALE) -> Seen:
    """The lease that can be taken. Busy as soon as its holder is known to live."""
    before, since = newest(directory), time.monotonic()
    while not before.free:
        if before.certain:
            raise Busy(before.holder)
        if time.monotonic() - since > stale:
            return before
        time.sleep(_GLANCE)
        now = newest(directory)
        if now != before and not now.free:
            raise Busy(now.holder)
        before = now
    return before


def newest(directory: Path) -> Seen:
    number = max(numbers(directory), default=0)
    if not number:
        return Seen(0, b"")
    return Seen(number, _read(directory / f"{PREFIX}{number:08d}"))


def numbers(directory: Path) -> list[int]:
    """Of every lease file in a directory."""
    try:
        names = [name for name in os.listdir(directory) if name.startswith(PREFIX)]  # noqa: PTH208
    except FileNotFoundError:
        return []
    found = (name.removeprefix(PREFIX) for name in names)
    return [int(text) for text in found if text.isdecimal()]


def _read(path: Path) -> bytes:
    """What no holder writes where there is no file: then it has just been taken over."""
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST)
    except FileNotFoundError:
        return b"gone"


def _write(path: Path, content: bytes, flags: int = 0) -> None:
    """Opened and closed every time: that is when a network file system shows it to others. What
    was there is written over, so that a full disk has room for it.
    """
    handle = os.open(path, os.O_WRONLY | flags, 0o666)
    try:
        write_all(handle, content)
        if os.fstat(handle).st_size > len(content):
            os.ftruncate(handle, len(content))
    finally:
        os.close(handle)


def _content(count: int) -> bytes:
    """Of the same size for every count, so that it can be written over."""
    pid = os.getpid()
    about = {"host": os.uname().nodename, "machine": _machine(), "pid": pid}
    return f"{count:012d} {json.dumps({**about, 'started': _started(pid)})}\n".encode()


@cache
def _machine() -> str:
    """The same for processes that see each other's numbers: boot and process namespace."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115
    return ""


def _started(pid: int) -> str | None:
    """When a process was started, in the kernel's ticks; None if it is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in "ZX" else fields[19]
