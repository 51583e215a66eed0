"""The same recipe gives the same weights, to the last bit, as version 0.1 gave; and its runs go on
to the same bytes.

The hashes were made before the package was rearranged. They hold for one processor and version of
torch, by name.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from taskhint.recipes import find_recipe, increment, sort
from taskhint.runs.environment import current
from taskhint.runs.run import Run, load
from taskhint.training.loop import train

DATA = Path(__file__).parents[1] / "frozen"
SINCE = {"sort/no-decay"}  # recipes that are younger than the file
KNOWN = json.loads((DATA / "weights.json").read_text())
LAST = {
    "weights.safetensors": "f92d6039dcaa34b51c4a20f4770ab0afe57025ddc702d1a988b83b72ece9ebf6",
    "optimiser.safetensors": "4612cd677198325ee436558ca38ca71e5b7cc93b2dfb823d4ea6e300952a90b1",
    "state.json": "0f1827ea55275fe832cf7b5180bd0c853129c12aa3d1c4bdc8955741b99cb548",
    "manifest.json": "3df6cd4333ff0783c27fc433963a5ce7e4797ac2bfa65a24e047d1443381ba93",
}
METRICS = "6d0712706186c6fc594e0884c70649216e014703ff8ce1dad5189cb4f5aae870"
PLACE = ("processor", "instructions", "torch")
here = pytest.mark.skipif(
    any(getattr(current(), name) != KNOWN[name] for name in PLACE),
    reason=f"the hashes are those of {', '.join(KNOWN[name] for name in PLACE)}",
)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def weights_of(run: Run) -> str:
    total = hashlib.sha256()
    for name, value in run.model.state_dict().items():
        total.update(name.encode())
        total.update(value.numpy().tobytes())
    return total.hexdigest()


def test_every_named_recipe_of_then_is_known() -> None:
    now = {entry.name for entry in (*sort.ENTRIES, *increment.ENTRIES)}
    assert now - SINCE == {key.split()[0] for key in KNOWN["weights"]}


@here
@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("key", KNOWN["weights"])
def test_weights_are_the_same_to_the_bit(tmp_path: Path, key: str, count: int) -> None:
    name, *settings = key.split()
    recipe = find_recipe(name).with_steps(60).with_settings(settings)
    assert recipe.fingerprint() == KNOWN["weights"][key]["fingerprint"]
    torch.set_num_threads(count)
    assert weights_of(train(recipe, tmp_path / "run")) == KNOWN["weights"][key][f"threads-{count}"]


@here
@pytest.mark.usefixtures("threads")
def test_a_run_of_then_goes_on_to_the_same_bytes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    torch.set_num_threads(1)
    run = load(shutil.copytree(DATA / "run-of-0.1", tmp_path / "run"))
    train(run.recipe, run.path)
    last = run.path / "checkpoints" / "step-00000060"
    assert {path.name: sha256(path.read_bytes()) for path in last.iterdir()} == LAST
    assert sha256((run.path / "metrics.jsonl").read_bytes()) == METRICS
    assert "another environment" in capfd.readouterr().err
