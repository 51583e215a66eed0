"""Progress on standard error: a bar with rate and time left in a terminal, a few plain lines
elsewhere and where the package rich is missing.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from taskhint.system.extras import installed

QUIET_SECONDS = 10.0  # outside a terminal, between two lines and before the first


class Progress:
    """Counts steps up to a total. Outside a terminal it prints lines at tenths of the way, and
    none for short work.
    """

    def __init__(self, total: int, title: str, shown: bool = True, unit: str = "step") -> None:
        self._total, self._title, self._unit = total, title, unit
        self._shown = shown
        self.base = 0  # what earlier parts of the work have counted
        self._bar: Any = None
        self._task: Any = None
        self._found = 0  # steps that were done before; they say nothing of the rate
        self._begin: float | None = None
        self._spoke = 0.0
        self._tenths = 0

    def __enter__(self) -> Self:
        if self._shown and sys.stderr.isatty() and installed("rich"):
            self._bar = _bar(self._unit)
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=self._total, rate="", loss="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def find(self, steps: int) -> None:
        """So many of the steps were done before."""
        self._found += steps

    def advance_to(self, done: int, loss: float | None = None) -> None:
        if not self._shown:
            return
        now = time.monotonic()
        if self._begin is None:
            self._found, self._begin, self._spoke = done, now, now
        rate = (done - self._found) / max(1e-9, now - self._begin)
        shown_loss = "" if loss is None else f"loss {loss:.4f}"
        if self._bar is not None:
            self._bar.update(
                self._task, completed=done, rate=f"{rate:.1f} {self._unit}/s", loss=shown_loss
            )
        elif (
            done * 10 // self._total > self._tenths
            and done > self._found
            and now >= self._spoke + QUIET_SECONDS
        ):
            self._tenths, self._spoke = done * 10 // self._total, now
            left = (self._total - done) / rate
            line = (
                f"{self._title}: {done}/{self._total}  {shown_loss}  {rate:.1f} "
                f"{self._unit}/s  {left:.0f} s left"
            )
            print(line, file=sys.stderr, flush=True)


def _bar(unit: str) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit + "s"),
        TextColumn("{task.fields[loss]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
