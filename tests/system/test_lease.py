"""The lease on a run directory: one holder, taken over only from the dead, by nobody's clock."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from taskhint.system import lease
from taskhint.system.lease import Busy, Lease, newest, numbers, wait_until_free

QUICK = partial(Lease, beat=0.05, stale=0.5)


def of_elsewhere(directory: Path, number: int = 1, count: int = 0) -> Path:
    """A lease as a process of another machine writes it."""
    directory.mkdir(exist_ok=True)
    path = directory / f".lease-{number:08d}"
    path.write_text(f'{count:012d} {{"host": "far", "machine": "x", "pid": 1, "started": "1"}}\n')
    return path


def test_only_one_has_it_and_gives_it_back(out: Path) -> None:
    with Lease(out):
        with pytest.raises(Busy, match=f"process {os.getpid()} on "):
            Lease(out).__enter__()
        assert not newest(out).free
    assert newest(out).free
    with Lease(out):
        assert numbers(out) == [2]


def test_one_of_elsewhere_is_taken_over_only_if_its_heart_stands_still(out: Path) -> None:
    of_elsewhere(out)
    begin = time.monotonic()
    with QUICK(out):
        assert time.monotonic() - begin > 0.5
        assert numbers(out) == [2]


def test_one_of_elsewhere_that_beats_is_left_alone(out: Path) -> None:
    of_elsewhere(out)
    beats = iter(range(1, 1000))
    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.05):
            of_elsewhere(out, count=next(beats))

    other = threading.Thread(target=beat)
    other.start()
    with pytest.raises(Busy, match="process 1 on far"):
        QUICK(out).__enter__()
    over.set()
    other.join()


def test_times_of_files_and_clocks_say_nothing(out: Path) -> None:
    """However old a lease looks, who finds it must watch it; however young, it can be dead."""
    for moment in (0, 4_000_000_000):
        path = of_elsewhere(out, number=max(numbers(out), default=0) + 1)
        os.utime(path, (moment, moment))
        begin = time.monotonic()
        with QUICK(out):
            assert time.monotonic() - begin > 0.5


def test_a_dead_process_of_this_machine_holds_nothing(out: Path) -> None:
    child = os.fork()
    if not child:
        Lease(out).__enter__()
        os._exit(0)
    os.waitpid(child, 0)
    assert newest(out).free and newest(out).content.startswith(b"000000000000 {")
    with Lease(out):
        assert numbers(out) == [2]


def test_another_process_with_the_number_of_a_dead_one_is_not_its_holder(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lease(out):
        monkeypatch.setattr(lease, "_started", lambda pid: f"later than {pid}")
        assert newest(out).free


def test_who_was_halted_for_too_long_learns_that_it_lost(out: Path) -> None:
    lost = threading.Event()
    with Lease(out, beat=0.05, lost=lost.set):
        of_elsewhere(out, number=2)
        assert lost.wait(10)
    assert not newest(out).free, "the lease of another is not given back"


def test_of_many_who_want_a_stale_lease_one_gets_it(out: Path) -> None:
    of_elsewhere(out)
    start, got, busy = threading.Barrier(8), [], []
    over = threading.Event()

    def want() -> None:
        start.wait()
        try:
            with QUICK(out):
                got.append(1)
                over.wait(10)
        except Busy:
            busy.append(1)

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(busy) < 7 and any(thread.is_alive() for thread in threads):
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()
    assert (len(got), len(busy)) == (1, 7)


def test_a_view_that_is_history_wins_nothing(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two others have had the lease between the look and the claim."""
    out.mkdir()
    plain = wait_until_free
    looks: list[lease.Seen] = []

    def late(directory: Path, stale: float) -> lease.Seen:
        seen = plain(directory, stale)
        if not looks:
            looks.append(seen)
            monkeypatch.setattr(lease, "wait_until_free", plain)
            for _ in range(2):
                with Lease(out):
                    pass
            monkeypatch.setattr(lease, "wait_until_free", late)
        return seen

    monkeypatch.setattr(lease, "wait_until_free", late)
    with Lease(out):
        assert numbers(out) == [3]


def test_a_file_that_nobody_can_read_counts_as_held(out: Path) -> None:
    out.mkdir()
    for content in (b"", b"\xff\xfe", b"000000000001 []\n", b'0 {"machine": 3}'):
        (out / ".lease-00000001").write_bytes(content)
        assert not newest(out).free and not newest(out).certain
