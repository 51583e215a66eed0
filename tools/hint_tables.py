"""What docs/hints.md and its figure take from results/: every regime in which runs with a hint
stand beside runs without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from taskhint.experiments.claims import FLOOR, Better
from taskhint.experiments.experiment import Panel
from taskhint.experiments.findings import Finding
from taskhint.system.stats import Interval, OverSeeds, welch
from taskhint.system.tables import markdown_table

REGIMES = {
    "hint-muon": "Muon",
    "hint-32-symbols": "Muon, 32 symbols",
    "hint-long": "Muon",
    "hint-long-kinds": "Muon",
    "hint-each-best": "Muon, each arm with the weight decay that suits it",
    "hint-adam": "Adam at 0.001",
    "hint-adam-faster": "Adam at 0.006",
    "hint-tempered": "Muon, tempered",
    "hint-long-tempered": "Muon, tempered",
    "hint-adam-tempered": "Adam at 0.001, tempered",
    "hint-share": "Muon, tempered",
    "hint-definition": "Muon, tempered",
    "hint-best-recipe": "sort/best",
}
VARIANTS = ("hint-share", "hint-definition")
SHOWN_AT = (50, 100)
WORDS = {1: "helps", 0: "inconclusive", -1: "hurts"}


@dataclass(frozen=True)
class Comparison:
    """Runs with a hint beside runs without, which differ in nothing else."""

    regime: str
    finding: Finding
    claim: Better

    @property
    def cells(self) -> tuple[OverSeeds, OverSeeds]:
        """With the hint, and without."""
        panel = Panel(self.claim.quantity, self.claim.distribution)
        found = [self.finding.cell(arm, panel, self.claim.length) for arm in self.claim.arms]
        hinted, plain = (cell for cell in found if cell is not None)
        return hinted, plain

    @property
    def equal_totals(self) -> bool:
        """Else they make as many updates of the main task."""
        return len({arm.at(self.finding.scale).steps for arm in self.claim.arms}) == 1

    @property
    def gap(self) -> Interval:
        found = welch(*self.cells)
        assert found is not None  # both have several seeds
        return found

    @property
    def verdict(self) -> str:
        if max(cell.mean for cell in self.cells) < FLOOR:
            return WORDS[0]
        return WORDS[0 if 0.0 in self.gap else 1 if self.gap.low > 0 else -1]


def comparisons(findings: Iterable[Finding]) -> list[Comparison]:
    """In the order of REGIMES, of arms that have at least two seeds each."""
    found = {finding.experiment.name: finding for finding in findings}
    return [
        Comparison(_regime(found[name], claim), found[name], claim)
        for name in REGIMES
        if name in found
        for claim in found[name].experiment.claims
        if isinstance(claim, Better) and _asks_for_the_hint(found[name], claim)
    ]


def _asks_for_the_hint(finding: Finding, claim: Better) -> bool:
    return (
        bool(claim.better.at(finding.scale).hints)
        and not claim.worse.at(finding.scale).hints
        and min(len(finding.runs.get(arm, ())) for arm in claim.arms) > 1
    )


def _regime(finding: Finding, claim: Better) -> str:
    regime, label = REGIMES[finding.experiment.name], claim.better.label
    what = label.removeprefix("hint")
    usual = what != label and (what.endswith("the updates") or not what)
    return regime + what if usual else f"{regime}; {label}"


def regimes(name: str, findings: Mapping[str, Finding]) -> str:
    """A row for every regime: accuracies with the hint and without, and what that says.

    `variants` are of how the hint is defined or mixed in, `usual` is everything else.
    """
    rows: dict[str, dict[tuple[int, bool], Comparison]] = {}
    for one in comparisons(findings.values()):
        if (one.finding.experiment.name in VARIANTS) == (name == "variants"):
            rows.setdefault(one.regime, {})[one.claim.length, one.equal_totals] = one
    header = ["regime"]
    for length in SHOWN_AT:
        header += [
            f"at {length}: hint",
            "none, equal total updates",
            "none, equal main-task updates",
        ]
    return markdown_table([*header, "verdict"], [_row(*row) for row in rows.items()])


def _row(regime: str, found: Mapping[tuple[int, bool], Comparison]) -> list[str]:
    cells = [regime]
    for length in SHOWN_AT:
        pair = [found.get((length, equal)) for equal in (True, False)]
        hinted = next(one.cells[0] for one in pair if one is not None)
        cells += [_percent(hinted), *(_percent(one.cells[1]) if one else "" for one in pair)]
    return [*cells, verdict_in_words(found)]


def _percent(cell: OverSeeds) -> str:
    return f"{100 * cell.mean:.1f}"


def verdict_in_words(found: Mapping[tuple[int, bool], Comparison]) -> str:
    """Where the hint clearly helps or hurts; nothing else can be said of the other places."""
    said = []
    for word in (WORDS[1], WORDS[-1]):
        at: dict[int, list[str]] = {}
        for (length, equal), one in sorted(
            found.items(), key=lambda item: (item[0][0], -item[0][1])
        ):
            if length in SHOWN_AT and one.verdict == word:
                at.setdefault(length, []).append("total" if equal else "main-task")
        said += [f"**{word}** at {length} ({', '.join(which)})" for length, which in at.items()]
    return "; ".join(said) or WORDS[0]
