"""A run as a directory that transformers loads, and back.

config.json, model.safetensors          the model, with the recipe in the config
modeling_taskhint.py                    its code in one file, for those who have no taskhint
tokenizer.json, tokenizer_config.json   symbols and marks as words between spaces
README.md                               the model card
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from taskhint.ecosystem.card import model_card
from taskhint.ecosystem.one_file import one_file
from taskhint.ecosystem.schemes_taskhint import (
    COUPLINGS,
    NORMALISERS,
    POSITIONS,
    TEMPERATURES,
    coupled_ids,
)
from taskhint.ecosystem.tokenizer import tokenizer_files
from taskhint.recipes.recipe import Recipe
from taskhint.runs.checkpoint import Wanted, read_tensors
from taskhint.runs.run import Run, check_free, create, save_checkpoint, weight_shapes
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.settings import to_json
from taskhint.tasks.random_bits import TEST_STREAM, Ints, RandomBits
from taskhint.tasks.task import Task
from taskhint.tasks.vocab import PAD

CONFIG, WEIGHTS = "config.json", "model.safetensors"
CODE = "modeling_taskhint.py"
MODEL_TYPE = "taskhint"
LARGEST_COUPLING = 16  # tokens of an answer that share a place
PARTS = ("q", "k", "v")


def export_transformers(run: Run, out: Path) -> Path:
    """Write the run's newest weights as a model of transformers."""
    _check_out(out, run.recipe)
    config = model_config(run.recipe, run.checkpoint.step)
    weights = dict(split_weights(dict(run.model.named_parameters())))
    files = {
        WEIGHTS: safetensors.torch.save(weights, metadata={"format": "pt"}),
        CODE: one_file().encode(),
        **tokenizer_files(run.task.vocab),
        "README.md": model_card(run, sum(w.numel() for w in weights.values())).encode(),
        CONFIG: json_bytes(config),  # the last one, by which a whole directory is known
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_atomically(out / name, data)
    return out


def import_transformers(directory: Path, out: Path) -> Run:
    """A run of what `export_transformers` wrote; the weights may have been trained further."""
    where = directory / CONFIG
    if not where.is_file():
        raise UserError(f"{directory} has no {CONFIG}: it is no model of transformers")
    given = read_json(where)
    kept = given.get("taskhint") if isinstance(given, dict) else None
    if not isinstance(kept, dict) or not isinstance(kept.get("step"), int) or kept["step"] < 0:
        raise UserError(f"{where} is not of a model that taskhint exported")
    recipe = Recipe.from_json(kept.get("recipe"), f"{where}: recipe")
    _check_same(given, model_config(recipe, kept["step"]), where)
    wanted = weight_shapes(recipe)
    tensors = read_tensors(directory / WEIGHTS, dict(_split_shapes(wanted)))
    check_free(out, recipe)
    if (out / "recipe.json").exists():
        raise UserError(f"{out} holds a run already; choose another --out")
    run = create(out, recipe)
    save_checkpoint(run, kept["step"], _joined(tensors, wanted), {})
    return run


def model_config(recipe: Recipe, step: int) -> dict[str, Any]:
    """What `config.json` says of a recipe's model."""
    model, vocab = recipe.model, recipe.task.vocab
    _check_known(recipe)
    return {
        "architectures": ["TaskhintForCausalLM"],
        "auto_map": {
            "AutoConfig": "modeling_taskhint.TaskhintConfig",
            "AutoModelForCausalLM": "modeling_taskhint.TaskhintForCausalLM",
        },
        "model_type": MODEL_TYPE,
        "dtype": model.dtype,
        "hidden_size": model.width,
        "num_attention_heads": model.heads,
        "num_hidden_layers": model.depth,
        "intermediate_size": model.mlp_width,
        "head_dim": model.each_head,
        "vocab_size": vocab.size,
        "hidden_act": model.activation,
        "norm": model.norm,
        "qk_norm": model.qk_norm,
        "positions": to_json(model.positions),
        "attention_temperature": to_json(model.temperature),
        "normaliser": to_json(model.normaliser),
        "heads": [task.kind for task in recipe.tasks],
        "symbols": vocab.symbols,
        "delimiter_token_id": vocab.delimiter,
        "pad_token_id": vocab.pad if PAD in vocab.marks else None,
        "coupled": {task.kind: _coupling(task) for task in recipe.tasks}
        if model.positions.kind == "coupling"
        else {},
        "tie_word_embeddings": False,
        "taskhint": {"recipe": recipe.to_json(), "step": step},
    }


def _check_known(recipe: Recipe) -> None:
    """The exported code has the schemes of the package, not those of a user's own file."""
    model = recipe.model
    inner = getattr(model.positions, "scheme", model.positions)
    chosen = (
        ("positions", model.positions.kind, POSITIONS),
        ("positions", inner.kind, POSITIONS),
        ("temperature", model.temperature.kind, TEMPERATURES),
        ("normaliser", model.normaliser.kind, NORMALISERS),
    )
    for what, kind, known in chosen:
        if kind not in known:
            raise UserError(
                f"model.{what}={kind} is your own, and transformers cannot have it; "
                f"allowed: {', '.join(sorted(known))}"
            )


def _coupling(task: Task) -> dict[str, Any]:
    """The rule by which tokens of the task share a place, found on examples of several lengths."""
    trained = sorted(task.lengths.shares())
    lengths = sorted({*trained[:3], trained[len(trained) // 2], trained[-1]})
    rows = [task.make(RandomBits(0, TEST_STREAM, np.arange(2)), n).tokens for n in lengths]
    for before in COUPLINGS:
        for each in range(1, LARGEST_COUPLING + 1):
            rule = {"before": before, "each": each}
            if all(_fits(task, tokens, rule) for tokens in rows):
                return rule
    raise UserError(f"task {task.kind!r} couples tokens in a way that transformers cannot have")


def _fits(task: Task, tokens: Ints, rule: Mapping[str, Any]) -> bool:
    index = torch.arange(tokens.shape[1]).expand(len(tokens), -1)
    inputs = (tokens == task.vocab.delimiter).argmax(axis=1, keepdims=True)
    found = coupled_ids(rule, index, torch.from_numpy(inputs))
    return bool((found.numpy() == task.coupled(tokens)).all())


def split_weights(weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Weights by the names of transformers: queries, keys and values have a map each."""
    for name, value in weights.items():
        if name.endswith("attention.qkv"):
            for part, rows in zip(PARTS, value.detach().chunk(3), strict=True):
                yield f"{name.removesuffix('qkv')}{part}.weight", rows.contiguous()
        else:
            yield name, value.detach().contiguous()


def _split_shapes(wanted: Wanted) -> Iterator[tuple[str, tuple[Any, tuple[int, ...]]]]:
    for name, (dtype, shape) in wanted.items():
        if name.endswith("attention.qkv"):
            for part in PARTS:
                rows = (shape[0] // 3, shape[1])
                yield f"{name.removesuffix('qkv')}{part}.weight", (dtype, rows)
        else:
            yield name, (dtype, shape)


def _joined(tensors: Mapping[str, Tensor], wanted: Wanted) -> dict[str, Tensor]:
    return {
        name: torch.cat([tensors[f"{name.removesuffix('qkv')}{part}.weight"] for part in PARTS])
        if name.endswith("attention.qkv")
        else tensors[name]
        for name in wanted
    }


def _check_same(given: Mapping[str, Any], wanted: Mapping[str, Any], where: Path) -> None:
    """The shape must be that of the recipe: otherwise the run would be of another model."""
    ignored = ("architectures", "auto_map", "taskhint", "dtype")
    for name in sorted(wanted.keys() - set(ignored)):
        if given.get(name) != wanted[name]:
            raise UserError(
                f"{where}: {name} is {given.get(name)!r:.60}, but the recipe there says "
                f"{wanted[name]!r:.60}"
            )


def _check_out(out: Path, recipe: Recipe) -> None:
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; --out takes a directory")
    if not out.is_dir() or not any(out.iterdir()):
        return
    there = read_json(out / CONFIG) if (out / CONFIG).is_file() else None
    if not isinstance(there, dict) or there.get("model_type") != MODEL_TYPE:
        raise UserError(f"{out} is not empty and holds no exported model; choose another --out")
    kept = there.get("taskhint")
    if not isinstance(kept, dict) or kept.get("recipe") != recipe.to_json():
        raise UserError(f"{out} holds the model of another recipe; choose another --out")
