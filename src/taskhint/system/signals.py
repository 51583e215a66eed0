"""A wish to stop: the first SIGINT or SIGTERM is noted and heeded at the next good moment, the
second kills at once.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, ClassVar, Self

_SHOW_CURSOR = (
    "\x1b[?25h"  # a progress bar hides it, and a second signal leaves no time to mend that
)


class Stop:
    """While it is entered, signals set `number` instead of ending the process.

    A signal that the process was told to ignore (as under nohup) stays ignored. Outside the main
    thread no signal arrives, and only `ask_to_stop` stops.
    """

    _current: ClassVar[Stop | None] = None

    def __init__(self) -> None:
        self.number: int | None = None
        self._before: dict[int, Any] = {}
        self._outer: Stop | None = None

    def __enter__(self) -> Self:
        self._outer, Stop._current = Stop._current, self
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before if before is not None else signal.SIG_DFL)
        Stop._current = self._outer

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        asked_before, self.number = self.number is not None, number
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)
        if asked_before:
            return
        cursor = _SHOW_CURSOR if sys.stderr.isatty() else ""
        text = (
            f"{cursor}\ntaskhint: {name(number)}: finishing this step, then saving; a second "
            "one stops at once\n"
        )
        with suppress(OSError):  # whoever read it may be gone
            os.write(2, text.encode())  # print could meet itself half-way through another print


def ask_to_stop(number: int) -> bool:
    """As if a signal had arrived, but without a word, and a first real one still counts as the
    first.

    False if nothing is there that would heed it.
    """
    if Stop._current is None:
        return False
    Stop._current.number = number
    return True


def name(number: int) -> str:
    return signal.Signals(number).name
