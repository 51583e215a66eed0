"""A transformer that sorts by construction: every weight is set by hand, through named
coordinates.

It is the paper's depth-2, two-head construction with its errors mended (docs/construction.md), in
the Decoder that training uses, saved as an ordinary run.

    run = construct("runs/constructed", symbols=100, max_length=1000)
    run.solve([5, 17, 43, 17])

| part | what it does |
|---|---|
| block 1, head 0 | every token looks for ⊥: "after ⊥" |
| block 1, head 1 | candidates: ⊥ finds the smallest symbol of the input, a symbol finds itself |
| block 1, MLP | marks a symbol by +1 before ⊥ and -1 after it, exactly; cleans up |
| block 2, head 0 | averages the marks of a symbol's own kind: (in - out) / (in + out) copies |
| block 2, head 1 | a symbol finds the smallest one that is larger |
| block 2, MLP | every position but ⊥ drops its candidates |
| unembedding | symbol b scores candidate b + remaining b + successor b |

Shapes: q symbols, V = q + 3 tokens, D width, K = q + 1 head width (one dimension per symbol and
one for ⊥).
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch
from torch import Tensor

from taskhint.construct.coordinates import Coordinates
from taskhint.construct.plan import Plan, make_plan
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.softmax import LogVisible
from taskhint.recipes.optimisers import Adam
from taskhint.recipes.recipe import Recipe
from taskhint.runs.run import Run, check_memory, create, save_checkpoint
from taskhint.system.errors import UserError
from taskhint.tasks import Sort
from taskhint.tasks.lengths import Skewed

Weights = dict[str, Tensor]
"""The decoder's parameters by name, written in place."""

NAME = "construct/sort"
DELIMITER_HEAD, CANDIDATES_HEAD = 0, 1
REMAINING_HEAD, SUCCESSOR_HEAD = 0, 1


def construct(
    out: str | os.PathLike[str],
    symbols: int = 100,
    max_length: int = 1000,
    layer_norm: bool = False,
    dtype: str = "float32",
) -> Run:
    """Write the model that sorts sequences of 1..symbols up to max_length as a run directory."""
    plan = make_plan(symbols, max_length, layer_norm, dtype)
    recipe = recipe_for(plan)
    check_memory(recipe, copies=3)  # the weights, and what saving or loading them takes
    run = create(Path(out), recipe)
    save_checkpoint(run, 0, dict(build(plan).named_parameters()), optimiser={})
    return Run(run.path, run.recipe)


def recipe_for(plan: Plan) -> Recipe:
    """What stands in the run's recipe.json. There is no training, so what it says of it means
    nothing.
    """
    coordinates = plan.coordinates
    model = ModelConfig(
        width=coordinates.width,
        heads=2,
        depth=2,
        mlp_width=3 * coordinates.symbols + 1,
        head_width=coordinates.symbols + 1,
        activation="relu",
        norm="after" if coordinates.mirrored else "none",
        temperature=LogVisible(),
        dtype=plan.dtype,
    )
    return Recipe(
        name=NAME,
        scale="pocket",
        task=Sort(
            lengths=Skewed(1, plan.max_length, plan.max_length), symbols=coordinates.symbols
        ),
        model=model,
        optimiser=Adam(),
        learning_rate=1e-5,
        batch_size=1,
        steps=1,
        warmup_steps=0,
        dataset_size=1,
    )


