"""Tasks and hints. A new one is one file and one line here."""

from __future__ import annotations

from taskhint.tasks.increment import Carry, Increment
from taskhint.tasks.sorting import Copies, Count, Fill, Mixture, Sort, Successor
from taskhint.tasks.task import Examples, Task

TASKS: dict[str, type[Task]] = {
    task.kind: task
    for task in (
        Sort,
        Successor,
        Count,
        Fill,
        Increment,
        Carry,
    )
}

# The hints that are declared beside each main task, in the order in which they take their turns.
HINTS: dict[str, tuple[type[Task], ...]] = {
    "sort": (Successor, Count, Fill),
    "increment": (Carry,),
}

__all__ = [
    "HINTS",
    "TASKS",
    "Carry",
    "Copies",
    "Count",
    "Examples",
    "Fill",
    "Increment",
    "Mixture",
    "Sort",
    "Successor",
    "Task",
]
