"""Tasks and hints: random bits in, prompts and answers out. NumPy only; one file per family of
tasks.
"""

from __future__ import annotations

from taskhint.tasks.addition import Addition, AdditionScratchpad, CarryOnly, NoCarry
from taskhint.tasks.arrays import ArrayTask
from taskhint.tasks.bits import Majority, Parity, ParityScratchpad
from taskhint.tasks.copying import Copy, CopyRepeats, Next, Reverse
from taskhint.tasks.counting import CountUp, Mode
from taskhint.tasks.dyck import Dyck
from taskhint.tasks.flip_flop import FlipFlop
from taskhint.tasks.increment import Carry, Increment
from taskhint.tasks.inputs import Copies, Distinct, DistinctNear, Inputs, Mixture, Restricted
from taskhint.tasks.lengths import Cut, EvenLengths, Lengths, Primed, Skewed
from taskhint.tasks.multiplication import Multiplication, MultiplicationScratchpad
from taskhint.tasks.recall import Recall
from taskhint.tasks.sorting import Count, Fill, Restriction, Sort, Successor
from taskhint.tasks.task import (
    Examples,
    SymbolTask,
    Task,
    delimited,
    hints_for,
    steps_from_delimiter,
)
from taskhint.tasks.theory import Theory

__all__ = [
    "Addition",
    "AdditionScratchpad",
    "ArrayTask",
    "Carry",
    "CarryOnly",
    "Copies",
    "Copy",
    "CopyRepeats",
    "Count",
    "CountUp",
    "Cut",
    "Distinct",
    "DistinctNear",
    "Dyck",
    "EvenLengths",
    "Examples",
    "Fill",
    "FlipFlop",
    "Increment",
    "Inputs",
    "Lengths",
    "Majority",
    "Mixture",
    "Mode",
    "Multiplication",
    "MultiplicationScratchpad",
    "Next",
    "NoCarry",
    "Parity",
    "ParityScratchpad",
    "Primed",
    "Recall",
    "Restricted",
    "Restriction",
    "Reverse",
    "Skewed",
    "Sort",
    "Successor",
    "SymbolTask",
    "Task",
    "Theory",
    "delimited",
    "hints_for",
    "steps_from_delimiter",
]
