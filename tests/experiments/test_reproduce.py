"""Experiments as data, their verdicts, and the command that runs them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from taskhint.cli import main
from taskhint.cli.reproduce import _time, jobs_for, listing, reproduce
from taskhint.evaluation.results import Result, find_results
from taskhint.experiments import EXPERIMENTS, find_experiment
from taskhint.experiments.arm import Arm
from taskhint.experiments.claims import AtLeast, AtMost, Better, Claim, NotBetter
from taskhint.experiments.experiment import Experiment, Panel, Published
from taskhint.experiments.findings import Finding, differences, find_all
from taskhint.experiments.marker import MARKER, REMARKS, read_marker
from taskhint.experiments.quantity import (
    ACCURACY,
    EDIT_DISTANCE,
    Measured,
    MechanismShare,
    MinFinding,
    Quantity,
)
from taskhint.recipes import find_recipe
from taskhint.recipes.recipe import SCALES, Recipe
from taskhint.report.experiment_page import basis
from taskhint.report.figures import experiment_figure
from taskhint.report.page import write_report
from taskhint.runs.curve import LengthCurve, Score, save_curve
from taskhint.runs.shares import save_shares
from taskhint.sweeps.jobs import Measurement
from taskhint.sweeps.local import LocalPool, slots_here
from taskhint.system.errors import UserError
from taskhint.system.files import json_bytes, write_atomically
from taskhint.system.plugins import import_source
from taskhint.system.stats import wilson
from tests.conftest import small


def tiny(name: str) -> Recipe:
    return small(name, steps=3, warmup_steps=1)


PLAIN, WARM = Arm("plain", tiny("sort/standard")), Arm("warm", tiny("sort/tempered"))
SMALL = Experiment(
    name="small",
    question="Does it work?",
    arms=(PLAIN, WARM),
    panels=(Panel(), Panel(EDIT_DISTANCE), Panel(ACCURACY, "rep:2"), Panel(MinFinding())),
    lengths=(3, 5),
    claims=(Better(WARM, PLAIN, 5), AtMost(PLAIN, 5, 50.0)),
    published=(Published(WARM, 5, 90.0), Published(PLAIN, 5, 1.0, bound=True)),
    examples=20,
    of_paper=True,
)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_experiment_is_well_formed(experiment: Experiment) -> None:
    for scale in experiment.scales:
        recipes = [arm.at(scale) for arm in experiment.arms]
        assert len({recipe.fingerprint() for recipe in recipes}) == len(recipes), (
            "two arms are the same"
        )
        for recipe in recipes:
            for distribution in experiment.distributions:
                recipe.task.for_test(distribution)


def test_arms_with_the_same_name_are_the_same_run() -> None:
    for scale in SCALES:
        recipes: dict[str, str] = {}
        for arm in (arm for e in EXPERIMENTS.values() if scale in e.scales for arm in e.arms):
            mine = arm.at(scale).fingerprint()
            assert recipes.setdefault(arm.name, mine) == mine


def test_an_experiment_needs_few_words() -> None:
    plain = Arm("plain", find_recipe("sort/standard"))
    deep = Arm("3 layers", find_recipe("sort/standard").change(depth=3))
    experiment = Experiment("depth", "Does depth help?", (plain, deep), (20, 50))
    assert deep.name == "3-layers"
    assert experiment.scales == ("pocket",)
    assert experiment.distributions == {"uniform": False}
    other = differences(experiment, "pocket")
    assert other.lines == ["none in all arms", "3 layers: model.depth 3 (2)"]
    assert other.whose == "the first arm"
    both = Arm("both", lambda scale: find_recipe("sort/fill", scale))
    assert Experiment("x", "?", [both], [5]).scales == SCALES


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "a/b"}, "needs a name"),
        ({"arms": ()}, "needs arms"),
        ({"arms": (PLAIN, "warm")}, "needs arms"),
        ({"arms": (PLAIN, PLAIN)}, "two arms of the same label"),
        ({"arms": (PLAIN, PLAIN.called("other"))}, "two arms of the same name"),
        ({"lengths": (3, 0)}, "needs lengths"),
        ({"lengths": (3,)}, "speaks of length 5"),
        ({"claims": ("better",)}, "claim that is none"),
        ({"arms": (PLAIN,), "published": ()}, "none of its arms"),
        ({"claims": (), "published": (Published(PLAIN, 7, 1.0),)}, "speaks of length 7"),
    ],
)
def test_an_experiment_that_makes_no_sense_is_refused(
    changes: dict[str, object], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        replace(SMALL, **changes)  # type: ignore[arg-type]


def test_an_arm_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UserError, match="needs a Recipe"):
        Arm("x", "sort/standard")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="needs a name"):
        Arm("x", PLAIN.recipe, "../x")
    with pytest.raises(UserError, match="at scale pocket, not paper"):
        PLAIN.at("paper")
    with pytest.raises(UserError, match="not a Recipe"):
        Arm("x", lambda scale: scale).at("pocket")  # type: ignore[arg-type, return-value]


def write_run(
    out: Path, arm: Arm, seed: int, accuracy: dict[int, float], distance: float = 1.0
) -> None:
    recipe = arm.at("pocket").change(seed=seed)
    write_atomically(out / "recipe.json", json_bytes(recipe.to_json()))
    scores = {n: Score(1000, round(1000 * share), distance) for n, share in accuracy.items()}
    save_curve(
        out, LengthCurve(str(out), recipe.name, "sort", "uniform", seed, recipe.steps, scores)
    )


def findings(place: Path, experiment: Experiment) -> Finding:
    (finding,) = find_all(find_results(place), [experiment])
    return finding


def found(tmp_path: Path, claims: tuple[Claim, ...]) -> Finding:
    """Three seeds: plain at 20% and 22%, warm at 70% and far apart, at lengths 5 and 3."""
    experiment = Experiment(
        "x", "?", SMALL.arms, (3, 5), (Panel(), Panel(EDIT_DISTANCE)), claims, of_paper=True
    )
    for seed in range(3):
        plain = {3: 0.2, 5: 0.20 + 0.01 * seed}
        write_run(tmp_path / f"p{seed}", PLAIN, seed, plain, 3.0 + 0.1 * seed)
        warm = {3: 0.1 + 0.4 * seed, 5: 0.70 + 0.01 * seed}
        write_run(tmp_path / f"w{seed}", WARM, seed, warm, 1.0)
    return findings(tmp_path, experiment)


def test_claims_are_judged_by_the_seeds(tmp_path: Path) -> None:
    claims = (
        Better(WARM, PLAIN, 5),
        Better(PLAIN, WARM, 5),
        Better(WARM, PLAIN, 3),
        Better(WARM, PLAIN, 5, quantity=EDIT_DISTANCE),
        NotBetter(PLAIN, WARM, 5),
        NotBetter(WARM, PLAIN, 5),
        AtMost(PLAIN, 5, 21.5),
        AtMost(PLAIN, 5, 20.5),
        AtLeast(WARM, 5, 71.0),
        AtLeast(WARM, 5, 72.0),
    )
    finding = found(tmp_path, claims)
    verdicts = [outcome.holds for outcome in finding.outcomes]
    assert verdicts == [True, False, None, True, True, False, True, False, True, False]
    assert finding.verdict == "partly reproduced"
    texts = [outcome.text for outcome in finding.outcomes]
    assert texts[0] == "warm better than plain at 5: 71.0% against 21.0%"
    assert texts[3] == "warm better than plain at 5 (edit distance): 1.00 against 3.10"
    assert texts[6] == "plain below 21.5% at 5: 21.0%"
    assert basis(finding) == "3 seeds, 1,000 test sequences per length and seed"


def test_not_better_cannot_be_told_where_nothing_is_right(tmp_path: Path) -> None:
    experiment = replace(SMALL, claims=(NotBetter(WARM, PLAIN, 5),))
    for accuracy, holds in ((0.004, None), (0.04, True)):
        for seed, arm in ((seed, arm) for seed in range(2) for arm in SMALL.arms):
            write_run(tmp_path / f"{arm.label}{seed}", arm, seed, {5: accuracy})
        assert findings(tmp_path, experiment).outcomes[0].holds is holds


def test_seeds_that_all_have_nothing_keep_an_interval(tmp_path: Path) -> None:
    for seed in range(3):
        write_run(tmp_path / f"p{seed}", PLAIN, seed, {5: 0.0}, 0.0)
    finding = findings(tmp_path, SMALL)
    cell = finding.cell(PLAIN, Panel(), 5)
    assert cell is not None and tuple(cell.interval) == tuple(wilson(0.0, 3000))
    distance = finding.cell(PLAIN, Panel(EDIT_DISTANCE), 5)
    assert distance is not None and distance.interval.high == 5 * wilson(0.0, 3000).high


def settings_of(name: str) -> list[str]:
    return differences(EXPERIMENTS[name], "pocket").lines


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
    cell = found(tmp_path, ()).cell(PLAIN, Panel(EDIT_DISTANCE), 5)
    assert cell is not None and cell.means == (3.0, 3.1, 3.2)
    low, high = cell.interval  # 4.303 is Student's t at 97.5% with two degrees of freedom
    assert (low, high) == pytest.approx(
        (3.1 - 4.303 * 0.1 / 3**0.5, 3.1 + 4.303 * 0.1 / 3**0.5), abs=0.02
    )


def test_edit_distances_cannot_exceed_the_length(tmp_path: Path) -> None:
    for seed, distance in enumerate((1.0, 5.0)):
        write_run(tmp_path / f"p{seed}", PLAIN, seed, {5: 0.0}, distance)
    cell = findings(tmp_path, SMALL).cell(PLAIN, Panel(EDIT_DISTANCE), 5)
    assert cell is not None
    assert 0.0 <= cell.interval.low < 0.5 and 4.5 < cell.interval.high <= 5.0


def test_the_basis_counts_the_sequences_that_were_looked_into(tmp_path: Path) -> None:
    write_run(tmp_path / "p", PLAIN, 0, {5: 0.5})
    save_shares(tmp_path / "p", 1, 200, {"min-finding": {5: 0.25}})
    for panels, examples in (
        ((Panel(),), "1,000"),
        ((Panel(), Panel(MechanismShare("min-finding"))), "200 to 1,000"),
    ):
        finding = findings(tmp_path, Experiment("x", "?", (PLAIN,), (5,), panels))
        assert basis(finding) == f"1 seed, {examples} test sequences per length and seed"


@dataclass(frozen=True)
class FailureRate(Quantity):
    """A user's own."""

    kind: ClassVar[str] = "failure-rate"
    larger_is_better: ClassVar[bool] = False

    name: str = "failure rate"

    def read(self, result: Result, distribution: str, length: int) -> Measured | None:
        found = ACCURACY.read(result, distribution, length)
        return None if found is None else Measured(1 - found.mean, found.sequences)


