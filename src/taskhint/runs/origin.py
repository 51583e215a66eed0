"""A run that starts from a checkpoint of another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from taskhint.recipes.recipe import Origin, Recipe
from taskhint.runs.checkpoint import WEIGHTS, Checkpoint
from taskhint.runs.run import load
from taskhint.system.errors import UserError

# What a branch may change: how long it trains, at which rate, and what changes no weight.
FREE = {"name", "scale", "steps", "warmup_steps", "learning_rate", "log_every"}


def branched(recipe: Recipe, source: Path, out: Path) -> Recipe:
    """The recipe with the newest checkpoint of another run as its origin.

    Updates up to there are those of the other run, under its own schedule; data goes on where it
    left off. Where `out` holds a branch of that run already, its origin stays.
    """
    run = load(source)
    different = [
        key
        for key in recipe.differences(run.recipe)
        if key not in FREE and not key.startswith("origin")
    ]
    if different:
        raise UserError(
            f"--from {source}: the recipe differs in {', '.join(different[:4])}; a branch may "
            f"differ in {', '.join(sorted(FREE))} alone"
        )
    if (out / "recipe.json").exists():
        there = load(out).recipe.origin
        if there is not None and there.recipe == run.recipe.fingerprint():
            return replace(recipe, origin=there)
    checkpoint = run.checkpoint
    if not 0 < checkpoint.step < recipe.steps:
        raise UserError(
            f"--from {source}: it has made {checkpoint.step} updates; a branch needs more than "
            f"that many steps, got steps={recipe.steps}"
        )
    weights = checkpoint.manifest()[WEIGHTS].sha256
    origin = Origin(str(source), checkpoint.step, run.recipe.fingerprint(), weights)
    return replace(recipe, origin=origin)


def origin_checkpoint(origin: Origin) -> Checkpoint:
    """The checkpoint that is meant; refused unless recipe and weights are those noted."""
    run = load(origin.path)
    for checkpoint in run.checkpoints():
        if checkpoint.step == origin.step:
            problem = checkpoint.damage(run.recipe)
            if problem is not None:
                raise UserError(f"{checkpoint.path} is damaged: {problem}")
            if checkpoint.manifest()[WEIGHTS].sha256 == origin.weights:
                return checkpoint
    raise UserError(f"{origin.path} has no longer the checkpoint of step {origin.step}")
