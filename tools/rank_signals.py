"""How well cheap signals rank recipes: their rank correlation with accuracy on long inputs.

    .venv/bin/python tools/rank_signals.py chosen/choose.json --results results --out ranks.json

Signals come from the rankings that `taskhint choose` keeps, or from files of early looks ({"runs":
[{"recipe", "evaluations"}]}); accuracies from all results below --results. An arm is a recipe of
the results whose short version, as `choose` makes it, is among the candidates; names and seeds do
not matter. Where the results have one recipe with several numbers of updates, the one nearest to
--updates counts. Signals of which less is better, such as a loss, count with their sign turned.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taskhint.evaluation.results import Result, find_results, one_per_run
from taskhint.recipes.recipe import Recipe
from taskhint.runs.curve import Score
from taskhint.sweeps.choice import SIGNALS, Candidate, Choice, Signals, load_choice, shortened
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, read_json, write_atomically
from taskhint.system.ranks import FEWEST, RankCorrelation, rank_correlation
from taskhint.system.settings import conform, to_json
from taskhint.system.tables import markdown_table, text_table

COMPARED_AT = (50, 100)
USUAL_UPDATES = 6000
IN_WORDS = {"inside": "mean at 11 to 20", "at_longest": "accuracy at 20"}


@dataclass(frozen=True)
class PairedArm:
    """A candidate, and the accuracies by length of its recipe when trained in full."""

    candidate: Candidate
    updates: int
    accuracy: dict[int, float]  # means over seeds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("signals", type=Path, nargs="+")
    parser.add_argument("--results", type=Path, nargs="+", required=True)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(COMPARED_AT))
    parser.add_argument("--updates", type=int, default=USUAL_UPDATES)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    candidates = [one for path in options.signals for one in read_candidates(path)]
    results = [one for place in options.results for one in find_results(place)]
    arms = paired(candidates, results, options.updates)
    found = correlations(arms, options.lengths)
    print(as_text(arms, found, options.lengths))
    if options.out is not None:
        write_atomically(options.out, json_bytes(as_json(arms, found)))


def read_candidates(path: Path) -> list[Candidate]:
    data = read_json(path)
    if isinstance(data, dict) and "runs" in data:
        return early_looks(data["runs"], str(path))
    choice: Choice = load_choice(path)
    return list(choice.candidates)


def early_looks(runs: Iterable[dict[str, Any]], where: str) -> list[Candidate]:
    """Accuracies at some lengths beyond the trained ones are all that they have."""
    found: dict[str, tuple[Recipe, dict[int, Signals]]] = {}
    for run in runs:
        recipe = Recipe.from_json(run["recipe"], where)
        (curve,) = (one for one in run["evaluations"] if one["distribution"] == "uniform")
        scores: dict[int, Score] = conform(dict[int, Score], curve["lengths"], where)
        beyond = [scores[n] for n in sorted(scores) if n > recipe.task.lengths.max_length]
        if not beyond:
            continue
        inside = sum(score.accuracy for score in beyond) / len(beyond)
        signals = Signals(inside, beyond[-1].accuracy, len(beyond), beyond[-1].examples)
        name = run["path"].partition("/")[0]
        found.setdefault(name, (recipe.change(seed=0), {}))[1][recipe.seed] = signals
    return [Candidate(name, *kept) for name, kept in found.items()]


def key(recipe: Recipe) -> str:
    """The same for recipes that differ in nothing but name and seed."""
    return recipe.change(name="any", seed=0).fingerprint()


def paired(
    candidates: Iterable[Candidate], results: Iterable[Result], updates: int
) -> list[PairedArm]:
    """An arm for every candidate of which there are results."""
    known = {key(candidate.recipe): candidate for candidate in candidates}
    families: dict[tuple[str, int], list[Result]] = {}
    for result in one_per_run(results):
        if "uniform" not in result.curves:
            continue
        for steps in {candidate.recipe.steps for candidate in known.values()}:
            short = _short(result.recipe, steps)
            if short in known:
                families.setdefault((short, result.recipe.steps), []).append(result)
    nearest: dict[str, int] = {}
    for short, steps in families:
        before = nearest.get(short)
        if before is None or abs(steps - updates) < abs(before - updates):
            nearest[short] = steps
    return [
        PairedArm(known[short], steps, mean_accuracies(families[short, steps]))
        for short, steps in nearest.items()
    ]


def _short(recipe: Recipe, steps: int) -> str | None:
    try:
        return key(shortened(recipe, steps))
    except UserError:  # its lengths have no two halves
        return None


def mean_accuracies(results: Sequence[Result]) -> dict[int, float]:
    """By length, over the seeds that have it."""
    curves = [result.curves["uniform"].scores for result in results]
    lengths = sorted({n for scores in curves for n in scores})
    values = {n: [scores[n].accuracy for scores in curves if n in scores] for n in lengths}
    return {n: sum(some) / len(some) for n, some in values.items()}


def correlations(
    arms: Sequence[PairedArm], lengths: Iterable[int]
) -> dict[int, dict[str, RankCorrelation | None]]:
    """By length and signal, over the arms that have both; None where there are too few, or all
    are the same.
    """
    return {n: {signal: _correlation(arms, n, signal) for signal in SIGNALS} for n in lengths}


def _correlation(arms: Sequence[PairedArm], length: int, signal: str) -> RankCorrelation | None:
    sign = 1 if SIGNALS[signal] else -1
    pairs = [
        (sign * value, arm.accuracy[length])
        for arm in arms
        if length in arm.accuracy and (value := arm.candidate.mean(signal)) is not None
    ]
    if len(pairs) < FEWEST or any(len({pair[i] for pair in pairs}) == 1 for i in range(2)):
        return None
    signals, accuracies = zip(*pairs, strict=True)
    return rank_correlation(signals, accuracies)


def as_text(
    arms: Sequence[PairedArm],
    found: dict[int, dict[str, RankCorrelation | None]],
    lengths: Sequence[int],
) -> str:
    header = ["arm", "updates", *SIGNALS, *(f"accuracy at {n}" for n in lengths)]
    ordered = sorted(arms, key=lambda arm: -arm.candidate.inside.mean)
    rows = [
        [
            arm.candidate.name,
            str(arm.updates),
            *(_number(arm.candidate.mean(signal)) for signal in SIGNALS),
            *(_number(arm.accuracy.get(n)) for n in lengths),
        ]
        for arm in ordered
    ]
    text = text_table(header, rows)
    for n, row in found.items():
        cells = [
            [
                signal,
                str(one.items),
                f"{one.spearman:.2f}",
                one.spearman_interval.text(2),
                f"{one.kendall:.2f}",
                one.kendall_interval.text(2),
            ]
            for signal, one in row.items()
            if one is not None
        ]
        columns = [f"rank correlation at {n}", "arms", "Spearman", "95%", "Kendall", "95%"]
        text += "\n" + text_table(columns, cells)
    return text


def as_markdown(candidates: Sequence[Candidate], results: Sequence[Result]) -> str:
    """Two tables for a page: the ranking, and how well it predicts."""
    arms = paired(candidates, results, USUAL_UPDATES)
    ordered = sorted(arms, key=lambda arm: -arm.candidate.inside.mean)
    header = ["arm", "seeds", *IN_WORDS.values(), "updates in full"]
    header += [f"accuracy at {n}" for n in COMPARED_AT]
    ranking = [
        [
            arm.candidate.name,
            str(arm.candidate.inside.seeds),
            f"{100 * arm.candidate.inside.mean:.1f}",
            f"{100 * (arm.candidate.mean('at_longest') or 0.0):.1f}",
            f"{arm.updates:,}",
            *(f"{100 * arm.accuracy[n]:.1f}" for n in COMPARED_AT),
        ]
        for arm in ordered
    ]
    found = correlations(arms, COMPARED_AT)
    trust = [
        [
            IN_WORDS.get(signal, signal),
            str(n),
            str(one.items),
            f"{one.spearman:.2f} ({one.spearman_interval.text(2)})",
            f"{one.kendall:.2f} ({one.kendall_interval.text(2)})",
        ]
        for n, row in found.items()
        for signal, one in row.items()
        if one is not None
    ]
    columns = ["signal", "predicts accuracy at", "arms", "Spearman (95%)", "Kendall (95%)"]
    return markdown_table(columns, trust) + "\n" + markdown_table(header, ranking)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def as_json(arms: Sequence[PairedArm], found: dict[int, dict[str, RankCorrelation | None]]) -> Any:
    return {
        "arms": [
            {
                "name": arm.candidate.name,
                "updates": arm.updates,
                "signals": {s: arm.candidate.mean(s) for s in SIGNALS},
                "accuracy": {str(n): value for n, value in arm.accuracy.items()},
            }
            for arm in arms
        ],
        "correlations": {
            str(n): {signal: to_json(one) for signal, one in row.items() if one is not None}
            for n, row in found.items()
        },
    }


if __name__ == "__main__":
    main()