def test_a_quantity_of_ones_own(tmp_path: Path) -> None:
    finding = found(tmp_path, (Better(WARM, PLAIN, 5, quantity=FailureRate()),))
    assert finding.outcomes[0].holds is True
    assert "(failure rate): 29.0% against 79.0%" in finding.outcomes[0].text
    named = Panel("failure-rate")  # type: ignore[arg-type]
    assert named == Panel(FailureRate())
    with pytest.raises(UserError, match="did you mean 'accuracy'"):
        Panel("acuracy")  # type: ignore[arg-type]


@pytest.mark.parametrize(("claim", "verdict"), [(70.0, "reproduced"), (80.0, "not reproduced")])
def test_the_verdict_in_words(tmp_path: Path, claim: float, verdict: str) -> None:
    assert found(tmp_path, (AtLeast(WARM, 5, claim),)).verdict == verdict


def test_runs_that_were_only_looked_into_are_found(tmp_path: Path) -> None:
    write_atomically(tmp_path / "p" / "recipe.json", json_bytes(PLAIN.at("pocket").to_json()))
    save_shares(tmp_path / "p", 1, 200, {"min-finding": {5: 0.25}})
    panel = Panel(MinFinding())
    cell = findings(tmp_path, Experiment("x", "?", (PLAIN,), (5,), (panel,))).cell(PLAIN, panel, 5)
    assert cell is not None and (cell.means, cell.sequences) == ((0.25,), (200,))


