"""Where the time of our training step goes, by what the operators do, from torch's profiler."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

from torch.profiler import ProfilerActivity, profile

from benchmarks.timing import say
from benchmarks.training import BATCH_SIZE, MODELS, new_model, our_step, prepare
from taskhint.model.config import ModelConfig
from taskhint.tasks import Sort

STEPS = 5
SHOWN = 12

# The first line whose word occurs in an operator's name says what it does.
KINDS = (
    ("optimiser", ("Optimizer", "adam", "zero_grad", "_foreach")),
    ("attention products", ("bmm",)),
    ("attention in one kernel", ("scaled_dot_product", "flash_attention")),
    ("linear maps", ("::mm", "addmm", "linear")),
    ("softmax and loss", ("softmax", "nll_loss", "cross_entropy")),
    ("norms", ("layer_norm",)),
    ("activation", ("gelu", "relu")),
    ("embedding", ("embedding",)),
    ("attention's own work", ("GroupedAttention",)),
    ("gathering rows", ("index", "gather", "scatter")),
    ("copies", ("copy_", "clone", "cat", "stack", "fill_", "zero_", "contiguous")),
    ("allocation", ("empty", "zeros", "ones", "resize")),
    ("sums and products of elements", ("add", "mul", "sum", "sub", "div")),
)


def measure(steps: int | None = None) -> dict[str, Any]:
    """The document under "profile"."""
    return {
        f"width-{width}": profile_model(model, steps or STEPS) for width, model in MODELS.items()
    }


def profile_model(config: ModelConfig, steps: int, batch_size: int = BATCH_SIZE) -> dict[str, Any]:
    """Shares of the time inside torch's operators, by kind, and the operators that take most."""
    task = Sort()
    step = our_step(new_model(config, task), task.kind, prepare(task, batch_size))
    say(f"profile, width {config.width}")
    step(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the profiler warns about its own later versions
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            for number in range(steps):
                step(number)
        events = list(profiler.key_averages())
    spent = {
        event.key: event.self_cpu_time_total for event in events if event.self_cpu_time_total > 0
    }
    calls = {event.key: event.count / steps for event in events}
    whole = sum(spent.values())
    kinds: Counter[str] = Counter()
    for name, microseconds in spent.items():
        kinds[kind_of(name)] += microseconds / whole
    top = sorted(spent, key=lambda name: -spent[name])[:SHOWN]
    return {
        "milliseconds": whole / steps / 1000,
        "shares": dict(kinds.most_common()),
        "operators": {name: {"share": spent[name] / whole, "calls": calls[name]} for name in top},
        "batch_size": batch_size,
    }


def kind_of(operator: str) -> str:
    return next(
        (kind for kind, words in KINDS if any(word in operator for word in words)), "other"
    )
