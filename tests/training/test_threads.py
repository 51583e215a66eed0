"""Pieces of work on every core."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from taskhint.system.cores import on_every_core


@pytest.fixture(autouse=True, params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_order_from_single_threads(threads: int) -> None:
    names = set()

    def work(piece: int) -> tuple[int, int]:
        names.add(threading.current_thread().name)
        return piece * piece, torch.get_num_threads()

    assert list(on_every_core(work, range(50))) == [(n * n, 1) for n in range(50)]
    assert torch.get_num_threads() == threads
    assert len(names) <= threads
    assert (threading.current_thread().name in names) == (threads == 1)


def test_an_error_comes_through_and_the_number_of_threads_stays(threads: int) -> None:
    def work(piece: int) -> int:
        if piece == 3:
            raise ValueError("three")
        return piece

    with pytest.raises(ValueError, match="three"):
        list(on_every_core(work, range(10)))
    assert torch.get_num_threads() == threads
