"""What judging test sequences costs, against torch's own counter on the device's way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from torch.utils.flop_counter import FlopCounterMode

from taskhint.data.dataset import fresh_examples
from taskhint.evaluation.exact import right_answers
from taskhint.experiments.experiment import PAPER_EXAMPLES
from taskhint.experiments.paper import increment, sort
from taskhint.model.config import ModelConfig
from taskhint.model.decoder import Decoder
from taskhint.model.positions import Rope
from taskhint.recipes import find_recipe
from taskhint.training import cost


@pytest.mark.parametrize("positions", [None, Rope()], ids=["none", "rope"])
@pytest.mark.parametrize("name", ["sort/standard", "increment/standard"])
def test_judging_costs_what_torch_counts(name: str, positions: Rope | None) -> None:
    model = ModelConfig(width=16, heads=2, mlp_width=24, depth=3)
    recipe = replace(find_recipe(name), model=model)
    if positions is not None:
        recipe = recipe.change(positions=positions)
    task, examples = recipe.task, 1000
    decoder = Decoder(recipe.model, task.vocab.size, [task]).to("meta").eval()
    with FlopCounterMode(display=False) as counter:
        right_answers(decoder, task, fresh_examples(task, 0, 9, 0, examples))
    once = cost.symbol_flops(recipe.model, task.vocab.size)
    each = cost.sequence_flops(recipe, 9)
    # A last carry makes an answer longer; how often, the cost model knows from draws of its own.
    exact = 1e-9 if name.startswith("sort") else 2e-3
    assert examples * each + once == pytest.approx(counter.get_total_flops(), rel=exact)


def test_the_model_counts_what_the_paper_tests() -> None:
    assert cost.TEST_EXAMPLES == PAPER_EXAMPLES
    assert cost.TEST_LENGTHS["sort"] == sort.LENGTHS
    assert cost.TEST_LENGTHS["increment"] == increment.EXPERIMENTS[0].lengths


def test_seconds_are_operations_over_the_rate() -> None:
    recipe = find_recipe("sort/standard")
    found = cost.measure({"x": recipe}, utilisation=0.5)["experiments"]["x"]
    work = sum(100_000 * cost.sequence_flops(recipe, n) for n in sort.LENGTHS)
    assert found["evaluation_flops"] == pytest.approx(work)
    assert found["evaluation_seconds"]["L4"] == pytest.approx(work / 30e12)
