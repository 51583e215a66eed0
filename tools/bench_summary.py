"""The table that opens docs/performance.md, from results/bench.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taskhint.system.tables import markdown_table


def summary(results: Mapping[str, Any]) -> str:
    return markdown_table(["", "ours"], list(_rows(results)))


def _rows(results: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, one in results["train"].items():
        yield [f"rate of training, {_words(name)}", _beside(one["against"])]
        share = 100 * one["of_limit"]
        yield [f"training's share of the roofline, {_words(name)}", f"{share:.0f}%"]
    for name, one in results["evaluate"].items():
        if one["against"]:
            model = f"{_words(name)}, {one['weights']}"
            yield [f"rate of evaluation, {model}", _beside(one["against"])]
    data = results["data"]["sort"]
    rate, share = data["ours"] / 1e6, 100 * data["of_training_step"]
    yield [
        "making data on one core",
        f"{rate:.1f} million examples a second: {share:.1f}% of a training step",
    ]


def _words(name: str) -> str:
    """length-100-trained -> length 100"""
    return " ".join(name.split("-")[:2])


def _beside(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{ratio:.1f} × {who}" for who, ratio in ratios.items())
