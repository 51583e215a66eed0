"""Study length generalization in transformers: train on short inputs, measure on long ones, see
why.

    import taskhint
    run = taskhint.train("sort/tempered", out="runs/tempered")
    curve = taskhint.evaluate(run, lengths=[20, 50, 100], examples=1000)
    run.solve([5, 17, 43, 17])

torch and everything that needs it is imported when a name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "train": "taskhint.training.loop",
    "evaluate": "taskhint.evaluation.exact",
    "load": "taskhint.runs.run",
    "find_recipe": "taskhint.recipes",
    "recipe_names": "taskhint.recipes",
    "Recipe": "taskhint.recipes.recipe",
    "Hint": "taskhint.recipes.recipe",
    "Adam": "taskhint.recipes.optimisers",
    "Muon": "taskhint.recipes.optimisers",
    "ModelConfig": "taskhint.model.config",
    "Task": "taskhint.tasks",
    "Examples": "taskhint.tasks",
    "Vocab": "taskhint.tasks.vocab",
    "RandomBits": "taskhint.tasks.random_bits",
    "Dataset": "taskhint.data.dataset",
    "Batch": "taskhint.data.batch",
    "make_batch": "taskhint.data.batch",
    "Decoder": "taskhint.model.decoder",
    "Trace": "taskhint.model.trace",
    "greedy": "taskhint.model.decoding",
    "Run": "taskhint.runs.run",
    "LengthCurve": "taskhint.evaluation.curve",
    "UserError": "taskhint.system.errors",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'taskhint' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
