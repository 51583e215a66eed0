"""The numbers of the probes stay what they were: a small file keeps them, and what is measured now
is compared with it.

    python -m tests.probe.test_probe_frozen   writes the file anew, if a number is to change
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from taskhint.construct import construct
from taskhint.report.probe_page import write_probe
from taskhint.runs.run import Run, create, new_decoder, save_checkpoint
from taskhint.tasks import Sort
from tests.conftest import small

FROZEN = Path(__file__).parents[1] / "frozen" / "probe_numbers.json"
SYMBOLS = 8


def write_run(folder: Path, name: str, recipe_name: str, **changes: object) -> Path:
    recipe = small(recipe_name, **changes)
    run = create(folder / name, recipe)
    save_checkpoint(run, 7, dict(new_decoder(recipe).named_parameters()), optimiser={})
    return run.path


@torch.no_grad()
def half_broken(folder: Path) -> Path:
    """A construction with noise: some of every mechanism holds."""
    run = construct(folder / "broken", symbols=SYMBOLS, max_length=20)
    weights = dict(run.model.named_parameters())
    draw = torch.Generator().manual_seed(0)
    for name in sorted(weights):
        noise = torch.randn(weights[name].shape, generator=draw)
        weights[name].add_(0.15 * noise * weights[name].abs())
    weights["blocks.1.attention.qkv"].view(3, 2, SYMBOLS + 1, -1)[2, 1, SYMBOLS // 2 :] *= 0.5
    save_checkpoint(Run(run.path, run.recipe), 1, weights, optimiser={})
    return run.path


def measure(folder: Path) -> dict[str, Any]:
    runs = [
        write_run(folder, "sort", "sort/tempered", task=Sort(symbols=SYMBOLS)),
        half_broken(folder),
        write_run(folder, "increment", "increment/standard"),
    ]
    out = folder / "out"
    write_probe([str(path) for path in runs], out, "3 1 7 3", [1, 3, 7], 25)
    return {p.parent.name: json.loads(p.read_text()) for p in sorted(out.glob("*/probe.json"))}


def differences(was: Any, now: Any, where: str = "") -> list[str]:
    """Where two documents differ; fractions may differ in their last digits."""
    if isinstance(was, dict) and isinstance(now, dict) and was.keys() == now.keys():
        return [line for key in was for line in differences(was[key], now[key], f"{where}/{key}")]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [line for k, (a, b) in pairs for line in differences(a, b, f"{where}/{k}")]
    if isinstance(was, float) and isinstance(now, float):
        same = now == pytest.approx(was, rel=2e-5, abs=1e-6)
    else:
        same = type(was) is type(now) and was == now
    return [] if same else [f"{where}: {was!s:.80} became {now!s:.80}"]


def test_the_numbers_stay_the_same(tmp_path: Path) -> None:
    assert differences(json.loads(FROZEN.read_text()), measure(tmp_path)) == []


def test_a_changed_number_is_seen() -> None:
    was = json.loads(FROZEN.read_text())
    now = json.loads(FROZEN.read_text())
    now["broken"]["mechanisms"]["shares"]["denoising"]["7"]["held"] += 1
    now["sort"]["bases"]["rms_of_all"] *= 1.001
    assert len(differences(was, now)) == 2


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        FROZEN.parent.mkdir(exist_ok=True)
        FROZEN.write_text(json.dumps(dict(sorted(measure(Path(scratch)).items()))) + "\n")
    sys.stdout.write(f"{FROZEN}\n")
