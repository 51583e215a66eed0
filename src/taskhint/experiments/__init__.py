"""The paper's experiments as data, and what is found of them in a directory of results."""

from __future__ import annotations

from taskhint.experiments.experiment import Experiment
from taskhint.experiments.ours_best import EXPERIMENTS as BEST
from taskhint.experiments.ours_hints import EXPERIMENTS as HINTS
from taskhint.experiments.paper_increment import EXPERIMENTS as INCREMENT
from taskhint.experiments.paper_sort import EXPERIMENTS as SORT
from taskhint.system.errors import UserError, nearest

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in (*SORT, *BEST, *INCREMENT, *HINTS)
}


def find_experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise UserError(f"unknown experiment {name!r}; {nearest(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]
