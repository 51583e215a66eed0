"""Study length generalization in transformers: train on short inputs, measure on long ones.

    import taskhint
    run = taskhint.train("sort/tempered", out="runs/tempered")
    print(taskhint.evaluate(run, lengths=[20, 50, 100], examples=1000))
    run.solve([5, 17, 43, 17])

torch and everything that needs it is imported when a name is first used. Type checkers and editors
see every name at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from taskhint.data.batch import Batch as Batch
    from taskhint.data.batch import make_batch as make_batch
    from taskhint.data.dataset import Dataset as Dataset
    from taskhint.evaluation.exact import evaluate as evaluate
    from taskhint.evaluation.reach import reach as reach
    from taskhint.evaluation.table import ResultTable as ResultTable
    from taskhint.evaluation.table import results as results
    from taskhint.experiments.arm import Arm as Arm
    from taskhint.experiments.claims import AtLeast as AtLeast
    from taskhint.experiments.claims import AtMost as AtMost
    from taskhint.experiments.claims import Better as Better
    from taskhint.experiments.claims import NotBetter as NotBetter
    from taskhint.experiments.experiment import Experiment as Experiment
    from taskhint.experiments.experiment import Panel as Panel
    from taskhint.experiments.experiment import Published as Published
    from taskhint.experiments.quantity import Quantity as Quantity
    from taskhint.model.config import ModelConfig as ModelConfig
    from taskhint.model.decoder import Decoder as Decoder
    from taskhint.model.decoding import greedy as greedy
    from taskhint.model.edits import Edit as Edit
    from taskhint.model.edits import KnockOutHead as KnockOutHead
    from taskhint.model.edits import KnockOutMlp as KnockOutMlp
    from taskhint.model.edits import ReplaceStream as ReplaceStream
    from taskhint.model.edits import ScaleTemperature as ScaleTemperature
    from taskhint.model.positions import PositionHooks as PositionHooks
    from taskhint.model.positions import Positions as Positions
    from taskhint.model.softmax import Normaliser as Normaliser
    from taskhint.model.softmax import Temperature as Temperature
    from taskhint.model.softmax import TemperatureHook as TemperatureHook
    from taskhint.model.trace import Trace as Trace
    from taskhint.model.weights import Weight as Weight
    from taskhint.probe.mechanism import Mechanism as Mechanism
    from taskhint.probe.mechanism import Verdict as Verdict
    from taskhint.probe.probe import Probe as Probe
    from taskhint.probe.probe import Shown as Shown
    from taskhint.probe.traced import Traced as Traced
    from taskhint.recipes import find_recipe
    from taskhint.recipes import recipe_names as recipe_names
    from taskhint.recipes.curriculum import Alternate as Alternate
    from taskhint.recipes.curriculum import Curriculum as Curriculum
    from taskhint.recipes.curriculum import Grow as Grow
    from taskhint.recipes.curriculum import Prime as Prime
    from taskhint.recipes.curriculum import Update as Update
    from taskhint.recipes.optimisers import Adam as Adam
    from taskhint.recipes.optimisers import Muon as Muon
    from taskhint.recipes.optimisers import Optimiser as Optimiser
    from taskhint.recipes.recipe import Hint as Hint
    from taskhint.recipes.recipe import Recipe as Recipe
    from taskhint.runs.curve import LengthCurve as LengthCurve
    from taskhint.runs.reach import Reach as Reach
    from taskhint.runs.run import Run as Run
    from taskhint.runs.run import load as load
    from taskhint.runs.tracker import TrackedRun as TrackedRun
    from taskhint.runs.tracker import Tracker as Tracker
    from taskhint.sweeps.choose import choose as choose
    from taskhint.sweeps.status import status as status
    from taskhint.sweeps.sweep import Swept as Swept
    from taskhint.sweeps.sweep import sweep as sweep
    from taskhint.system.errors import UserError as UserError
    from taskhint.system.ranks import rank_correlation as rank_correlation
    from taskhint.system.settings import setting as setting
    from taskhint.tasks import ArrayTask as ArrayTask
    from taskhint.tasks import Copies as Copies
    from taskhint.tasks import Distinct as Distinct
    from taskhint.tasks import DistinctNear as DistinctNear
    from taskhint.tasks import EvenLengths as EvenLengths
    from taskhint.tasks import Examples as Examples
    from taskhint.tasks import Inputs as Inputs
    from taskhint.tasks import Lengths as Lengths
    from taskhint.tasks import Mixture as Mixture
    from taskhint.tasks import Skewed as Skewed
    from taskhint.tasks import SymbolTask as SymbolTask
    from taskhint.tasks import Task as Task
    from taskhint.tasks import Theory as Theory
    from taskhint.tasks import delimited as delimited
    from taskhint.tasks import steps_from_delimiter as steps_from_delimiter
    from taskhint.tasks.check import check_task as check_task
    from taskhint.tasks.random_bits import RandomBits as RandomBits
    from taskhint.tasks.vocab import Vocab as Vocab
    from taskhint.training.loop import train as train

    recipe = find_recipe

_NAMES = {
    "taskhint.data.batch": ("Batch", "make_batch"),
    "taskhint.data.dataset": ("Dataset",),
    "taskhint.runs.curve": ("LengthCurve",),
    "taskhint.evaluation.exact": ("evaluate",),
    "taskhint.evaluation.reach": ("reach",),
    "taskhint.evaluation.table": ("ResultTable", "results"),
    "taskhint.experiments.arm": ("Arm",),
    "taskhint.experiments.claims": ("AtLeast", "AtMost", "Better", "NotBetter"),
    "taskhint.experiments.experiment": ("Experiment", "Panel", "Published"),
    "taskhint.experiments.quantity": ("Quantity",),
    "taskhint.model.config": ("ModelConfig",),
    "taskhint.model.decoder": ("Decoder",),
    "taskhint.model.decoding": ("greedy",),
    "taskhint.model.edits": (
        "Edit",
        "KnockOutHead",
        "KnockOutMlp",
        "ReplaceStream",
        "ScaleTemperature",
    ),
    "taskhint.model.positions": ("PositionHooks", "Positions"),
    "taskhint.model.softmax": ("Normaliser", "Temperature", "TemperatureHook"),
    "taskhint.model.trace": ("Trace",),
    "taskhint.model.weights": ("Weight",),
    "taskhint.probe.mechanism": ("Mechanism", "Verdict"),
    "taskhint.probe.probe": ("Probe", "Shown"),
    "taskhint.probe.traced": ("Traced",),
    "taskhint.recipes": ("recipe", "recipe_names"),
    "taskhint.recipes.curriculum": ("Alternate", "Curriculum", "Grow", "Prime", "Update"),
    "taskhint.recipes.optimisers": ("Adam", "Muon", "Optimiser"),
    "taskhint.recipes.recipe": ("Hint", "Recipe"),
    "taskhint.runs.reach": ("Reach",),
    "taskhint.runs.run": ("Run", "load"),
    "taskhint.runs.tracker": ("TrackedRun", "Tracker"),
    "taskhint.sweeps.choose": ("choose",),
    "taskhint.sweeps.status": ("status",),
    "taskhint.sweeps.sweep": ("Swept", "sweep"),
    "taskhint.system.errors": ("UserError",),
    "taskhint.system.ranks": ("rank_correlation",),
    "taskhint.system.settings": ("setting",),
    "taskhint.tasks": (
        "ArrayTask",
        "Copies",
        "Distinct",
        "DistinctNear",
        "EvenLengths",
        "Examples",
        "Inputs",
        "Lengths",
        "Mixture",
        "Skewed",
        "SymbolTask",
        "Task",
        "Theory",
        "delimited",
        "steps_from_delimiter",
    ),
    "taskhint.tasks.check": ("check_task",),
    "taskhint.tasks.random_bits": ("RandomBits",),
    "taskhint.tasks.vocab": ("Vocab",),
    "taskhint.training.loop": ("train",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}
__all__ = ["__version__", *_HOMES]

if not TYPE_CHECKING:  # type checkers see the imports above, and that any other name is a mistake

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module 'taskhint' has no attribute {name!r}")
        from importlib import import_module

        found = getattr(import_module(_HOMES[name]), "find_recipe" if name == "recipe" else name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
