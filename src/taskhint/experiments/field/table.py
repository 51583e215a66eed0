"""The field's tasks under its position schemes, on equal terms: an experiment for every task.

    taskhint reproduce field --out DIR            all of them
    taskhint reproduce field-copy --out DIR       one

All arms of a task have one shape and one budget, whatever their scheme: see `note_of`. Nothing
longer than the training lengths is trained on or selects anything, but for the arms that are
called primed, and every seed counts.
"""

from __future__ import annotations

from typing import Any

from taskhint.experiments.claims import AtLeast, AtMost, Better, Claim
from taskhint.experiments.experiment import Experiment
from taskhint.experiments.field.row import GROUP, SHAPE, Row, lengths_of
from taskhint.tasks.lengths import EvenLengths

FIRST = ("none", "offset", "rope", "randomised", "alibi", "nape", "t5", "fire")
SCALED = (*FIRST, "none-ssmax", "offset-ssmax")
COUPLED = (*FIRST, "coupling", "windows")
NUMBERS = (*FIRST, "abacus", "coupling", "windows")
STEPS = ("none", "offset", "rope", "nape", "coupling", "windows")
BASELINES = ("none", "offset", "rope")
PLACED = ("offset", "rope")
GROWN = "lengths grow"
PRIMED = "primed (sees twice the length)"
SCRATCHPAD = "scratchpad"

PAIRS = {"lengths": EvenLengths(2, 10), "symbols": 100}  # the longest test asks for 50 keys

ROWS = (
    Row("copy", "copy/plain", (*COUPLED, "offset-ssmax")),
    Row("copy", "copy/next", PLACED, "hint next"),
    Row("copy-repeats", "copy-repeats/plain", COUPLED),
    Row("reverse", "reverse/plain", COUPLED),
    Row("addition", "addition/plain", NUMBERS),
    Row("addition", "addition/scratchpad", STEPS, SCRATCHPAD),
    Row("addition", "addition/carry-only", (*BASELINES, "coupling"), "hint carry"),
    Row("addition", "addition/grow", (*BASELINES, "coupling"), GROWN),
    Row("addition", "addition/prime", (*BASELINES, "coupling"), PRIMED),
    Row("multiplication", "multiplication/plain", NUMBERS),
    Row("multiplication", "multiplication/scratchpad", STEPS, SCRATCHPAD),
    Row("parity", "parity/plain", FIRST),
    Row("parity", "parity/scratchpad", STEPS, SCRATCHPAD),
    Row("parity", "parity/running", BASELINES, "hint running parity"),
    Row("majority", "majority/plain", FIRST),
    Row("mode", "mode/plain", SCALED),
    Row("count-up", "count-up/plain", FIRST),
    Row("recall", "recall/plain", (*FIRST, "offset-ssmax"), changes=PAIRS),
    Row("flip-flop", "flip-flop/plain", SCALED),
    Row("dyck-1", "dyck-1/plain", FIRST),
)

HOURS = 3  # see docs/field.md


def note_of(row: Row) -> str:
    return (
        f"Every arm has depth {SHAPE['depth']}, {SHAPE['heads']} heads, {row.budget} and Muon. "
        "Tasks differ in their budgets, the schemes of a task do not. Tables of learned positions "
        "have room for the longest test input. All tasks together take about "
        f"{HOURS} core hours for 3 seeds."
    )


def _arm(name: str, scheme: str) -> Any:
    return next(row for row in ROWS if row.name == name).arms[scheme]


def _claims() -> dict[str, tuple[Claim, ...]]:
    """What peers report and theory predicts, by family, at multiples of the training length."""
    steps, parity = _arm("field-parity-scratchpad", "windows"), _arm("field-parity", "none")
    addition, copy = _arm("field-addition", "windows"), _arm("field-copy", "offset-ssmax")
    return {
        "copy": (
            AtLeast(copy, 50, 95),
            AtLeast(_arm("field-copy", "offset"), 50, 95),
            Better(copy, _arm("field-copy", "none"), 50),
        ),
        "addition": (
            AtLeast(addition, 30, 95),
            Better(addition, _arm("field-addition", "none"), 30),
        ),
        "parity": (
            AtMost(parity, 40, 60),
            AtLeast(steps, 40, 90),
            Better(steps, parity, 40),
        ),
        "majority": (AtLeast(_arm("field-majority", "none"), 60, 95),),
        "mode": (AtLeast(_arm("field-mode", "none"), 60, 95),),
    }


def _experiments() -> tuple[Experiment, ...]:
    claims = _claims()
    return tuple(
        _experiment(family, claims.get(family, ()))
        for family in dict.fromkeys(row.family for row in ROWS)
    )


def _experiment(family: str, claims: tuple[Claim, ...]) -> Experiment:
    rows = [row for row in ROWS if row.family == family]
    return Experiment(
        name=f"{GROUP}-{family}",
        question=f"Which position schemes carry {family} over to longer inputs?",
        arms=[arm for row in rows for arm in row.arms.values()],
        lengths=lengths_of(rows[0].plain_recipe),
        claims=claims,
        note=note_of(rows[0]),
    )


EXPERIMENTS = _experiments()