def test_paper_scale_has_the_papers_number_of_test_sequences(tmp_path: Path) -> None:
    for scale, examples in zip(SCALES, (1000, 1000, 100_000), strict=True):
        jobs = jobs_for([EXPERIMENTS["positions"]], scale, 1, tmp_path)
        assert {m.examples for job in jobs for m in job.measurements} == {examples}


def test_a_gpu_has_one_run_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert slots_here(None) == [None] * len(os.sched_getaffinity(0))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert slots_here(None) == ["0", "1"]
    assert slots_here(0.4) == ["0", "1", "0", "1"]
    assert slots_here(0) == [""] * len(os.sched_getaffinity(0))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert slots_here(0.25) == ["3"] * 4


def test_an_experiment_without_all_its_arms_is_not_judged(tmp_path: Path) -> None:
    write_run(tmp_path / "w", WARM, 0, {3: 1.0, 5: 1.0})
    finding = findings(tmp_path, SMALL)
    assert finding.verdict == "not measured in full"
    assert finding.outcomes[1].holds is None
    experiment_figure(finding)


def test_what_several_experiments_ask_of_a_run_is_measured_once(tmp_path: Path) -> None:
    few = Experiment("few", "?", (PLAIN,), (3, 5), examples=100)
    panels = (Panel(), Panel(EDIT_DISTANCE))
    more = Experiment("more", "?", (PLAIN.called("same"),), (5, 7), panels, examples=1000)
    (job,) = jobs_for([few, more], "pocket", 1, tmp_path)
    assert set(job.measurements) == {
        Measurement("uniform", (3,), 100, False),
        Measurement("uniform", (5, 7), 1000, True),
    }


