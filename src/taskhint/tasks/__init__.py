"""Tasks and hints: random bits in, prompts and answers out. NumPy only; one file per family of
tasks.
"""

from __future__ import annotations

from taskhint.tasks.increment import Carry, Increment
from taskhint.tasks.inputs import Copies, Distinct, Inputs, Mixture
from taskhint.tasks.lengths import EvenLengths, Lengths, Skewed
from taskhint.tasks.sorting import Count, Fill, Sort, Successor
from taskhint.tasks.task import Examples, SymbolTask, Task, delimited, hints_for

__all__ = [
    "Carry",
    "Copies",
    "Count",
    "Distinct",
    "EvenLengths",
    "Examples",
    "Fill",
    "Increment",
    "Inputs",
    "Lengths",
    "Mixture",
    "Skewed",
    "Sort",
    "Successor",
    "SymbolTask",
    "Task",
    "delimited",
    "hints_for",
]
