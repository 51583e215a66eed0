"""Timing several contestants in turn, so that whatever else the machine does hits all of them
alike.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping

Work = Callable[[int], object]
"""What one contestant does in a round; it is told the round's number, so that all can take the
same batch.
"""


def alternate(works: Mapping[str, Work], rounds: int, title: str) -> dict[str, list[float]]:
    """Seconds of each work in each round, after one round that is not counted. Every other round
    goes backwards.
    """
    seconds: dict[str, list[float]] = {name: [] for name in works}
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds + 1):
            say(f"{title}: round {number}/{rounds}")
            order = list(works) if number % 2 else list(works)[::-1]
            for name in order:
                taken = timed(works[name], number)
                if number:
                    seconds[name].append(taken)
    finally:
        gc.enable()
    return seconds


def timed(work: Work, number: int = 0) -> float:
    begin = time.perf_counter()
    work(number)
    return time.perf_counter() - begin


def medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in seconds.items()}


def say(line: str) -> None:
    """Progress, on standard error."""
    print(f"bench: {line}", file=sys.stderr, flush=True)