def test_a_campaign_trains_measures_and_is_skipped_when_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXPERIMENTS, "small", SMALL)
    reproduce([SMALL], "pocket", 2, tmp_path, LocalPool())
    first = capsys.readouterr().out
    assert "4 runs, 0 of them done" in first
    assert "small: " in first
    for path in tmp_path.rglob("*.safetensors"):
        path.unlink()  # results alone are enough
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("evaluations/*/*.json")}
    assert len(times) == 8
    reproduce([SMALL], "pocket", 2, tmp_path, LocalPool())
    assert "4 runs, 4 of them done" in capsys.readouterr().out
    assert times == {path: path.stat().st_mtime_ns for path in times}
    assert not any(
        job.measurements or job.mechanisms for job in jobs_for([SMALL], "pocket", 2, tmp_path)
    )
    assert len([job for job in jobs_for([SMALL], "pocket", 3, tmp_path) if job.measurements]) == 2

    write_atomically(tmp_path / REMARKS, json_bytes({"small": "Mind the <gap>."}))
    page = write_report(tmp_path, tmp_path / "page.html").read_text()
    for text in ("Does it work?", "… in the paper", "under 1", "min-finding", "Verdict"):
        assert text in page
    assert "Mind the &lt;gap&gt;." in page
    assert (tmp_path / "small.html").is_file()
    with pytest.raises(UserError, match="at scale pocket"):
        reproduce([EXPERIMENTS["hint"]], "paper", 1, tmp_path, LocalPool())
    (tmp_path / "plain").rename(tmp_path / "elsewhere")
    assert not any(job.measurements for job in jobs_for([SMALL], "pocket", 2, tmp_path)), (
        "runs are found by their recipes"
    )
    other = Arm("warm", tiny("sort/fill"))
    with pytest.raises(UserError, match="another run"):
        jobs_for([Experiment("y", "?", (other,), (3,))], "pocket", 1, tmp_path)


