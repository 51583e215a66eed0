"""The paper's experiments as data, their verdicts, and the command that runs them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from scipy.stats import ttest_ind

from taskhint.cli import main
from taskhint.cli.reproduce import jobs_for, listing, reproduce
from taskhint.evaluation.curve import LengthCurve, Score, save_curve
from taskhint.experiments import EXPERIMENTS
from taskhint.experiments.experiment import (
    Arm,
    AtLeast,
    AtMost,
    Better,
    Experiment,
    NotBetter,
    Panel,
    Published,
)
from taskhint.experiments.findings import Finding, clear_difference, find_all
from taskhint.experiments.marker import MARKER
from taskhint.probe.shares_file import save_shares
from taskhint.recipes.recipe import SCALES, Scale
from taskhint.report.experiment_figure import experiment_figure
from taskhint.report.page import write_report
from taskhint.sweeps import local as parallel
from taskhint.sweeps.local import Measurement
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, write_atomically

TINY = ("batch_size=8", "warmup_steps=1", "steps=3", "model.width=16", "model.mlp_width=16")
SMALL = Experiment(
    name="small",
    question="Does it work?",
    arms=(Arm("plain", "sort/standard", TINY), Arm("warm", "sort/tempered", TINY)),
    panels=(
        Panel("accuracy"),
        Panel("edit distance"),
        Panel("accuracy", "rep:2"),
        Panel("min-finding"),
    ),
    lengths=(3, 5),
    claims=(Better("warm", "plain", 5), AtMost("plain", 5, 50.0)),
    published=(Published("warm", 5, 90.0), Published("plain", 5, 1.0, bound=True)),
    examples=20,
)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_experiment_is_well_formed(experiment: Experiment) -> None:
    labels = [arm.label for arm in experiment.arms]
    assert len(set(labels)) == len(labels)
    for scale in experiment.scales:
        recipes = [arm.at(scale) for arm in experiment.arms]
        assert len({recipe.fingerprint() for recipe in recipes}) == len(recipes), (
            "two arms are the same"
        )
        assert len({arm.folder(scale) for arm in experiment.arms}) == len(recipes)
        for recipe in recipes:
            for distribution in experiment.distributions:
                recipe.task.for_test(distribution)
    for claim in experiment.claims:
        if isinstance(claim, Better):
            assert {claim.better, claim.worse} <= set(labels)
        elif isinstance(claim, NotBetter):
            assert {claim.other, claim.base} <= set(labels)
        else:
            assert claim.arm in labels
        assert claim.length in experiment.lengths
    for number in experiment.published:
        assert number.arm in labels
        assert number.length in experiment.lengths


def test_arms_with_the_same_folder_are_the_same_run() -> None:
    for scale in SCALES:
        recipes: dict[str, str] = {}
        for arm in (arm for e in EXPERIMENTS.values() if scale in e.scales for arm in e.arms):
            mine = arm.at(scale).fingerprint()
            assert recipes.setdefault(arm.folder(scale), mine) == mine


def test_a_difference_is_clear_only_beyond_the_spread_of_the_seeds() -> None:
    assert clear_difference([0.9, 0.91, 0.92], [0.1, 0.12, 0.11]) == 1
    assert clear_difference([0.1, 0.12, 0.11], [0.9, 0.91, 0.92]) == -1
    assert clear_difference([0.9, 0.1, 0.5], [0.4, 0.2, 0.3]) == 0
    assert clear_difference([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]) == 0
    assert clear_difference([1.0, 1.0], [0.0, 0.0]) == 1
    assert clear_difference([1.0], [0.0]) == 0, "one seed shows nothing"


def write_run(
    out: Path, arm: Arm, seed: int, accuracy: dict[int, float], distance: float = 1.0
) -> None:
    recipe = arm.at("pocket").change(seed=seed)
    write_atomically(out / "recipe.json", json_bytes(recipe.to_json()))
    scores = {n: Score(1000, round(1000 * share), distance) for n, share in accuracy.items()}
    save_curve(
        out, LengthCurve(str(out), recipe.name, "sort", "uniform", seed, recipe.steps, scores)
    )


def found(tmp_path: Path, claims: tuple[Better | NotBetter | AtMost | AtLeast, ...]) -> Finding:
    """Three seeds: plain at 20% and 22%, warm at 70% and far apart, at lengths 5 and 3."""
    experiment = Experiment(
        "x", "?", SMALL.arms, (Panel("accuracy"), Panel("edit distance")), (3, 5), claims
    )
    for seed in range(3):
        write_run(
            tmp_path / f"p{seed}",
            SMALL.arms[0],
            seed,
            {3: 0.2, 5: 0.20 + 0.01 * seed},
            3.0 + 0.1 * seed,
        )
        write_run(
            tmp_path / f"w{seed}",
            SMALL.arms[1],
            seed,
            {3: 0.1 + 0.4 * seed, 5: 0.70 + 0.01 * seed},
            1.0,
        )
    (finding,) = find_all(tmp_path, [experiment])
    return finding


def test_claims_are_judged_by_the_seeds(tmp_path: Path) -> None:
    claims = (
        Better("warm", "plain", 5),
        Better("plain", "warm", 5),
        Better("warm", "plain", 3),
        Better("warm", "plain", 5, quantity="edit distance"),
        NotBetter("plain", "warm", 5),
        NotBetter("warm", "plain", 5),
        AtMost("plain", 5, 21.5),
        AtMost("plain", 5, 20.5),
        AtLeast("warm", 5, 71.0),
        AtLeast("warm", 5, 72.0),
    )
    finding = found(tmp_path, claims)
    verdicts = [outcome.holds for outcome in finding.outcomes]
    assert verdicts == [True, False, None, True, True, False, True, False, True, False]
    assert finding.verdict == "partly reproduced"
    assert finding.outcomes[0].text == "warm better than plain at 5: 71.0% against 21.0%"
    assert finding.examples == (1000, 1000)


def test_not_better_cannot_be_told_where_nothing_is_right(tmp_path: Path) -> None:
    experiment = Experiment(
        "x", "?", SMALL.arms, (Panel("accuracy"),), (3, 5), (NotBetter("warm", "plain", 5),)
    )
    for accuracy, holds in ((0.004, None), (0.04, True)):
        for seed, arm in ((seed, arm) for seed in range(2) for arm in SMALL.arms):
            write_run(tmp_path / f"{arm.label}{seed}", arm, seed, {5: accuracy})
        assert find_all(tmp_path, [experiment])[0].outcomes[0].holds is holds


def settings_of(name: str) -> list[str]:
    return Finding(EXPERIMENTS[name], "pocket", {}).different_settings


def test_settings_that_are_not_the_papers() -> None:
    shared, *own = settings_of("data-scaling")
    assert {"model.width 128 (paper 1024)", "steps 3000 (paper 100000)"} < set(shared.split("; "))
    assert "task.inputs.repetition 0.1 (paper 0.0)" in shared
    assert own[0] == "1M examples: dataset_size 7500 (paper 1000000)"
    assert (
        "hint, four times the updates: steps 12000 (paper 100000)" in settings_of("hint-long")[-1]
    )
    assert "model.qk_norm true (paper false)" in settings_of("sort-best")[0]
    assert "task.inputs.repetition 0.8 (paper 0.1)" in settings_of("sort-best")[0]
    assert "model.positions.kind mirror (paper none)" in settings_of("increment-best")[0]
    assert "optimiser.beta1" not in settings_of("hint")[0], "Muon has no such setting"


def test_intervals_of_edit_distances_may_exceed_one(tmp_path: Path) -> None:
    cell = found(tmp_path, ()).cell("plain", Panel("edit distance"), 5)
    assert cell is not None and cell.values == (3.0, 3.1, 3.2)
    low, high = cell.interval  # 4.303 is Student's t at 97.5% with two degrees of freedom
    assert (low, high) == pytest.approx(
        (3.1 - 4.303 * 0.1 / 3**0.5, 3.1 + 4.303 * 0.1 / 3**0.5), abs=1e-4
    )


def test_the_basis_counts_the_sequences_that_were_looked_into(tmp_path: Path) -> None:
    arm = SMALL.arms[0]
    write_run(tmp_path / "p", arm, 0, {5: 0.5})
    save_shares(tmp_path / "p", 1, 200, {"min-finding": {5: 0.25}})
    for panels, examples in (
        ((Panel("accuracy"),), (1000, 1000)),
        ((Panel("accuracy"), Panel("min-finding")), (200, 1000)),
    ):
        (finding,) = find_all(tmp_path, [Experiment("x", "?", (arm,), panels, (5,), ())])
        assert finding.examples == examples


@pytest.mark.parametrize(("claim", "verdict"), [(70.0, "reproduced"), (80.0, "not reproduced")])
def test_the_verdict_in_words(tmp_path: Path, claim: float, verdict: str) -> None:
    assert found(tmp_path, (AtLeast("warm", 5, claim),)).verdict == verdict


def test_runs_that_were_only_looked_into_are_found(tmp_path: Path) -> None:
    arm = SMALL.arms[0]
    write_atomically(tmp_path / "p" / "recipe.json", json_bytes(arm.at("pocket").to_json()))
    save_shares(tmp_path / "p", 1, 200, {"min-finding": {5: 0.25}})
    (finding,) = find_all(
        tmp_path, [Experiment("x", "?", (arm,), (Panel("min-finding"),), (5,), ())]
    )
    cell = finding.cell("plain", Panel("min-finding"), 5)
    assert cell is not None and cell.values == (0.25,)


def test_edit_distances_cannot_exceed_the_length(tmp_path: Path) -> None:
    for seed, distance in enumerate((1.0, 5.0)):
        write_run(tmp_path / f"p{seed}", SMALL.arms[0], seed, {5: 0.0}, distance)
    (finding,) = find_all(tmp_path, [SMALL])
    cell = finding.cell("plain", Panel("edit distance"), 5)
    assert cell is not None and cell.interval == (0.0, 5.0)


def test_paper_scale_has_the_papers_number_of_test_sequences(tmp_path: Path) -> None:
    for scale, examples in (("pocket", 1000), ("paper", 100_000)):
        scale_: Scale = "pocket" if scale == "pocket" else "paper"
        jobs = jobs_for([EXPERIMENTS["positions"]], scale_, 1, tmp_path)
        assert {m.examples for job in jobs for m in job.measurements} == {examples}


def test_a_gpu_has_one_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parallel._at_once() == len(os.sched_getaffinity(0))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert parallel._at_once() == 1


def test_an_experiment_without_all_its_arms_is_not_judged(tmp_path: Path) -> None:
    write_run(tmp_path / "w", SMALL.arms[1], 0, {3: 1.0, 5: 1.0})
    (finding,) = find_all(tmp_path, [SMALL])
    assert finding.verdict == "not measured in full"
    assert finding.outcomes[1].holds is None
    experiment_figure(finding)


def test_what_several_experiments_ask_of_a_run_is_measured_once(tmp_path: Path) -> None:
    arm = SMALL.arms[0]
    few = Experiment("few", "?", (arm,), (Panel("accuracy"),), (3, 5), (), examples=100)
    more = Experiment(
        "more", "?", (arm,), (Panel("accuracy"), Panel("edit distance")), (5, 7), (), examples=1000
    )
    (job,) = jobs_for([few, more], "pocket", 1, tmp_path)
    assert set(job.measurements) == {
        Measurement("uniform", (3,), 100, False),
        Measurement("uniform", (5, 7), 1000, True),
    }


def test_a_campaign_trains_measures_and_is_skipped_when_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(EXPERIMENTS, "small", SMALL)
    reproduce(["small"], "pocket", 2, tmp_path)
    first = capsys.readouterr().out
    assert "4 runs, 0 of them done" in first
    assert "small: " in first
    for path in tmp_path.rglob("*.safetensors"):
        path.unlink()  # results alone are enough
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("evaluations/*/*.json")}
    assert len(times) == 8
    reproduce(["small"], "pocket", 2, tmp_path)
    assert "4 runs, 4 of them done" in capsys.readouterr().out
    assert times == {path: path.stat().st_mtime_ns for path in times}
    assert not any(
        job.measurements or job.mechanisms for job in jobs_for([SMALL], "pocket", 2, tmp_path)
    )
    assert len([job for job in jobs_for([SMALL], "pocket", 3, tmp_path) if job.measurements]) == 2

    page = write_report(tmp_path, tmp_path / "page.html").read_text()
    for text in ("Does it work?", "… in the paper", "under 1", "min-finding", "Verdict"):
        assert text in page
    assert (tmp_path / "small.html").is_file()
    with pytest.raises(UserError, match="at scale pocket"):
        reproduce(["small"], "paper", 1, tmp_path)
    with pytest.raises(UserError, match="another run"):
        jobs_for(
            [Experiment("y", "?", (Arm("plain", "sort/fill", TINY),), SMALL.panels, (3,), ())],
            "pocket",
            1,
            _moved(tmp_path),
        )


def _moved(directory: Path) -> Path:
    (directory / Arm("", "sort/standard", TINY).folder("pocket")).rename(
        directory / Arm("", "sort/fill", TINY).folder("pocket")
    )
    return directory


def test_a_damaged_marker_is_one_clear_line(tmp_path: Path) -> None:
    write_run(tmp_path / "w", SMALL.arms[1], 0, {3: 1.0})
    for text, says in (
        ("[]", "does not name"),
        ('{"scale": "huge", "experiments": []}', "not a scale"),
    ):
        (tmp_path / MARKER).write_text(text)
        with pytest.raises(UserError, match=says):
            write_report(tmp_path, tmp_path / "page.html")
        with pytest.raises(UserError, match=says):
            reproduce(["hint"], "pocket", 1, tmp_path)


def test_the_listing_names_every_experiment_with_its_cost() -> None:
    for scale in SCALES:
        lines = listing(scale, 3).splitlines()
        named = [line.split()[0] for line in lines[1:-1]]
        assert named == [
            name for name, experiment in EXPERIMENTS.items() if scale in experiment.scales
        ]
        assert "shared runs once" in lines[-1]


def test_the_command_refuses_what_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, says in (
        (["hnt", "--out", str(tmp_path)], "did you mean 'hint'"),
        (["hint"], "--out is needed"),
        (["hint", "--out", str(tmp_path), "--seeds", "0"], "at least 1"),
        (["--seeds", "0"], "at least 1"),
        (["all", "hnt", "--out", str(tmp_path)], "did you mean 'hint'"),
        (["hint-muon", "--out", str(tmp_path), "--scale", "paper"], "at scale pocket only"),
        (["hint", "--out", str(tmp_path), "--scale", "papr"], "did you mean 'paper'"),
    ):
        assert main(["reproduce", *arguments]) == 2
        assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_marker_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXPERIMENTS, "small", SMALL)
    write_atomically(tmp_path / MARKER, json_bytes({"scale": "pocket", "experiments": ["hint"]}))
    reproduce(["small"], "pocket", 1, tmp_path)
    assert json.loads((tmp_path / MARKER).read_text())["experiments"] == ["hint", "small"]


@pytest.mark.parametrize("first", [[0.5, 0.6, 0.7], [0.1, 0.9], [0.3, 0.31, 0.33, 0.30]])
@pytest.mark.parametrize("second", [[0.2, 0.25, 0.3], [0.4, 0.41, 0.46, 0.8], [0.62, 0.6]])
def test_the_difference_is_welchs(first: list[float], second: list[float]) -> None:
    interval = ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    wanted = 1 if interval.low > 0 else -1 if interval.high < 0 else 0
    assert clear_difference(first, second) == wanted
