"""A wish to stop: the first SIGINT or SIGTERM is noted and heeded at the next good moment, the
second kills at once.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, ClassVar, Self

PATIENCE = 8.0  # seconds that a step may take after SIGTERM; schedulers kill after some 30
_SHOW_CURSOR = (
    "\x1b[?25h"  # a progress bar hides it, and a second signal leaves no time to mend that
)


class Stop:
    """While it is entered, signals set `number` instead of ending the process.

    A signal that the process was told to ignore (as under nohup) stays ignored. Outside the main
    thread no signal arrives, and only `ask_to_stop` stops. A single step can keep the main thread
    busy for minutes, so another thread answers signals meanwhile: it calls `overdue` if SIGTERM
    was not heeded for a while, and ends the process at a second signal.
    """

    _current: ClassVar[Stop | None] = None

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet  # whether nothing is said when a signal arrives
        self.number: int | None = None
        self.overdue: Callable[[int], None] | None = None
        self._before: dict[int, Any] = {}
        self._outer: Stop | None = None
        self._pipe: int | None = None
        self._wakeup_before = -1

    def __enter__(self) -> Self:
        self._outer, Stop._current = Stop._current, self
        if threading.current_thread() is threading.main_thread():
            self._listen()
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
        if self._pipe is not None:
            signal.set_wakeup_fd(self._wakeup_before)
            os.close(self._pipe)
        self.overdue = None
        Stop._current = self._outer

    def _listen(self) -> None:
        """The number of every signal goes into a pipe at once, whatever the main thread does."""
        numbers, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self._wakeup_before = signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)
        threading.Thread(target=self._answer, args=(numbers,), daemon=True).start()

    def _answer(self, numbers: int) -> None:
        asked: int | None = None
        late = False
        while True:
            patience = PATIENCE if asked == signal.SIGTERM and not late else None
            if not select.select([numbers], [], [], patience)[0]:
                late = True
                self.heed_late(signal.SIGTERM)
                continue
            byte = os.read(numbers, 1)
            if not byte:
                os.close(numbers)
                return
            if byte[0] not in self._before:
                continue
            if asked is not None:
                os._exit(128 + byte[0])
            asked = byte[0]
            if not self.quiet:
                _say_finishing(asked)

    def heed_late(self, number: int) -> None:
        """Stop in the middle of a step, where the work knows how to."""
        if self.overdue is not None:
            self.overdue(number)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.number = number
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)


def _say_finishing(number: int) -> None:
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
    stop = Stop._current
    if stop is None:
        return False
    stop.number = number
    late = threading.Timer(PATIENCE, stop.heed_late, (number,))
    late.daemon = True
    late.start()
    return True


def name(number: int) -> str:
    return signal.Signals(number).name
