"""The tables of docs/clusters.md, from results/campaign.json: what was measured, and what follows
for 1 to 1,000 nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch

from taskhint.recipes import find_recipe, measured
from taskhint.recipes.recipe import Recipe
from taskhint.runs.run import new_decoder
from taskhint.system.lease import BEAT
from taskhint.system.tables import markdown_table
from taskhint.training.cost import GPUS, hours
from tools.campaign_readings import END

NODES = (1, 10, 100, 1000)
RUNS_PER_NODE = 8  # assumed: cores or GPUs of a node
STORAGE_RATE = 5000.0  # assumed: operations per second of a shared file system
GPU = "A100 80GB"


@dataclass(frozen=True)
class Costs:
    """What one run of a campaign costs, and what its parts can do."""

    runs: int
    hours: float  # of one run
    operations: float  # of one run's life, without heartbeats
    heartbeat: float  # operations of one
    driver_rate: float  # runs per second
    end_seconds: float  # of processor, for table, figure and report


@dataclass(frozen=True)
class Plan:
    """A campaign on so many nodes. A part that is needed for longer than training takes is the
    bottleneck, and decides the hours.
    """

    costs: Costs
    nodes: int

    @property
    def at_once(self) -> int:
        return min(self.costs.runs, self.nodes * RUNS_PER_NODE)

    @property
    def operations(self) -> float:
        beats = self.costs.runs * self.costs.hours * 3600 / BEAT
        return self.costs.runs * self.costs.operations + beats * self.costs.heartbeat

    @property
    def parts(self) -> dict[str, float]:
        """Hours for which each part is busy."""
        costs = self.costs
        return {
            "training": ceil(costs.runs / self.at_once) * costs.hours,
            "shared file system": self.operations / STORAGE_RATE / 3600,
            "driver": costs.runs / costs.driver_rate / 3600,
            "report": costs.end_seconds / 3600,
        }

    @property
    def bottleneck(self) -> str:
        return max(self.parts, key=lambda name: self.parts[name])

    @property
    def hours(self) -> float:
        """Everything but the report happens at the same time."""
        *others, report = self.parts.values()
        return max(others) + report

    @property
    def operations_per_second(self) -> float:
        return self.operations / (self.parts["training"] * 3600)


def tables(document: Mapping[str, Any]) -> str:
    return "\n".join([_readings(document), _one_run(document), *_plans(document)])


def _readings(document: Mapping[str, Any]) -> str:
    machine, runs = document["machine"], document["runs"]
    rows = [
        [
            name,
            *(f"{one[kind]:.1f}" for kind in ("seconds", "cpu_seconds")),
            f"{one['mib']:.0f}",
            f"{one['operations'] / runs:.1f}",
        ]
        for name, one in document["readings"].items()
    ]
    header = [f"{runs:,} run directories", "seconds", "of processor", "peak MiB"]
    header.append("storage operations per run")
    about = (
        f"{machine['processor']}, {machine['cores']} cores, load {machine['load']} at the start"
    )
    return f"{markdown_table(header, rows)}\nMeasured on: {about}.\n"


def _one_run(document: Mapping[str, Any]) -> str:
    one = document["one_run"]
    few = one["operations"]
    rows = [
        ["a run with 3 checkpoints, from lease to results", str(sum(few.values()))],
        ["each further checkpoint", f"{_per_checkpoint(one):.0f}"],
        ["a heartbeat, every 5 seconds", str(one["heartbeat"])],
    ]
    kinds = ", ".join(f"{kind} {count}" for kind, count in few.items())
    table = markdown_table(["storage operations of", "number"], rows)
    return f"{table}\nOf the first number: {kinds}.\n"


def _per_checkpoint(one: Mapping[str, Any]) -> float:
    few, many = one["operations"], one["operations_twice_the_checkpoints"]
    return (sum(many.values()) - sum(few.values())) / 3


def _plans(document: Mapping[str, Any]) -> list[str]:
    pocket, paper = find_recipe("sort/standard"), find_recipe("sort/standard", "paper")
    timed = measured("sort/standard")
    assert timed is not None
    return [
        _plan("pocket scale, one core each", document, pocket, timed.minutes / 60),
        _plan(f"paper scale, one {GPU} each", document, paper, hours(paper, GPUS[GPU])),
    ]


def _plan(title: str, document: Mapping[str, Any], recipe: Recipe, run_hours: float) -> str:
    costs = costs_of(document, recipe, run_hours)
    rows = []
    for plan in (Plan(costs, nodes) for nodes in NODES):
        idle = 1 - costs.runs * costs.hours / (plan.at_once * plan.parts["training"])
        rows.append(
            [
                f"{plan.nodes:,}",
                f"{plan.at_once:,}",
                _few_digits(plan.hours),
                f"{100 * idle:.0f}%",
                f"{plan.operations / 1e6:.1f}",
                f"{plan.operations_per_second:,.0f}",
                *(f"{60 * plan.parts[name]:.1f}" for name in ("shared file system", "driver")),
                plan.bottleneck,
            ]
        )
    header = ["nodes", "runs at once", "hours", "idle at the end", "million operations"]
    header += ["operations/s", "file system, min", "driver, min", "bottleneck"]
    results, weights = campaign_bytes(document, recipe)
    kept = f"results {results / 1e9:.2g} GB, checkpoints {weights / 1e9:,.0f} GB"
    first = f"{costs.runs:,} runs of `{recipe.name}` at {title}, {_few_digits(run_hours)} hours"
    return f"{first}; they leave {kept}.\n\n{markdown_table(header, rows)}"


def costs_of(document: Mapping[str, Any], recipe: Recipe, run_hours: float) -> Costs:
    one = document["one_run"]
    more = recipe.steps / recipe.checkpoint_every - 3
    return Costs(
        document["runs"],
        run_hours,
        sum(one["operations"].values()) + more * _per_checkpoint(one),
        one["heartbeat"],
        document["driver_runs_per_second"],
        document["readings"][END]["cpu_seconds"],
    )


def campaign_bytes(document: Mapping[str, Any], recipe: Recipe) -> tuple[float, float]:
    """Of all runs: what tells of them, and weights with the optimiser's state, as many times as
    checkpoints are kept.
    """
    sizes = document["one_run"]["bytes"]
    tensors = sizes["weights.safetensors"], sizes["optimiser.safetensors"]
    lines = recipe.steps / recipe.log_every / document["one_run"]["metrics_lines"]
    told = sum(size for name, size in sizes.items() if not name.endswith(".safetensors"))
    told += (lines - 1) * sizes["metrics.jsonl"]
    with torch.device("meta"):
        weights = sum(value.numel() for value in new_decoder(recipe).parameters())
    kept = recipe.keep_checkpoints * 4 * weights * sum(tensors) / tensors[0]
    return document["runs"] * told, document["runs"] * kept


def _few_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
