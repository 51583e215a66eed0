"""The paper's experiments as data, and what is found of them in a directory of results."""

from __future__ import annotations

from taskhint.errors import UserError, nearest
from taskhint.reproduce.best import EXPERIMENTS as BEST
from taskhint.reproduce.experiment import Experiment
from taskhint.reproduce.hints import EXPERIMENTS as HINTS
from taskhint.reproduce.increment import EXPERIMENTS as INCREMENT
from taskhint.reproduce.sort import EXPERIMENTS as SORT

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (*SORT, *BEST, *INCREMENT, *HINTS)}


def find_experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise UserError(f"unknown experiment {name!r}; {nearest(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]