OWN = """
from taskhint.experiments.arm import Arm
from taskhint.experiments.experiment import Experiment
from taskhint.recipes import find_recipe

tiny = dict(batch_size=8, steps=3, warmup_steps=1, width=16, mlp_width=16)
PLAIN = Arm("plain", find_recipe("sort/standard").change(**tiny))
MINE = Experiment("my-own", "Is it mine?", (PLAIN,), (3, 5), examples=20)
"""


def test_an_experiment_of_ones_own_file_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    module = import_source(str(tmp_path / "mine.py"))
    out = tmp_path / "out"
    reproduce([module.MINE], "pocket", 1, out, LocalPool())
    assert read_marker(out).sources == {"my-own": "mine.py"}
    assert find_experiment("my-own") is module.MINE
    assert "Is it mine?" in write_report(out, tmp_path / "page.html").read_text()
    monkeypatch.setattr("taskhint.system.plugins._imported", {})
    with pytest.raises(UserError, match=r"unknown experiment 'my-own'; add --import mine.py"):
        write_report(out, tmp_path / "page.html")


@pytest.mark.parametrize("text", ["[]", '{"scale": "huge", "experiments": []}', '{"scale": 3}'])
def test_a_damaged_marker_is_one_clear_line(tmp_path: Path, text: str) -> None:
    write_run(tmp_path / "w", WARM, 0, {3: 1.0})
    (tmp_path / MARKER).write_text(text)
    with pytest.raises(UserError, match=r"damaged: it does not name"):
        write_report(tmp_path, tmp_path / "page.html")
    with pytest.raises(UserError, match=r"damaged: it does not name"):
        reproduce([EXPERIMENTS["hint"]], "pocket", 1, tmp_path, LocalPool())


def test_the_listing_names_every_experiment_with_its_cost() -> None:
    for scale in SCALES:
        lines = listing(scale, 3).splitlines()
        named = [line.split()[0] for line in lines[1:-1]]
        assert named == [
            name for name, experiment in EXPERIMENTS.items() if scale in experiment.scales
        ]
        assert "shared runs once" in lines[-1]
    assert [_time(hours) for hours in (0.001, 0.5, 1.0, 12.34)] == [
        "1 min",
        "30 min",
        "1.0 h",
        "12.3 h",
    ]


def test_the_command_refuses_what_it_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, says in (
        (["hnt", "--out", str(tmp_path)], "did you mean 'hint'"),
        (["hint"], "--out is needed"),
        (["hint", "--out", str(tmp_path), "--seeds", "0"], "not in 1..1000"),
        (["--seeds", "0"], "not in 1..1000"),
        (["all", "hnt", "--out", str(tmp_path)], "did you mean 'hint'"),
        (["hint-muon", "--out", str(tmp_path), "--scale", "paper"], "at scale pocket only"),
        (["hint", "--out", str(tmp_path), "--scale", "papr"], "did you mean 'paper'"),
    ):
        assert main(["reproduce", *arguments]) == 2
        assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_marker_keeps_what_was_there(tmp_path: Path) -> None:
    write_atomically(tmp_path / MARKER, json_bytes({"scale": "pocket", "experiments": ["hint"]}))
    few = Experiment("few", "?", (PLAIN,), (3,), examples=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EXPERIMENTS, "few", few)
        reproduce([few], "pocket", 1, tmp_path, LocalPool())
    assert json.loads((tmp_path / MARKER).read_text())["experiments"] == ["hint", "few"]
