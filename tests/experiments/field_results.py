"""Made-up results of the field's table, for tests of what is shown of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from taskhint.experiments.experiment import Experiment
from taskhint.experiments.field import EXPERIMENTS, ROWS, Row
from taskhint.experiments.marker import Marker, write_marker
from taskhint.system.settings import to_json

EXAMPLES = 1000
# Row, scheme and seed -> the reach of that run, in training lengths; None: it was not trained.
Reaches = Callable[[Row, str, int], float | None]


def write_results(
    place: Path, reaches: Reaches, rows: Iterable[Row] = ROWS, seeds: Sequence[int] = (0, 1, 2)
) -> None:
    """A directory as `taskhint reproduce` and the packing of its runs leave one."""
    place.mkdir(parents=True, exist_ok=True)
    write_marker(place, Marker("pocket", tuple(one.name for one in EXPERIMENTS)))
    experiments = {one.name: one for one in EXPERIMENTS}
    for row in rows:
        for scheme, arm in row.arms.items():
            kept = {
                str(seed): _run(experiments[row.experiment], times)
                for seed in seeds
                if (times := reaches(row, scheme, seed)) is not None
            }
            if kept:
                document = {"recipe": to_json(arm.at("pocket")), "seeds": kept}
                (place / f"{arm.name}.runs.json").write_text(json.dumps(document))


def _run(experiment: Experiment, times: float) -> dict[str, object]:
    trained = experiment.lengths[1]
    scores = {
        str(n): {"examples": EXAMPLES, "right": 950 if n <= times * trained else 300}
        for n in experiment.lengths
    }
    return {"step": 2000, "curves": {"uniform": scores}}