def coordinates_of(run: Run) -> Coordinates:
    """The names of a constructed run's coordinates, for whoever looks into its hidden states."""
    if run.recipe.name != NAME or not isinstance(run.task, Sort):
        raise UserError(f"{run.path} is not a constructed run; its coordinates have no names")
    mirrored = run.recipe.model.norm == "after"
    width = run.recipe.model.width
    return Coordinates(run.task.symbols, width // 2 if mirrored else width, mirrored)


@torch.no_grad()
def build(plan: Plan) -> Decoder:
    """The decoder with all of its weights set."""
    recipe = recipe_for(plan)
    decoder = Decoder(recipe.model, recipe.task.vocab.size, [recipe.task.kind])
    weights: Weights = dict(decoder.named_parameters())
    for name, value in weights.items():
        value.fill_(
            1.0 if name.endswith(".after.weight") else 0.0
        )  # the norms neither scale nor shift
    _set_embedding(weights, plan)
    _set_first_attention(weights, plan)
    _set_first_mlp(weights, plan)
    _set_second_attention(weights, plan)
    _set_second_mlp(weights, plan)
    _set_unembedding(weights, plan)
    return decoder


def _set_embedding(weights: Weights, plan: Plan) -> None:
    at = plan.coordinates
    table = weights["embedding.weight"][: at.symbols + 1]
    table[:, at.token] = plan.unit_before * torch.eye(at.symbols + 1)
    _mirror(table.T, at)


def _set_first_attention(weights: Weights, plan: Plan) -> None:
    at, q = plan.coordinates, plan.coordinates.symbols
    each = torch.eye(q + 1)
    maps, out = _heads(weights, plan, 0, plan.unit_before)

    query, key, value = maps[:, DELIMITER_HEAD]
    query[q, at.token] = plan.own
    key[q, q] = value[q, q] = 1.0
    out[at.after, DELIMITER_HEAD, q] = 1.0

    query, key, value = maps[:, CANDIDATES_HEAD]
    query[:, at.token] = plan.own * each
    query[:, q] = torch.cat([_ranks(q), _below_all(q)])  # ⊥ asks for the smallest symbol
    key[:, at.token] = value[:, at.token] = each
    out[at.candidate, CANDIDATES_HEAD] = each[:q]
    _mirror(weights["blocks.0.attention.out.weight"], at)


def _set_first_mlp(weights: Weights, plan: Plan) -> None:
    """No biases and no thresholds near 1: whatever rounding or leaks there were, symbols get a
    mark of exactly ±1.

    mark b      += 2 relu(token b - 2 after ⊥) - relu(token b)
    candidate b += relu(token b) - relu(candidate b - token ⊥)
    after ⊥     -= relu(after ⊥)
    """
    at, q = plan.coordinates, plan.coordinates.symbols
    up, down, each = (
        weights["blocks.0.mlp.up.weight"],
        weights["blocks.0.mlp.down.weight"],
        torch.eye(q),
    )
    before, here, found = slice(0, q), slice(q, 2 * q), slice(2 * q, 3 * q)
    up[before, :q] = up[here, :q] = up[found, at.candidate] = each
    up[before, at.after] = -2.0
    up[found, q] = -1.0
    up[-1, at.after] = 1.0
    down[at.mark, before], down[at.mark, here] = 2.0 * each, -each
    down[at.candidate, here], down[at.candidate, found] = each, -each
    down[at.after, -1] = -1.0
    _mirror(down, at)


def _set_second_attention(weights: Weights, plan: Plan) -> None:
    at, q = plan.coordinates, plan.coordinates.symbols
    each = torch.eye(q + 1)
    maps, out = _heads(weights, plan, 1, plan.unit_after)

    query, key, value = maps[:, REMAINING_HEAD]
    query[:, at.token] = plan.own * each
    key[:, at.token] = each
    value[:q, at.mark] = plan.remaining * torch.eye(q)
    out[at.remaining, REMAINING_HEAD] = each[:q]

    query, key, value = maps[:, SUCCESSOR_HEAD]
    larger = torch.ones(q, q).tril(-1).bool()  # [b, a]: b is larger than a
    query[:q, :q] = torch.where(larger, _ranks(q)[:, None], _below_all(q))
    query[q, :q] = _below_all(q)
    query[q, q] = plan.own  # ⊥ has its answer already and looks at itself
    key[:, at.token] = each
    value[:q, at.token] = plan.successor * each[:q]
    out[at.successor, SUCCESSOR_HEAD] = each[:q]
    _mirror(weights["blocks.1.attention.out.weight"], at)


def _set_second_mlp(weights: Weights, plan: Plan) -> None:
    at, q = plan.coordinates, plan.coordinates.symbols
    up, down = weights["blocks.1.mlp.up.weight"], weights["blocks.1.mlp.down.weight"]
    up[:q, at.candidate] = torch.eye(q)
    up[:q, q] = -1.0  # off at ⊥: no candidate is larger than "token ⊥"
    down[at.candidate, :q] = -torch.eye(q)
    _mirror(down, at)


def _set_unembedding(weights: Weights, plan: Plan) -> None:
    at = plan.coordinates
    rows = weights["heads.sort.weight"][: at.symbols]
    for part in (at.candidate, at.remaining, at.successor):
        rows[:, part] = torch.eye(at.symbols)
    _mirror(rows.T, at)


def _heads(weights: Weights, plan: Plan, block: int, unit: float) -> tuple[Tensor, Tensor]:
    """(3, H, K, D) query, key and value maps and (D, H, K) output maps of a block's heads, after
    setting its β.

    Queries and keys come in units and their product is divided by √K: β undoes both, so that
    logits are β·ln m times what stands in the maps.
    """
    size = plan.coordinates.symbols + 1
    weights[f"blocks.{block}.attention.temperature.beta"].fill_(
        plan.beta * math.sqrt(size) / unit**2
    )
    maps = weights[f"blocks.{block}.attention.qkv"].view(3, 2, size, -1)
    return maps, weights[f"blocks.{block}.attention.out.weight"].view(-1, 2, size)


def _ranks(q: int) -> Tensor:
    """(q,) one less from each symbol to the next larger one. Centred: small numbers are rounded
    less.
    """
    return (q - 1) / 2 - torch.arange(q)


def _below_all(q: int) -> Tensor:
    """(1,) one less than the rank of the largest symbol."""
    return _ranks(q)[-1:] - 1.0


def _mirror(rows: Tensor, at: Coordinates) -> None:
    """Make the second half of the coordinates the negative of the first, (D, ...)."""
    if at.mirrored:
        rows[at.half :] = -rows[: at.half]
