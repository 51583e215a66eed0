"""The paper's experiments and our own as data, and what is found of them in results."""

from __future__ import annotations

from taskhint.experiments import field
from taskhint.experiments.experiment import Experiment
from taskhint.experiments.ours import best, desk, desk_best, hints, peers
from taskhint.experiments.paper import increment, sort
from taskhint.system.errors import UserError, nearest
from taskhint.system.plugins import imported_modules

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *sort.EXPERIMENTS,
        *best.EXPERIMENTS,
        *increment.EXPERIMENTS,
        *hints.EXPERIMENTS,
        *peers.EXPERIMENTS,
        *desk.EXPERIMENTS,
        *desk_best.EXPERIMENTS,
        *field.EXPERIMENTS,
    )
}
GROUPS: dict[str, tuple[Experiment, ...]] = {field.GROUP: field.EXPERIMENTS}


def find_experiment(name: str, source: str = "") -> Experiment:
    """One of the package's own, or one that an imported file or module has; `source` is where it
    came from.
    """
    known = {**EXPERIMENTS, **{one.name: one for one in _imported()}}
    if name not in known:
        help_ = f"add --import {source}" if source else nearest(name, known)
        raise UserError(f"unknown experiment {name!r}; {help_}")
    return known[name]


def source_of(experiment: Experiment) -> str:
    """The file or module that an experiment was imported from; nothing for the package's own."""
    return _imported().get(experiment, "")


def _imported() -> dict[Experiment, str]:
    return {
        value: source
        for source, module in imported_modules().items()
        for value in vars(module).values()
        if isinstance(value, Experiment) and EXPERIMENTS.get(value.name) is not value
    }
